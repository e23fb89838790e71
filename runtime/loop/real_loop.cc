#include "runtime/loop/real_loop.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "runtime/base/monotonic_time.h"
#include "runtime/base/random.h"
#include "runtime/loop/adaptive_busy_poll.h"
#include "runtime/loop/timer_queue.h"
#include "runtime/loop/wake_signal.h"

namespace leeway::runtime {
namespace {

// How long to sleep at most when nothing can wake the loop (see WakeSignal::fd).
constexpr absl::Duration kBlindSleep = absl::Milliseconds(1);

// Between two looks at the clock and at what only other threads of this process do.
constexpr int kBusyPollsPerSystemPoll = 32;
// How often a loop that looks at memory looks at descriptors too, where it has sources of both
// kinds.
constexpr absl::Duration kDescriptorsEvery = absl::Microseconds(10);

bool AnyReady(const RealLoop::WaitSet& set) {
  return std::any_of(set.busy_polls.begin(), set.busy_polls.end(),
                     [](const auto& busy_poll) { return busy_poll->Ready(); });
}

bool BusyPoll(const RealLoop::WaitSet& set) {
  for (int i = 0; i < kBusyPollsPerSystemPoll && !set.busy_polls.empty(); ++i) {
    if (AnyReady(set)) return true;
    PauseBriefly();
  }
  return false;
}

// Whether some of its sources have nothing but descriptors to tell by, and one of them tells.
bool AnyReadable(const RealLoop::WaitSet& set) {
  if (set.fds.size() <= set.busy_polls.size() + 1) return false;
  std::vector<pollfd> fds = set.fds;
  return ::poll(fds.data(), fds.size(), /*timeout=*/0) > 0;
}

// Looks for news as long as `set.pace` allows; true if there are any in memory. Only who polls may
// clear the signal, so that one, as what descriptors tell, ends the looking and no more.
bool Spin(const RealLoop::WaitSet& set, absl::Time start) {
  const absl::Time until = std::min(start + set.pace->Limit(start), set.until);
  const absl::Duration descriptors_every =
      set.busy_polls.empty() ? absl::ZeroDuration() : kDescriptorsEvery;
  absl::Time descriptors_at = start + descriptors_every;
  for (absl::Time now = start; now < until;) {
    if (BusyPoll(set)) return true;
    if (set.signal->is_set()) return false;
    if (now >= descriptors_at) {
      if (AnyReadable(set)) return false;
      descriptors_at = now + descriptors_every;
    }
    now = MonotonicNow();
    ::sched_yield();  // where there are more threads than cores, the one it waits for may need this
    const absl::Time after = MonotonicNow();
    set.pace->SawYield(after - now, after);
    now = after;
  }
  return false;
}

}  // namespace

struct RealLoop::State {
  State(std::uint64_t seed, absl::Duration busy_poll) : pace(busy_poll), random(seed) {}

  WakeSignal signal;
  AdaptiveBusyPoll pace;
  std::atomic<bool> stopped{false};

  std::mutex mutex;
  std::vector<Task> posted;  // under mutex
  bool drained = false;      // under mutex: nothing posted from here on will ever run

  // Below: only on the loop.
  std::vector<Task> spare;  // empty; keeps its memory from round to round
  std::vector<Task> before_sleep;
  TimerQueue<Task> timers;
  std::vector<Source*> sources;  // null: removed during the round that goes over them
  bool in_sources = false;
  bool quiet = false;                              // the last round found nothing to do
  absl::Time planned_wake = absl::InfinitePast();  // what PrepareWait last said
  runtime::Random random;

  void RunBeforeSleep();
  bool RunPosted();
  bool RunTimers(absl::Time now);
  bool RunSources();
  void Drain();
};

namespace {

// The loop whose round this thread is in: what such a task posts or sets needs no wake-up, because
// the round is followed by another look.
thread_local const void* current_loop = nullptr;

class InRound {
 public:
  explicit InRound(const void* loop) : outer_(std::exchange(current_loop, loop)) {}
  ~InRound() { current_loop = outer_; }
  InRound(const InRound&) = delete;
  InRound& operator=(const InRound&) = delete;

