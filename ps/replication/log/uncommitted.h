// The end of a shard's log that is not yet on every replica: what a new successor has to be sent.
#ifndef LEEWAY_PS_REPLICATION_LOG_UNCOMMITTED_H_
#define LEEWAY_PS_REPLICATION_LOG_UNCOMMITTED_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "ps/replication/log/log_entry.h"
#include "runtime/base/mutants.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

class Uncommitted {
 public:
  // `budget`: what all shards of a thread keep together. It is charged whether it has room or not:
  // those who would make it grow ask first.
  explicit Uncommitted(runtime::ByteBudget* budget) : budget_(budget) {}
  ~Uncommitted() { Clear(); }
  Uncommitted(const Uncommitted&) = delete;
  Uncommitted& operator=(const Uncommitted&) = delete;

  void Append(Item item) {
    budget_->bytes += item.bytes();
    items_.push_back(std::move(item));
  }
  // Entries up to `index` are on every replica.
  void Trim(std::uint64_t index) {
    while (!items_.empty() &&
           items_.front().header.index <= index + (runtime::Planted<"trimmed-too-far">() ? 1 : 0)) {
      PopFront();
    }
  }
  void Clear() {
    while (!items_.empty()) PopFront();
  }

  const std::deque<Item>& items() const { return items_; }

 private:
  void PopFront() {
    budget_->bytes -= items_.front().bytes();
    items_.pop_front();
  }

  runtime::ByteBudget* budget_;
  std::deque<Item> items_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_UNCOMMITTED_H_
