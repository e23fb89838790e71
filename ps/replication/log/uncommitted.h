// The end of a shard's log that is not yet on every replica, kept for a new successor.
#ifndef LEEWAY_PS_REPLICATION_LOG_UNCOMMITTED_H_
#define LEEWAY_PS_REPLICATION_LOG_UNCOMMITTED_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "ps/replication/log/log_entry.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

class Uncommitted {
 public:
  // `budget`: of all shards of a thread together. It is charged whether it has room or not:
  // Replica::CanTake asks for room before a push is taken.
  explicit Uncommitted(runtime::ByteBudget* budget) : budget_(budget) {}
  ~Uncommitted() { Clear(); }
  Uncommitted(const Uncommitted&) = delete;
  Uncommitted& operator=(const Uncommitted&) = delete;

  void Append(LogEntry entry) {
    budget_->bytes += entry.bytes();
    entries_.push_back(std::move(entry));
  }
  // Entries up to `index` are on every replica.
  void Trim(std::uint64_t index) {
    while (!entries_.empty() && entries_.front().header.index <= index) {
      PopFront();
    }
  }
  void Clear() {
    while (!entries_.empty()) PopFront();
  }

  const std::deque<LogEntry>& entries() const { return entries_; }

 private:
  void PopFront() {
    budget_->bytes -= entries_.front().bytes();
    entries_.pop_front();
  }

  runtime::ByteBudget* budget_;
  std::deque<LogEntry> entries_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_UNCOMMITTED_H_
