#include "runtime/sim/sim_events.h"

#include <algorithm>
#include <utility>

namespace leeway::runtime {
namespace {

constexpr int kEventsPerMomentMax = 1 << 20;

}  // namespace

// Not absl::Time(), which some code uses for "never".
absl::Time SimEvents::Start() { return absl::UnixEpoch() + absl::Hours(24 * 365); }

absl::Duration SimEvents::Elapsed() const { return now_ - Start(); }

TimerId SimEvents::Add(absl::Duration delay, std::shared_ptr<const SimLife> life, Task task) {
  if (ended_ || (life != nullptr && life->over())) return TimerId::kNone;
  return events_.Add(now_ + std::max(delay, absl::ZeroDuration()),
                     Event{std::move(life), std::move(task)});
}

bool SimEvents::Step(absl::Time limit) {
  const absl::Time next = events_.next();
  if (next == absl::InfiniteFuture() || next > limit) return false;
  // Time is past the event only if AdvanceTo moved it there; the event then runs late.
  events_this_moment_ = next > now_ ? 0 : events_this_moment_ + 1;
  now_ = std::max(now_, next);
  std::optional<Event> event = events_.PopDue(next);
  std::move(event->task)();
  return true;
}

bool SimEvents::stuck() const { return events_this_moment_ >= kEventsPerMomentMax; }

std::size_t SimEvents::PendingOf(const SimLife& process) const {
  return events_.CountIf([&](const Event& event) {
    return event.life != nullptr && event.life->parent.get() == &process && !event.life->over();
  });
}

void SimEvents::DropTheDead() {
  // Destroyed on return, in their order, when the queue is consistent again.
  const std::vector<Event> dropped = events_.RemoveIf(
      [](const Event& event) { return event.life != nullptr && event.life->over(); });
}

void SimEvents::End() {
  ended_ = true;
  const std::vector<Event> dropped = events_.RemoveIf([](const Event&) { return true; });
}

}  // namespace leeway::runtime
