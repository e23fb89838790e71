// One timer of a loop that belongs to one object and goes with it.
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

  // Rings once at `when`, or earlier if it is set to earlier already.
  void SetBy(absl::Time when) {
    if (when == absl::InfiniteFuture()) return;
    if (timer_ != TimerId::kNone) {
      if (when_ <= when) return;
      loop_->Cancel(timer_);
    }
    when_ = when;
    const absl::Duration delay = std::max(absl::ZeroDuration(), when - loop_->Now());
    timer_ = loop_->After(delay, [this] {
      timer_ = TimerId::kNone;
      ring_();
    });
  }
  void Clear() {
    loop_->Cancel(timer_);
    timer_ = TimerId::kNone;
  }
  // Set, and has not rung yet.
  bool pending() const { return timer_ != TimerId::kNone; }

 private:
  Loop* loop_;
  std::function<void()> ring_;
  TimerId timer_ = TimerId::kNone;
  absl::Time when_;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_TIMER_H_
