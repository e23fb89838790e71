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

// The longest sleep when no descriptor can wake the loop (see WakeSignal::fd).
constexpr absl::Duration kBlindSleep = absl::Milliseconds(1);

// Checks of memory between two looks at the clock and at the wake signal.
constexpr int kBusyPollsPerSystemPoll = 32;
// The interval at which a loop with sources of both kinds polls descriptors while it polls memory.
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

// True if a source that has only a descriptor is readable.
bool AnyReadable(const RealLoop::WaitSet& set) {
  if (set.fds.size() <= set.busy_polls.size() + 1) return false;
  std::vector<pollfd> fds = set.fds;
  return ::poll(fds.data(), fds.size(), /*timeout=*/0) > 0;
}

// Polls for as long as `set.pace` allows; true if an event in memory was found. Only the thread
// that calls ppoll may clear the wake signal, so a signal or a readable descriptor just ends the
// polling (false).
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
    ::sched_yield();  // the thread that it waits for may need this core
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
  std::vector<Task> posted;  // guarded by mutex
  bool drained = false;      // guarded by mutex; true: tasks posted from now on never run

  // Below: only on the loop.
  std::vector<Task> spare;  // empty; keeps its capacity from round to round
  std::vector<Task> before_sleep;
  TimerQueue<Task> timers;
  std::vector<Source*> sources;  // null: removed during the round that iterates over them
  bool in_sources = false;
  bool quiet = false;                              // true if the last round found nothing to do
  absl::Time planned_wake = absl::InfinitePast();  // WaitSet::until of the last PrepareWait
  runtime::Random random;

  void RunBeforeSleep();
  bool RunPosted();
  bool RunTimers(absl::Time now);
  bool RunSources();
  void Drain();
};

namespace {

// The loop whose round this thread runs. Tasks and timers added in a round need no wake-up, because
// the loop looks for work again before it sleeps.
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

// These tasks run first in a round: they may add tasks that need another round anyway, and a
// source's edge that they consume is polled for in the same round. Tasks that they add run too (a
// batch becomes a message, that a frame, which is written), up to a limit of passes.
void RealLoop::State::RunBeforeSleep() {
  constexpr int kPasses = 4;
  for (int pass = 0; pass < kPasses && !before_sleep.empty(); ++pass) {
    std::vector<Task> tasks = std::exchange(before_sleep, {});
    for (Task& task : tasks) std::move(task)();
    tasks.clear();
    if (before_sleep.empty()) before_sleep = std::move(tasks);  // keeps its capacity
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
    // Destroys each task before the next one runs, and with it what it held.
    Task mine = std::move(task);
    std::move(mine)();
  }
  tasks.clear();
  spare = std::move(tasks);
  return any;
}

bool RealLoop::State::RunTimers(absl::Time now) {
  // Timers set in this round wait for the next: a timer never runs within the call that set it, and
  // one that sets itself again cannot keep the round from ending.
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

// Destroys tasks that will never run. Their destructors may call the loop.
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
    if (state_->drained) return;  // `task` is destroyed with the arguments, after the lock
    state_->posted.push_back(std::move(task));
  }
  if (current_loop != this) state_->signal.Set();
}

TimerId RealLoop::After(absl::Duration delay, Task task) {
  const absl::Time due = Now() + std::max(delay, absl::ZeroDuration());
  const TimerId timer = state_->timers.Add(due, std::move(task));
  // When the loop is run by hand, one thread may set a timer while another sleeps until a later
  // one.
  if (current_loop != this && due < state_->planned_wake) state_->signal.Set();
  return timer;
}

// No wake-up: the caller runs the loop, or wakes the thread that sleeps on it.
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
  // Reads the clock only if there is a timer.
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
