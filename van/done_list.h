// DoneList holds the callbacks of sends that have ended, until they are run. Lives on the van's
// loop. The destructor runs those that are left, so each callback is called exactly once.
#ifndef LEEWAY_VAN_DONE_LIST_H_
#define LEEWAY_VAN_DONE_LIST_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "van/van.h"

namespace leeway::van {

class DoneList {
 public:
  DoneList() = default;
  DoneList(const DoneList&) = delete;
  DoneList& operator=(const DoneList&) = delete;
  ~DoneList() { RunAll(); }

  bool empty() const { return owed_.empty(); }
  // Adds a callback; a null one is ignored.
  void Add(SendDone done, absl::Status status) {
    if (done) owed_.emplace_back(std::move(done), std::move(status));
  }
  // Runs all callbacks in order. A callback may destroy the list; the others still run.
  void RunAll() {
    std::vector<std::pair<SendDone, absl::Status>> owed = std::exchange(owed_, {});
    for (auto& [done, status] : owed) std::move(done)(std::move(status));
  }

 private:
  std::vector<std::pair<SendDone, absl::Status>> owed_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_DONE_LIST_H_
