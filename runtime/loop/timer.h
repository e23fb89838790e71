// Timer calls one function at a moment of its loop's clock. It belongs to one object, is cancelled
// when that is destroyed, and lives on the loop. The function may destroy the timer if it uses none
// of its captures after that.
#ifndef LEEWAY_RUNTIME_LOOP_TIMER_H_
#define LEEWAY_RUNTIME_LOOP_TIMER_H_

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "runtime/loop/loop.h"

namespace leeway::runtime {

class Timer {
 public:
  Timer(Loop* loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {}
  ~Timer() { Clear(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls `ring` once at `when`, or earlier if it is set to an earlier time already.
  void SetBy(absl::Time when) {
    if (when == absl::InfiniteFuture() || (pending() && when_ <= when)) return;
    Set(std::max(absl::ZeroDuration(), when - loop_->Now()), when);
  }
  // Calls `ring` once after `delay`, whatever it was set to.
  void SetAfter(absl::Duration delay) { Set(delay, loop_->Now() + delay); }
  void Clear() {
    if (pending()) loop_->Cancel(std::exchange(timer_, TimerId::kNone));
  }
  // True if it is set and has not rung yet.
  bool pending() const { return timer_ != TimerId::kNone; }

 private:
  void Set(absl::Duration delay, absl::Time when) {
    Clear();
    when_ = when;
    timer_ = loop_->After(delay, [this] {
      timer_ = TimerId::kNone;
      ring_();
    });
  }

  Loop* loop_;
  std::function<void()> ring_;
  TimerId timer_ = TimerId::kNone;
  absl::Time when_;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_TIMER_H_
