#include "van/unit_map.h"

#include <algorithm>
#include <bit>

namespace leeway::van {

UnitMap::UnitMap(std::uint32_t units) : units_(units), free_((units + 63) / 64, 0) {
  Mark(0, units, true);
}

std::optional<std::uint32_t> UnitMap::Allocate(std::uint32_t units) {
  std::uint32_t unit = 0;
  if (units > units_ - used_ || !FindRun(units, &unit)) return std::nullopt;
  Mark(unit, units, false);
  used_ += units;
  return unit;
}

void UnitMap::Free(std::uint32_t unit, std::uint32_t units) {
  Mark(unit, units, true);
  used_ -= units;
}

void UnitMap::Mark(std::uint32_t unit, std::uint32_t units, bool free) {
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

bool UnitMap::FindRun(std::uint32_t units, std::uint32_t* unit) const {
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

}  // namespace leeway::van
