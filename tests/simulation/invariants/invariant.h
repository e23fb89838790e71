// An Invariant is a promise that is checked throughout a run.
#ifndef LEEWAY_TESTS_SIMULATION_INVARIANTS_INVARIANT_H_
#define LEEWAY_TESTS_SIMULATION_INVARIANTS_INVARIANT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/simulation/history.h"

namespace leeway::simulation {

class Invariant {
 public:
  virtual ~Invariant() = default;
  virtual absl::string_view name() const = 0;

  // A worker is about to push these values to that place of a float table.
  virtual void OnFloatPush(const SimTable& table, std::uint32_t place,
                           std::span<const float> gradient) {}
  // The states that the next push to that place of a coded table may lead to; empty: unknown.
  virtual void OnState(const SimTable& table, std::uint32_t place,
                       const std::vector<std::vector<float>>& either) {}
  // A worker is about to ask; `read` has only the worker and what it asks for.
  virtual void OnAsked(Read* read) {}
  // Returns what is wrong with that read; empty: nothing.
  virtual std::string Judge(const Read& read, const History& history) = 0;
};

// "push 3 of worker 1 (clock 7, acknowledged) in block 2 of 'dense counters' (ssp:2)".
std::string Describe(const Read& read, std::uint32_t place, std::uint32_t worker,
                     std::size_t number, const Push& push);
// "worker 2, asking at clock 9".
std::string DescribeReader(const Read& read);

class VersionLedger;

// The invariants of this folder.
std::unique_ptr<Invariant> NewAppliedOnce();
std::unique_ptr<Invariant> NewAcknowledgedIsThere();
std::unique_ptr<Invariant> NewOwnWritesRead();
std::unique_ptr<Invariant> NewStalenessBound();
std::unique_ptr<Invariant> NewMonotonicReads();
std::unique_ptr<Invariant> NewOpenClocksHidden();
std::unique_ptr<Invariant> NewFewAreWaiting();
std::unique_ptr<Invariant> NewDroppedIsSaid();
std::unique_ptr<Invariant> NewOptimizerStates();
std::unique_ptr<Invariant> NewCallsInOrder();  // of answers of handlers alone
std::unique_ptr<Invariant> NewVersionsRead(const VersionLedger* ledger);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_INVARIANT_H_
