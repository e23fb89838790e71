#include "van/zmq/zmq_van.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "van/address/tcp_address.h"
#include "van/session/session_van.h"
#include "van/zmq/zmq_transport.h"

namespace leeway::van {
namespace {

class ZmqFactory final : public Factory {
 public:
  ZmqFactory(std::shared_ptr<ZmqContext> context, ZmqScheme scheme)
      : scheme_(scheme), context_(std::move(context)) {}

  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(loop, identity, limits, handler,
                                        NewZmqTransport(context_, loop, limits));
  }

  std::string AnyAddress(absl::string_view host) const override {
    switch (scheme_) {
      case ZmqScheme::kIpc:
        return absl::StrCat("ipc://", context_->NewIpcPath());
      case ZmqScheme::kInproc:
        return absl::StrCat("inproc://leeway.", context_->NextNumber());
      case ZmqScheme::kTcp:
        break;
    }
    return AnyTcpAddress(host);
  }

  absl::Status Viable() const override {
    if (context_->get() != nullptr) return absl::OkStatus();
    return absl::UnavailableError("ZeroMQ could not start (out of memory or file descriptors)");
  }

 private:
  ZmqScheme scheme_;
  std::shared_ptr<ZmqContext> context_;
};

}  // namespace

std::unique_ptr<Factory> NewZmqFactory(ZmqScheme scheme, int io_threads) {
  return NewZmqFactoryOn(std::make_shared<ZmqContext>(io_threads), scheme);
}

std::unique_ptr<Factory> NewZmqFactoryOn(std::shared_ptr<ZmqContext> context, ZmqScheme scheme) {
  return std::make_unique<ZmqFactory>(std::move(context), scheme);
}

}  // namespace leeway::van
