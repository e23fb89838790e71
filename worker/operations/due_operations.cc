#include "worker/operations/due_operations.h"

#include <algorithm>

namespace leeway::worker {
namespace {

bool Sooner(const std::shared_ptr<Operation>& a, const std::shared_ptr<Operation>& b) {
  return a->due != b->due ? a->due < b->due : a->number < b->number;
}

}  // namespace

void DueOperations::Set(const std::shared_ptr<Operation>& operation, absl::Time now,
                        absl::Duration after) {
  Remove(*operation);
  Operation::List& list = lists_[after];
  operation->due = now + after;
  operation->due_after = after;
  operation->place = list.insert(list.end(), operation);
}

void DueOperations::Remove(Operation& operation) {
  if (!operation.place.has_value()) return;
  const auto list = lists_.find(operation.due_after);
  const Operation::List::iterator place = *operation.place;
  operation.place.reset();
  // The list may hold the last reference: `operation` is not used from here on.
  list->second.erase(place);
  if (list->second.empty()) lists_.erase(list);
}

absl::Time DueOperations::First() const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [after, list] : lists_) first = std::min(first, list.front()->due);
  return first;
}

std::vector<std::shared_ptr<Operation>> DueOperations::By(absl::Time time) const {
  std::vector<std::shared_ptr<Operation>> found;
  for (const auto& [after, list] : lists_) {
    for (auto it = list.begin(); it != list.end() && (*it)->due <= time; ++it) found.push_back(*it);
  }
  std::sort(found.begin(), found.end(), Sooner);
  return found;
}

}  // namespace leeway::worker
