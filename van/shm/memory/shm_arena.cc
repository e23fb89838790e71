#include "van/shm/memory/shm_arena.h"

#include <algorithm>

#include "van/shm/memory/shm_format.h"

namespace leeway::van {

std::optional<ShmExtent> ShmArena::Allocate(std::uint64_t bytes) {
  const std::uint64_t wanted =
      std::max<std::uint64_t>(1, (bytes + kShmUnitBytes - 1) / kShmUnitBytes);
  if (wanted > map_.units() - map_.used()) return std::nullopt;
  ShmExtent extent;
  extent.units = static_cast<std::uint32_t>(wanted);
  const std::optional<std::uint32_t> unit = map_.Allocate(extent.units);
  if (!unit.has_value()) return std::nullopt;
  extent.unit = *unit;
  if (++generation_ == 0) ++generation_;
  extent.generation = generation_;
  out_.push_back(extent);
  return extent;
}

void ShmArena::Undo(const ShmExtent& extent) {
  map_.Free(extent.unit, extent.units);
  out_.pop_back();
}

void ShmArena::Reclaim(Released released, std::size_t most) {
  for (std::size_t left = std::min(most, out_.size()); left > 0 && !out_.empty(); --left) {
    if (turn_ >= out_.size()) turn_ = 0;
    const ShmExtent extent = out_[turn_];
    if (!released(extent)) {
      ++turn_;
      continue;
    }
    map_.Free(extent.unit, extent.units);
    out_[turn_] = out_.back();
    out_.pop_back();
  }
}

}  // namespace leeway::van
