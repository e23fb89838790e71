// The operations that are not over, by the time at which each is due for attention.
//
// There is a list for each timeout. Most operations have the same timeout, and a new one is the
// last to become due of all with its timeout, so each list is in order without a search, and the
// earliest operation is the first of some list. Lives on the core's loop, in Operations.
#ifndef LEEWAY_WORKER_OPERATIONS_DUE_OPERATIONS_H_
#define LEEWAY_WORKER_OPERATIONS_DUE_OPERATIONS_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "worker/operations/operation.h"

namespace leeway::worker {

class DueOperations {
 public:
  // Makes the operation due at `now` + `after`, in place of an earlier Set. `now` never decreases
  // from call to call.
  void Set(const std::shared_ptr<Operation>& operation, absl::Time now, absl::Duration after);
  // Does nothing if the operation is not here.
  void Remove(Operation& operation);

  bool empty() const { return lists_.empty(); }
  // When the first one is due. There must be one.
  absl::Time First() const;
  // The operations that are due by then, in the order of their due times, then of submission.
  std::vector<std::shared_ptr<Operation>> By(absl::Time time) const;
  std::vector<std::shared_ptr<Operation>> All() const { return By(absl::InfiniteFuture()); }

 private:
  std::map<absl::Duration, Operation::List> lists_;  // none is empty
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_OPERATIONS_DUE_OPERATIONS_H_
