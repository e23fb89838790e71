#include "tests/simulation/checker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {
namespace {

// The longest time for an operation without faults: workers wait for a killed one until the failure
// timeout (5 s), and lost connections and messages are found by resends.
constexpr absl::Duration kPatience = absl::Seconds(15);

}  // namespace

Checker::Checker(const History* history) : history_(history) {
  invariants_.push_back(NewAppliedOnce());
  invariants_.push_back(NewOwnWritesRead());
  invariants_.push_back(NewStalenessBound());
  invariants_.push_back(NewAcknowledgedIsThere());
  invariants_.push_back(NewMonotonicReads());
  invariants_.push_back(NewOpenClocksHidden());
  invariants_.push_back(NewFewAreWaiting());
  invariants_.push_back(NewDroppedIsSaid());
  invariants_.push_back(NewOptimizerStates());
  of_calls_.push_back(NewAppliedOnce());
  of_calls_.push_back(NewOwnWritesRead());
  of_calls_.push_back(NewAcknowledgedIsThere());
  of_calls_.push_back(NewCallsInOrder());
}

void Checker::OnFloatPush(const SimTable& table, std::uint32_t place,
                          std::span<const float> gradient) {
  for (const auto& invariant : invariants_) invariant->OnFloatPush(table, place, gradient);
}

void Checker::OnState(const SimTable& table, std::uint32_t place,
                      const std::vector<std::vector<float>>& either) {
  for (const auto& invariant : invariants_) invariant->OnState(table, place, either);
}

void Checker::OnAsked(Read* read) {
  for (const auto& invariant : invariants_) invariant->OnAsked(read);
}

void Checker::OnRead(const Read& read) { Judge(read, invariants_); }
void Checker::OnCalled(const Read& read) { Judge(read, of_calls_); }

void Checker::Judge(const Read& read, const Invariants& invariants) {
  ++reads_;
  for (const auto& invariant : invariants) {
    std::string wrong = invariant->Judge(read, *history_);
    if (!wrong.empty()) Fail(invariant->name(), std::move(wrong));
  }
}

void Checker::OnWaited(const std::string& what, absl::Time since, absl::Time ended) {
  if (ended - std::max(since, quiet_from_) <= kPatience) return;
  Fail("nobody waits for long",
       absl::StrCat(what, " has waited for ", absl::FormatDuration(ended - since)));
}

void Checker::Fail(absl::string_view invariant, std::string what) {
  if (violation_.has_value()) return;
  violation_ = Violation{std::string(invariant), std::move(what)};
}

}  // namespace leeway::simulation
