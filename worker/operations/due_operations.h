// All operations that are not over, by when something is to be done about each of them.
//
// Operations are as a rule given the same time as the one before, so what is new comes last of all
// that were given as much: for each length of time there is a list in order, and the earliest of
// all is the first of one of them.
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
  // Due at `now` + `after`, and no longer when it was before, if it is here already. `now` is never
  // earlier than in the call before.
  void Set(const std::shared_ptr<Operation>& operation, absl::Time now, absl::Duration after);
  // Nothing, if it is not here.
  void Remove(Operation& operation);

  bool empty() const { return lists_.empty(); }
  // When the first one is due; there is one.
  absl::Time First() const;
  // Those that are due by then, the earliest first, of the same time the one first that was
  // submitted first.
  std::vector<std::shared_ptr<Operation>> By(absl::Time time) const;
  std::vector<std::shared_ptr<Operation>> All() const { return By(absl::InfiniteFuture()); }

 private:
  std::map<absl::Duration, Operation::List> lists_;  // none is empty
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_OPERATIONS_DUE_OPERATIONS_H_
