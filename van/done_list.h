// Sends that have ended and whose callbacks are still owed. None is ever forgotten: what has not
// been run when the list goes is run then.
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
  void Add(SendDone done, absl::Status status) {
    if (done) owed_.emplace_back(std::move(done), std::move(status));
  }
  // A callback may destroy the list: the rest is run all the same.
  void RunAll() {
    std::vector<std::pair<SendDone, absl::Status>> owed = std::exchange(owed_, {});
    for (auto& [done, status] : owed) std::move(done)(std::move(status));
  }

 private:
  std::vector<std::pair<SendDone, absl::Status>> owed_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_DONE_LIST_H_
