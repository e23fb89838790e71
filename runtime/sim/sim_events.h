// Virtual time, and what is to happen in it: by time, then in the order in which it was asked for.
#ifndef LEEWAY_RUNTIME_SIM_SIM_EVENTS_H_
#define LEEWAY_RUNTIME_SIM_SIM_EVENTS_H_

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer_queue.h"

namespace leeway::runtime {

// Whether a simulated process, or a loop of one (whose `parent` is the process), still runs.
struct SimLife {
  bool ended = false;
  std::shared_ptr<const SimLife> parent;
  bool over() const { return ended || (parent != nullptr && parent->over()); }
};

class SimEvents {
 public:
  absl::Time Now() const { return now_; }
  absl::Duration Elapsed() const;  // since the world began

  // Runs `task` at least `delay` from now, unless `life` is over by then (null: it never is).
  TimerId Add(absl::Duration delay, std::shared_ptr<const SimLife> life, Task task);
  bool Remove(TimerId timer) { return events_.Remove(timer).has_value(); }

  // Runs the next event; false if there is none up to and including `limit`.
  bool Step(absl::Time limit = absl::InfiniteFuture());
  // When the next event is; InfiniteFuture if there is none.
  absl::Time next() const { return events_.next(); }
  // Nothing happens between now and `time`.
  void AdvanceTo(absl::Time time) { now_ = time; }
  // Whether so many events in a row have happened at one moment that time stands still.
  bool stuck() const;

  // Of the loops of that process.
  std::size_t PendingOf(const SimLife& process) const;

  // Destroys the events of those whose life is over.
  void DropTheDead();
  // Destroys everything, and whatever is added from now on.
  void End();

 private:
  struct Event {
    std::shared_ptr<const SimLife> life;
    Task task;
  };

  static absl::Time Start();

  absl::Time now_ = Start();
  TimerQueue<Event> events_;
  int events_this_moment_ = 0;
  bool ended_ = false;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_EVENTS_H_
