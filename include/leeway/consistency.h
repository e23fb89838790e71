// A Consistency says how far workers may drift apart on one table.
//
// One value, the staleness bound, expresses the whole family:
//   BSP          staleness 0: a pull waits until every worker has closed the clocks before it;
//                pushes of one clock are summed in worker order and applied at once.
//   SSP(s)       a worker that pulls is never more than s clocks ahead of the slowest worker
//                (Ho et al., NIPS 2013); pushes are applied as they arrive.
//   ASP          no bound.
// `quorum`, `late` and `weight` are reserved: a table that asks for a value that is not supported
// yet is refused at creation, with the reason.
#ifndef LEEWAY_CONSISTENCY_H_
#define LEEWAY_CONSISTENCY_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

struct Consistency {
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  enum class Late : std::uint8_t { kApply = 0, kDrop = 1 };
  enum class Weight : std::uint8_t { kOne = 0, kInverseStaleness = 1 };

  std::uint64_t staleness = 0;  // clocks that the slowest worker may be behind a pull
  std::uint32_t quorum = 0;     // contributions that close a clock; 0 means all workers
  Late late = Late::kApply;
  Weight weight = Weight::kOne;

  static Consistency Bsp() { return {}; }
  static Consistency Ssp(std::uint64_t staleness_clocks) { return {.staleness = staleness_clocks}; }
  static Consistency Asp() { return {.staleness = kUnbounded}; }

  bool is_bsp() const { return staleness == 0; }
  bool is_unbounded() const { return staleness == kUnbounded; }

  // Accepts "bsp", "ssp:S" (S ≥ 0; ssp:0 is bsp) and "asp".
  static absl::StatusOr<Consistency> Parse(absl::string_view text);
  // The inverse of Parse.
  std::string ToString() const;

  friend bool operator==(const Consistency&, const Consistency&) = default;
};

}  // namespace leeway

#endif  // LEEWAY_CONSISTENCY_H_
