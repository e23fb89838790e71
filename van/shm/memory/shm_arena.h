// ShmArena is the sender's view of its arena: which units are free, and which the other side has
// yet to release. One thread.
#ifndef LEEWAY_VAN_SHM_MEMORY_SHM_ARENA_H_
#define LEEWAY_VAN_SHM_MEMORY_SHM_ARENA_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "van/unit_map.h"

namespace leeway::van {

struct ShmExtent {
  std::uint32_t unit = 0, units = 0;
  std::uint32_t generation = 0;  // never 0; another one for every allocation
};

class ShmArena {
 public:
  // Whether the other side has released the extent that begins at that unit with that generation.
  using Released = absl::FunctionRef<bool(const ShmExtent&)>;

  explicit ShmArena(std::uint32_t units) : map_(units) {}

  std::uint32_t units() const { return map_.units(); }
  std::uint32_t used() const { return map_.used(); }

  // Takes the lowest run that is long enough for `bytes`, so that memory is used again while it is
  // in the caches. nullopt: there is none.
  std::optional<ShmExtent> Allocate(std::uint64_t bytes);
  // Frees extents that were never published; the newest ones, in reverse order.
  void Undo(const ShmExtent& extent);
  // Frees released extents. Checks `most` of the allocated ones per call, in turns.
  void Reclaim(Released released, std::size_t most);
  std::size_t out() const { return out_.size(); }

 private:
  UnitMap map_;
  std::uint32_t generation_ = 0;
  std::vector<ShmExtent> out_;
  std::size_t turn_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_MEMORY_SHM_ARENA_H_
