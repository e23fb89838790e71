#include "van/mixed/mixed_van.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/log.h"
#include "van/mixed/mixed_transport.h"
#include "van/session_van.h"
#include "van/tcp/tcp_transport.h"
#include "van/tcp/tcp_van.h"
#include "van/tcp_address.h"
#include "van/zmq/zmq_van.h"

namespace leeway::van {
namespace {

class MixedFactory final : public Factory {
 public:
  MixedFactory(const ShmSizes& sizes, bool shm_only) : sizes_(sizes), shm_only_(shm_only) {}

  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(
        loop, identity, limits, handler,
        std::make_unique<MixedTransport>(loop, std::make_unique<TcpTransport>(loop, limits),
                                         std::make_unique<ShmTransport>(loop, limits, sizes_),
                                         shm_only_));
  }
  std::string AnyAddress(absl::string_view host) const override { return AnyTcpAddress(host); }
  absl::Status Viable() const override {
    if (absl::Status shm = ShmViable(); shm_only_ && !shm.ok()) {
      return absl::Status(shm.code(), absl::StrCat("LEEWAY_VAN is \"shm\", but there is ",
                                                   std::string(shm.message())));
    }
    return absl::OkStatus();
  }

 private:
  const ShmSizes sizes_;
  const bool shm_only_;
};

}  // namespace

std::unique_ptr<Factory> NewFactory(const Config& config) {
  if (config.van == "zmq") return NewZmqFactory();
  if (config.van == "tcp") return NewTcpFactory();
  const bool shm_only = config.van == "shm";
  if (const absl::Status viable = ShmViable(); !viable.ok() && !shm_only) {
    runtime::LogInfo("everything goes over tcp: ", std::string(viable.message()));
    return NewTcpFactory();
  }
  ShmSizes sizes;
  sizes.arena_units = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(config.shm_bytes / kShmUnitBytes, 1, kShmUnitsMax));
  return std::make_unique<MixedFactory>(sizes, shm_only);
}

std::unique_ptr<Factory> NewToolFactory(const Config& config) {
  return config.van == "zmq" ? NewZmqFactory() : NewTcpFactory();
}

}  // namespace leeway::van
