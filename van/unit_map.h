// UnitMap is the allocator of an arena's units: a bitmap of the free ones. One thread.
#ifndef LEEWAY_VAN_UNIT_MAP_H_
#define LEEWAY_VAN_UNIT_MAP_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace leeway::van {

class UnitMap {
 public:
  explicit UnitMap(std::uint32_t units);

  std::uint32_t units() const { return units_; }
  std::uint32_t used() const { return used_; }

  // Allocates a run of `units` (not 0) units and returns its first unit; nullopt: there is none. It
  // takes the lowest run that is long enough, so that memory is used again while it is in the
  // caches.
  std::optional<std::uint32_t> Allocate(std::uint32_t units);
  // Frees a run that Allocate returned, as a whole.
  void Free(std::uint32_t unit, std::uint32_t units);

 private:
  bool FindRun(std::uint32_t units, std::uint32_t* unit) const;
  void Mark(std::uint32_t unit, std::uint32_t units, bool free);

  const std::uint32_t units_;
  std::uint32_t used_ = 0;
  std::vector<std::uint64_t> free_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_UNIT_MAP_H_
