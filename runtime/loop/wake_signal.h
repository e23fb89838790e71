// WakeSignal ends another thread's poll(2). Setting it again before the sleeping thread has cleared
// it costs no system call.
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

  // Readable after Set. −1 if the system gave no descriptor (too many open files): then a sleeping
  // thread has to wake up by itself every now and then.
  int fd() const { return fd_; }
  void Set();  // any thread
  bool is_set() const { return set_.load(std::memory_order_relaxed); }
  void Clear();  // only by the thread that slept on it, before it looks for work

 private:
  int fd_;
  std::atomic<bool> set_{false};
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_WAKE_SIGNAL_H_
