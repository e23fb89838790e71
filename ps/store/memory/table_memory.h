// The memory of the tables of one server, of all its data threads together: how much they take now
// and may take. Any thread.
//
// The head of a shard asks before it lets a push, or a pull, add a row or a block. No other replica
// does: what a head has accepted its followers apply, and a clock that closes is applied whole,
// since they could not refuse it any more. So the limit may be passed a little, by what is under
// way, and copies that snapshots make do not count: it belongs well below what the machine has.
#ifndef LEEWAY_PS_STORE_MEMORY_TABLE_MEMORY_H_
#define LEEWAY_PS_STORE_MEMORY_TABLE_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "leeway/table_spec.h"

namespace leeway::ps {

// Any thread.
class TableMemory {
 public:
  // 0: as much as there is.
  explicit TableMemory(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;

  bool HasRoom(std::uint64_t more) const {
    const std::uint64_t now = bytes();
    return bytes_max_ == 0 || (now <= bytes_max_ && more <= bytes_max_ - now);
  }
  // RESOURCE_EXHAUSTED, naming the table and the setting, where there is no room for so much.
  absl::Status Check(const TableSpec& spec, std::uint64_t more) const;

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  friend class TableMemoryShare;
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_ = 0;
};

// The share of one store. On the store's thread.
class TableMemoryShare {
 public:
  // Null: nobody counts.
  explicit TableMemoryShare(TableMemory* whole) : whole_(whole) {}
  ~TableMemoryShare() { Set(0); }
  TableMemoryShare(const TableMemoryShare&) = delete;
  TableMemoryShare& operator=(const TableMemoryShare&) = delete;

  void Set(std::uint64_t bytes) {
    const std::uint64_t before = std::exchange(bytes_, bytes);
    if (whole_ == nullptr || before == bytes) return;
    whole_->bytes_.fetch_add(bytes - before, std::memory_order_relaxed);  // modulo 2^64
  }
  bool HasRoom(std::uint64_t more) const { return whole_ == nullptr || whole_->HasRoom(more); }
  absl::Status Check(const TableSpec& spec, std::uint64_t more) const {
    return HasRoom(more) ? absl::OkStatus() : whole_->Check(spec, more);
  }

 private:
  TableMemory* const whole_;
  std::uint64_t bytes_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_MEMORY_TABLE_MEMORY_H_
