#include "van/shm/shm_van.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "van/session/session_van.h"
#include "van/shm/shm_transport.h"

namespace leeway::van {
namespace {

class ShmFactory final : public Factory {
 public:
  explicit ShmFactory(const ShmSizes& sizes) : sizes_(sizes) {}

  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(loop, identity, limits, handler,
                                        std::make_unique<ShmTransport>(loop, limits, sizes_));
  }
  std::string AnyAddress(absl::string_view) const override {
    static std::atomic<std::uint64_t> next{1};
    // Process ids are unique in one PID namespace, names in a network namespace. An address in this
    // process's memory tells equal process ids apart well enough; if it does not, Listen fails.
    return absl::StrCat("shm://", ::getpid(), ".", next.fetch_add(1), ".",
                        absl::Hex(reinterpret_cast<std::uintptr_t>(this)));
  }
  absl::Status Viable() const override { return ShmViable(); }

 private:
  const ShmSizes sizes_;
};

}  // namespace

std::unique_ptr<Factory> NewShmFactory(std::uint64_t arena_bytes) {
  ShmSizes sizes;
  sizes.arena_units = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(arena_bytes / kShmUnitBytes, 1, kShmUnitsMax));
  return std::make_unique<ShmFactory>(sizes);
}

}  // namespace leeway::van
