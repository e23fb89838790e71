// SimEvents is virtual time and the queue of events in it: ordered by time, then in the order in
// which they were added.
#ifndef LEEWAY_RUNTIME_SIM_SIM_EVENTS_H_
#define LEEWAY_RUNTIME_SIM_SIM_EVENTS_H_

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer_queue.h"

namespace leeway::runtime {

// SimLife is a flag that tells whether a simulated process, or a loop of one (its `parent` is the
// process), still runs.
struct SimLife {
  bool ended = false;
  std::shared_ptr<const SimLife> parent;
  bool over() const { return ended || (parent != nullptr && parent->over()); }
};

class SimEvents {
 public:
  absl::Time Now() const { return now_; }
  absl::Duration Elapsed() const;  // since the start of the world

  // Runs `task` at least `delay` from now, unless `life` is over by then. Null `life`: it never is.
  TimerId Add(absl::Duration delay, std::shared_ptr<const SimLife> life, Task task);
  bool Remove(TimerId timer) { return events_.Remove(timer).has_value(); }

  // Runs the next event; false if there is none up to and including `limit`.
  bool Step(absl::Time limit = absl::InfiniteFuture());
  // The time of the next event; InfiniteFuture if there is none.
  absl::Time next() const { return events_.next(); }
  // Sets the time forward. The caller knows of no event before `time`.
  void AdvanceTo(absl::Time time) { now_ = time; }
  // True if so many events in a row happened at one moment that virtual time does not advance any
  // more.
  bool stuck() const;

  // The number of pending events of the loops of that process.
  std::size_t PendingOf(const SimLife& process) const;

  // Destroys the events whose life is over.
  void DropTheDead();
  // Destroys all events, now and whenever one is added later.
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
