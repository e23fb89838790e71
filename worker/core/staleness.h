// The ledger of the staleness of pull replies, which checks each of them against its table's bound.
//
// Lives on the core's loop, in Operations.
#ifndef LEEWAY_WORKER_CORE_STALENESS_H_
#define LEEWAY_WORKER_CORE_STALENESS_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "leeway/consistency.h"
#include "proto/messages/messages.h"

namespace leeway::worker {

class StalenessLedger {
 public:
  // Counts the reply to a request of `clock`. INTERNAL "staleness bound violated: …" if it is
  // staler than `bound` allows, or if its staleness contradicts its clocks.
  absl::Status Check(const Consistency& bound, std::uint64_t clock, const proto::Reply& reply);

  const std::map<std::uint64_t, std::uint64_t>& histogram() const { return histogram_; }
  std::uint64_t max() const { return histogram_.empty() ? 0 : histogram_.rbegin()->first; }
  std::uint64_t violations() const { return violations_; }

 private:
  std::map<std::uint64_t, std::uint64_t> histogram_;  // clocks → replies
  std::uint64_t violations_ = 0;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CORE_STALENESS_H_
