#include "van/mixed/mixed_van.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/log.h"
#include "van/mixed/mixed_transport.h"
#include "van/session_van.h"
#include "van/zmq/zmq_transport.h"

namespace leeway::van {
namespace {

class MixedFactory final : public Factory {
 public:
  MixedFactory(const ShmSizes& sizes, bool shm_only)
      : sizes_(sizes),
        shm_only_(shm_only),
        context_(std::make_shared<ZmqContext>(/*io_threads=*/1)),
        zmq_(NewZmqFactoryOn(context_, ZmqScheme::kTcp)) {}

  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(
        loop, identity, limits, handler,
        std::make_unique<MixedTransport>(loop, NewZmqTransport(context_, loop, limits),
                                         std::make_unique<ShmTransport>(loop, limits, sizes_),
                                         shm_only_));
  }
  std::string AnyAddress(absl::string_view host) const override { return zmq_->AnyAddress(host); }
  absl::Status Viable() const override {
    if (absl::Status shm = ShmViable(); shm_only_ && !shm.ok()) {
      return absl::Status(shm.code(), absl::StrCat("LEEWAY_VAN is \"shm\", but there is ",
                                                   std::string(shm.message())));
    }
    return zmq_->Viable();
  }

 private:
  const ShmSizes sizes_;
  const bool shm_only_;
  const std::shared_ptr<ZmqContext> context_;
  const std::unique_ptr<Factory> zmq_;
};

}  // namespace

std::unique_ptr<Factory> NewFactory(const Config& config) {
  if (config.van == "tcp") return NewZmqFactory();
  const bool shm_only = config.van == "shm";
  if (const absl::Status viable = ShmViable(); !viable.ok() && !shm_only) {
    runtime::LogInfo("everything goes over tcp: ", std::string(viable.message()));
    return NewZmqFactory();
  }
  ShmSizes sizes;
  sizes.arena_units = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(config.shm_bytes / kShmUnitBytes, 1, kShmUnitsMax));
  return std::make_unique<MixedFactory>(sizes, shm_only);
}

}  // namespace leeway::van