 private:
  const void* outer_;
};

}  // namespace

// First in a round rather than last: whatever is added in a round calls for another one anyway, and
// what has been used up of a source's edge is asked for in this one. What these tasks add is run as
// well (a batch goes into a message, that into a frame, which is written), though not without end.
void RealLoop::State::RunBeforeSleep() {
  constexpr int kPasses = 4;
  for (int pass = 0; pass < kPasses && !before_sleep.empty(); ++pass) {
    std::vector<Task> tasks = std::exchange(before_sleep, {});
    for (Task& task : tasks) std::move(task)();
    tasks.clear();
    if (before_sleep.empty()) before_sleep = std::move(tasks);  // keeps its memory
  }
}

bool RealLoop::State::RunPosted() {
  std::vector<Task> tasks = std::exchange(spare, {});
  {
    const std::lock_guard lock(mutex);
    tasks.swap(posted);
  }
  const bool any = !tasks.empty();
  for (Task& task : tasks) {
    if (stopped) break;
    // A task is gone before the next one runs, and what it held with it.
    Task mine = std::move(task);
    std::move(mine)();
  }
  tasks.clear();
  spare = std::move(tasks);
  return any;
}

bool RealLoop::State::RunTimers(absl::Time now) {
  // Not those which this round's timers set: a timer never runs within the call that set it, nor
  // can one that sets itself again keep the round from ending.
  const TimerId newest = timers.newest();
  bool any = false;
  while (!stopped) {
    std::optional<Task> task = timers.PopDue(now, newest);
    if (!task.has_value()) break;
    any = true;
    std::move (*task)();
  }
  return any;
}

bool RealLoop::State::RunSources() {
  bool any = false;
  const bool nested = std::exchange(in_sources, true);
  for (std::size_t i = 0; i < sources.size() && !stopped; ++i) {
    if (sources[i] != nullptr && sources[i]->Poll()) any = true;
  }
  in_sources = nested;
  if (!nested) std::erase(sources, nullptr);
  return any;
}

// Destroys what will never run. Tasks may hold anything, and their destructors may call the loop.
void RealLoop::State::Drain() {
  for (bool more = true; more;) {
    std::vector<Task> dropped = timers.RemoveIf([](const Task&) { return true; });
    std::move(before_sleep.begin(), before_sleep.end(), std::back_inserter(dropped));
    before_sleep.clear();
    {
      const std::lock_guard lock(mutex);
      drained = true;
      std::move(posted.begin(), posted.end(), std::back_inserter(dropped));
      posted.clear();
    }
    more = !dropped.empty();
  }
}

RealLoop::RealLoop(std::uint64_t seed, absl::Duration busy_poll)
    : state_(std::make_unique<State>(seed, busy_poll)) {}

RealLoop::~RealLoop() {
  Stop();
  state_->Drain();
}

absl::Time RealLoop::Now() const { return MonotonicNow(); }

void RealLoop::Post(Task task) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->drained) return;  // `task` goes with this call's arguments, after the lock
    state_->posted.push_back(std::move(task));
  }
  if (current_loop != this) state_->signal.Set();
}

TimerId RealLoop::After(absl::Duration delay, Task task) {
  const absl::Time due = Now() + std::max(delay, absl::ZeroDuration());
  const TimerId timer = state_->timers.Add(due, std::move(task));
  // By hand, one thread may set a timer while another sleeps until a later one.
  if (current_loop != this && due < state_->planned_wake) state_->signal.Set();
  return timer;
}

// No wake-up: who adds one turns the loop, or sees to it that the one that sleeps on it does.
void RealLoop::BeforeSleep(Task task) { state_->before_sleep.push_back(std::move(task)); }

bool RealLoop::Cancel(TimerId timer) { return state_->timers.Remove(timer).has_value(); }

std::uint64_t RealLoop::Random() { return state_->random.Next(); }

