#include "van/tcp/tcp_van.h"

#include "van/address/tcp_address.h"
#include "van/session/session_van.h"
#include "van/tcp/tcp_transport.h"

namespace leeway::van {
namespace {

class TcpFactory final : public Factory {
 public:
  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(loop, identity, limits, handler,
                                        std::make_unique<TcpTransport>(loop, limits));
  }
  std::string AnyAddress(absl::string_view host) const override { return AnyTcpAddress(host); }
};

}  // namespace

std::unique_ptr<Factory> NewTcpFactory() { return std::make_unique<TcpFactory>(); }

}  // namespace leeway::van
