// ByteBudget and SharedByteBudget are limits in bytes that several owners charge together.
#ifndef LEEWAY_RUNTIME_MEMORY_BYTE_BUDGET_H_
#define LEEWAY_RUNTIME_MEMORY_BYTE_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace leeway::runtime {

// A budget of owners on one loop.
struct ByteBudget {
  std::uint64_t bytes_max = 0;
  std::uint64_t bytes = 0;  // the sum of all charges now

  // Whether `more` bytes can be charged within the limit.
  bool HasRoom(std::uint64_t more) const { return bytes <= bytes_max && more <= bytes_max - bytes; }
};

// A budget of queues on several threads: the memory of one process for messages that wait to be
// sent to its peers. Any thread.
//
// A queue may grow only while it is no longer than the free part of the budget (a dynamic
// threshold: Choudhury and Hahne, 1998, with alpha = 1). So one queue alone gets half of the
// budget, n full ones get 1/(n+1) each, and a peer that takes nothing leaves room for the others.
class SharedByteBudget {
 public:
  explicit SharedByteBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  SharedByteBudget(const SharedByteBudget&) = delete;
  SharedByteBudget& operator=(const SharedByteBudget&) = delete;

  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // charged

  // Charges `more` for a queue that has charged `queued` bytes so far; false: there is no room.
  bool Charge(std::uint64_t queued, std::uint64_t more) {
    std::uint64_t bytes = bytes_.load(std::memory_order_relaxed);
    do {
      const std::uint64_t room = bytes < bytes_max_ ? bytes_max_ - bytes : 0;
      if (queued > room || more > room - queued) return false;
    } while (!bytes_.compare_exchange_weak(bytes, bytes + more, std::memory_order_relaxed));
    return true;
  }
  void Release(std::uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_BYTE_BUDGET_H_