void RealLoop::AddSource(Source* source) {
  state_->sources.push_back(source);
  state_->quiet = false;
  if (current_loop != this) state_->signal.Set();
}

void RealLoop::RemoveSource(Source* source) {
  std::vector<Source*>& sources = state_->sources;
  const auto found = std::find(sources.begin(), sources.end(), source);
  if (found == sources.end()) return;
  if (state_->in_sources) {
    *found = nullptr;
  } else {
    sources.erase(found);
  }
}

void RealLoop::Run() {
  while (!state_->stopped) {
    if (!RunReady()) Wait(PrepareWait(absl::InfiniteFuture()));
  }
  const InRound round(this);
  state_->Drain();
}

void RealLoop::Stop() {
  state_->stopped = true;
  state_->signal.Set();
}

bool RealLoop::RunReady() {
  if (state_->stopped) return false;
  const InRound round(this);
  state_->RunBeforeSleep();
  const bool tasks = state_->RunPosted();
  // The clock is read only where a timer may be due.
  const bool timers = !state_->timers.empty() && state_->RunTimers(Now());
  const bool sources = state_->RunSources();
  state_->quiet = !tasks && !timers && !sources && state_->before_sleep.empty();
  return !state_->quiet;
}

RealLoop::WaitSet RealLoop::PrepareWait(absl::Time until) const {
  WaitSet set;
  set.signal = &state_->signal;
  set.pace = &state_->pace;
  set.fds.reserve(state_->sources.size() + 1);
  set.fds.push_back({.fd = state_->signal.fd(), .events = POLLIN, .revents = 0});
  for (Source* source : state_->sources) {
    set.fds.push_back({.fd = source->fd(), .events = POLLIN, .revents = 0});
    if (std::shared_ptr<BusyPollSource> busy_poll = source->busy_poll())
      set.busy_polls.push_back(std::move(busy_poll));
  }
  bool ready = !state_->quiet || state_->stopped || !state_->before_sleep.empty();
  {
    const std::lock_guard lock(state_->mutex);
    ready = ready || !state_->posted.empty();
  }
  set.until = ready ? absl::InfinitePast() : std::min(until, state_->timers.next());
  state_->planned_wake = set.until;
  return set;
}

void RealLoop::Wait(const WaitSet& set) {
  const absl::Time start = MonotonicNow();
  const bool only_signal = set.fds.size() == 1;
  if (only_signal || set.until <= start) return WaitForAny({&set, 1});
  if (!Spin(set, start)) WaitForAny({&set, 1});
  set.pace->Saw(MonotonicNow() - start);
}

void RealLoop::WaitForAny(std::span<const WaitSet> sets) {
  std::vector<pollfd> fds;
  absl::Time until = absl::InfiniteFuture();
  bool news = false;
  for (const WaitSet& set : sets) {
    until = std::min(until, set.until);
    fds.insert(fds.end(), set.fds.begin(), set.fds.end());
    for (const auto& busy_poll : set.busy_polls) busy_poll->BeginSleep();
    news = news || AnyReady(set);
  }
  if (news) until = absl::InfinitePast();
  absl::Duration left = std::max(until - MonotonicNow(), absl::ZeroDuration());
  const bool blind =
      std::any_of(sets.begin(), sets.end(), [](const WaitSet& set) { return set.fds[0].fd < 0; });
  if (blind) left = std::min(left, kBlindSleep);
  const timespec timeout = absl::ToTimespec(left);
  const int ready =
      ::ppoll(fds.data(), fds.size(), left == absl::InfiniteDuration() ? nullptr : &timeout,
              /*sigmask=*/nullptr);
  std::size_t first = 0;
  for (const WaitSet& set : sets) {
    for (const auto& busy_poll : set.busy_polls) busy_poll->EndSleep();
    if (ready > 0 && fds[first].revents != 0) set.signal->Clear();
    first += set.fds.size();
  }
}

void RealLoop::Wake() { state_->signal.Set(); }

}  // namespace leeway::runtime
