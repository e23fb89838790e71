// How stale the replies of one table were, as the server thread that gave them knows it.
#ifndef LEEWAY_PS_TABLE_STALENESS_COUNTS_H_
#define LEEWAY_PS_TABLE_STALENESS_COUNTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace leeway::ps {

class StalenessCounts {
 public:
  // Replies that were staler than this count together.
  static constexpr std::size_t kMax = 64;

  void Count(std::uint64_t clocks) { ++counts_[std::min<std::uint64_t>(clocks, kMax)]; }
  // By clocks; the last: kMax or more.
  const std::array<std::uint64_t, kMax + 1>& counts() const { return counts_; }

 private:
  std::array<std::uint64_t, kMax + 1> counts_ = {};
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_STALENESS_COUNTS_H_
