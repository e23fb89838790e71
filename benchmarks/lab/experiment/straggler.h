// A Straggler says how long a worker's step takes, beside what it takes usually.
//
// Its text: "none"; "slow:RANK:FACTOR", that worker takes FACTOR times as long for good;
// "random:PROBABILITY:FACTOR", each step of each worker by itself; "exponential:MEAN", each step
// takes 1 + an exponential variable of that mean times as long; "pareto:SHAPE", a Pareto variable
// of scale 1 times as long; "pause:EVERY_S:LENGTH_S", each worker stands still that long once in
// EVERY_S seconds, at a time of its own. Several with "+" between them hold together.
#ifndef LEEWAY_BENCHMARKS_LAB_EXPERIMENT_STRAGGLER_H_
#define LEEWAY_BENCHMARKS_LAB_EXPERIMENT_STRAGGLER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::lab {

class Straggler {
 public:
  // INVALID_ARGUMENT shows the forms that there are.
  static absl::StatusOr<Straggler> Parse(absl::string_view text);

  // Seconds that step `step` of worker `rank` takes if it begins at `begin_s` and usually takes
  // `usual_s`. The same for the same arguments and seed.
  double StepSeconds(std::uint64_t seed, std::uint32_t rank, std::uint64_t step, double begin_s,
                     double usual_s) const;
  // The largest rank that the text names.
  std::optional<std::uint32_t> LastRank() const;
  // The mean factor of a worker's steps, without pauses: what an estimate of time needs. Infinite
  // means are taken as 10.
  double MeanFactor(std::uint32_t rank) const;

 private:
  enum class Kind { kSlow, kRandom, kExponential, kPareto, kPause };
  struct Part {
    Kind kind = Kind::kSlow;
    double a = 0, b = 0;  // as in the text, in its order
  };

  std::vector<Part> parts_;
};

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_EXPERIMENT_STRAGGLER_H_
