// Ends another thread's poll(2). Setting it again before the sleeper has seen it costs no call
// to the system.
#ifndef LEEWAY_RUNTIME_LOOP_WAKE_SIGNAL_H_
#define LEEWAY_RUNTIME_LOOP_WAKE_SIGNAL_H_

#include <atomic>

namespace leeway::runtime {

class WakeSignal {
 public:
  WakeSignal();
  ~WakeSignal();
  WakeSignal(const WakeSignal&) = delete;
  WakeSignal& operator=(const WakeSignal&) = delete;

  // Readable once Set. −1 when the system gave none (too many open files): then a sleeper must
  // look for itself every now and then.
  int fd() const { return fd_; }
  void Set();  // any thread
  bool is_set() const { return set_.load(std::memory_order_relaxed); }
  void Clear();  // only by who slept on it, before looking for what there is to do

 private:
  int fd_;
  std::atomic<bool> set_{false};
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_WAKE_SIGNAL_H_
