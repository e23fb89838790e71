// A Consistency says how far workers may drift apart on one table, when a push takes effect, and
// how much one counts that was computed from old values.
//
// One value says all of it, and one text does: BSP "bsp", SSP "ssp:3", ASP "asp", backup workers
// "backup:14/16,drop", DSSP "dssp:1-8", PSP "psp:3/8", n-softsync "softsync:4", FedBuff
// "fedbuff:10"; weights by staleness and delay compensation behind a comma, as in
// "asp,weight=1/tau" and "asp,dc=0.04" or "asp,dc=adaptive:2/0.95". The text is the same on the
// command line, in manifests and in status. docs/consistency.md has each rule, its paper and what
// it promises.
#ifndef LEEWAY_CONSISTENCY_H_
#define LEEWAY_CONSISTENCY_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

struct Consistency {
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t kCountMax = 1 << 20;
  static constexpr std::size_t kWeightsMax = 64;

  enum class Rule : std::uint8_t {
    kClocks = 0,    // BSP, SSP (Ho et al., NIPS 2013) and ASP, by `staleness`
    kBackup = 1,    // a clock closes when `count` workers have ended it (Chen et al., 2016)
    kDynamic = 2,   // a bound from `count` to `staleness`, by measured speeds (Zhao et al., 2019)
    kSampled = 3,   // the bound holds over `count` workers drawn for each pull (Wang et al., 2017)
    kSoftsync = 4,  // an update for each ⌊workers / count⌋ pushes (Zhang et al., IJCAI 2016)
    kBuffered = 5,  // an update for each `count` pushes (FedBuff: Nguyen et al., 2022)
  };
  // Of kBackup: a push whose clock has closed takes effect when it comes, or is dropped.
  enum class Late : std::uint8_t { kApply = 0, kDrop = 1 };
  // Of kBackup, with fewer than `count` living workers: clocks close with those, or wait for more.
  enum class Short : std::uint8_t { kClose = 0, kWait = 1 };
  // What a push is multiplied by. τ: the updates that its block (sparse: its table's part of the
  // shard) has had since the values were pulled that the push was computed from.
  enum class Weight : std::uint8_t {
    kOne = 0,
    kInverse = 1,     // 1/τ, 1 for τ = 0 (Zhang et al., IJCAI 2016, equation 6)
    kPolynomial = 2,  // (τ + 1)^−a (FedAsync: Xie et al., 2019)
    kHinge = 3,       // 1 for τ ≤ b, else 1 / (a(τ − b) + 1) (Xie et al., 2019)
    kCutOff = 4,      // 1 for τ ≤ b; others are dropped
    kTable = 5,       // weights[τ]; the last for larger ones
  };

  Rule rule = Rule::kClocks;
  std::uint64_t staleness = 0;  // clocks that the slowest worker may be behind a pull
  std::uint32_t count = 0;      // as the rule says
  std::uint32_t of = 0;         // kBackup: of so many workers
  Late late = Late::kApply;
  Short when_short = Short::kClose;
  Weight weight = Weight::kOne;
  double a = 0;
  double b = 0;
  std::vector<double> weights = {};
  // Delay compensation (DC-ASGD: Zheng et al., ICML 2017) of pushes, which are gradients: λ, or λ₀
  // where `compensation_decay`, the m of its adaptive form, is above 0. 0: none.
  double compensation = 0;
  double compensation_decay = 0;

  static Consistency Bsp() { return {}; }
  static Consistency Ssp(std::uint64_t staleness_clocks) { return {.staleness = staleness_clocks}; }
  static Consistency Asp() { return {.staleness = kUnbounded}; }
  static Consistency Backup(std::uint32_t count, std::uint32_t of, Late late = Late::kApply) {
    return {.rule = Rule::kBackup, .count = count, .of = of, .late = late};
  }
  static Consistency Dssp(std::uint32_t low_clocks, std::uint64_t high_clocks) {
    return {.rule = Rule::kDynamic, .staleness = high_clocks, .count = low_clocks};
  }
  static Consistency Psp(std::uint64_t staleness_clocks, std::uint32_t sample) {
    return {.rule = Rule::kSampled, .staleness = staleness_clocks, .count = sample};
  }
  static Consistency Softsync(std::uint32_t n) {
    return {.rule = Rule::kSoftsync, .staleness = kUnbounded, .count = n};
  }
  static Consistency FedBuff(std::uint32_t pushes) {
    return {.rule = Rule::kBuffered, .staleness = kUnbounded, .count = pushes};
  }

  // Pushes wait, one by one, until all workers have ended their clock.
  bool is_bsp() const { return rule == Rule::kClocks && staleness == 0; }
  // A worker may be any number of clocks ahead of the others.
  bool is_unbounded() const { return staleness == kUnbounded; }
  // Pushes are added up as they come, and several take effect as one update.
  bool collects() const {
    return rule == Rule::kBackup || rule == Rule::kSoftsync || rule == Rule::kBuffered;
  }
  // Pushes take effect as they come, and workers are in several clocks at a time, within a bound.
  bool is_bounded() const { return !is_bsp() && !collects() && !is_unbounded(); }
  // What a worker pushes in a clock is to be seen in the next one.
  bool closes_clocks() const { return is_bsp() || rule == Rule::kBackup; }
  // Whether τ decides anything.
  bool is_weighted() const { return weight != Weight::kOne; }
  bool is_compensated() const { return compensation != 0; }

  // INVALID_ARGUMENT names the field, its value and what it may be.
  absl::Status Validate() const;

  // INVALID_ARGUMENT shows the forms that there are.
  static absl::StatusOr<Consistency> Parse(absl::string_view text);
  // The inverse of Parse.
  std::string ToString() const;

  friend bool operator==(const Consistency&, const Consistency&) = default;
};

}  // namespace leeway

#endif  // LEEWAY_CONSISTENCY_H_
