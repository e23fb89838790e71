// A Checker checks every read of a run against the invariants, and keeps the first violation.
#ifndef LEEWAY_TESTS_SIMULATION_CHECKER_H_
#define LEEWAY_TESTS_SIMULATION_CHECKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/simulation/history.h"
#include "tests/simulation/invariants/invariant.h"

namespace leeway::simulation {

struct Violation {
  std::string invariant;
  std::string what;
};

class Checker {
 public:
  explicit Checker(const History* history);

  void Add(std::unique_ptr<Invariant> invariant) { invariants_.push_back(std::move(invariant)); }

  void OnFloatPush(const SimTable& table, std::uint32_t place, std::span<const float> gradient);
  void OnState(const SimTable& table, std::uint32_t place,
               const std::vector<std::vector<float>>& either);
  void OnAsked(Read* read);
  void OnRead(const Read& read);
  // A handler has answered with what it has read: as of its call, and of no clock.
  void OnCalled(const Read& read);
  // An operation has ended (or not yet, with `ended` now): once faults have stopped, no operation
  // may wait for long.
  void OnWaited(const std::string& what, absl::Time since, absl::Time ended);
  // From then on there are no faults.
  void SetQuietFrom(absl::Time quiet) { quiet_from_ = quiet; }

  void Fail(absl::string_view invariant, std::string what);
  const std::optional<Violation>& violation() const { return violation_; }
  std::uint64_t reads() const { return reads_; }

 private:
  using Invariants = std::vector<std::unique_ptr<Invariant>>;

  void Judge(const Read& read, const Invariants& invariants);

  const History* const history_;
  Invariants invariants_, of_calls_;
  absl::Time quiet_from_ = absl::InfiniteFuture();
  std::uint64_t reads_ = 0;
  std::optional<Violation> violation_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CHECKER_H_
