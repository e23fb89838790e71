#include "van/shm/shm_arena.h"

#include <algorithm>
#include <bit>

#include "van/shm/shm_format.h"

namespace leeway::van {

ShmArena::ShmArena(std::uint32_t units) : units_(units), free_((units + 63) / 64, 0) {
  Mark(0, units, true);
}

void ShmArena::Mark(std::uint32_t unit, std::uint32_t units, bool free) {
  while (units > 0) {
    const std::uint32_t bit = unit % 64;
    const std::uint32_t count = std::min(units, 64 - bit);
    const std::uint64_t mask = (count == 64 ? ~0ull : (1ull << count) - 1) << bit;
    if (free) {
      free_[unit / 64] |= mask;
    } else {
      free_[unit / 64] &= ~mask;
    }
    unit += count;
    units -= count;
  }
}

bool ShmArena::FindRun(std::uint32_t units, std::uint32_t* unit) const {
  std::uint32_t run = 0;
  for (std::uint32_t word = 0; word < free_.size(); ++word) {
    std::uint64_t bits = free_[word];
    std::uint32_t left = 64;
    while (left > 0) {
      const auto ones = std::min<std::uint32_t>(std::countr_one(bits), left);
      run += ones;
      left -= ones;
      if (run >= units) {
        *unit = 64 * word + (64 - left) - run;
        return true;
      }
      if (left == 0) break;
      run = 0;
      bits = ones == 64 ? 0 : bits >> ones;
      const auto zeros = std::min<std::uint32_t>(std::countr_zero(bits), left);
      left -= zeros;
      bits = zeros == 64 ? 0 : bits >> zeros;
    }
  }
  return false;
}

std::optional<ShmExtent> ShmArena::Allocate(std::uint64_t bytes) {
  const std::uint64_t wanted =
      std::max<std::uint64_t>(1, (bytes + kShmUnitBytes - 1) / kShmUnitBytes);
  if (wanted > units_ - used_) return std::nullopt;
  ShmExtent extent;
  extent.units = static_cast<std::uint32_t>(wanted);
  if (!FindRun(extent.units, &extent.unit)) return std::nullopt;
  if (++generation_ == 0) ++generation_;
  extent.generation = generation_;
  Mark(extent.unit, extent.units, false);
  used_ += extent.units;
  out_.push_back(extent);
  return extent;
}

void ShmArena::Undo(const ShmExtent& extent) {
  Mark(extent.unit, extent.units, true);
  used_ -= extent.units;
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
    Mark(extent.unit, extent.units, true);
    used_ -= extent.units;
    out_[turn_] = out_.back();
    out_.pop_back();
  }
}

}  // namespace leeway::van
