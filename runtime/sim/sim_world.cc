#include "runtime/sim/sim_world.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/log/log.h"
#include "runtime/sim/sim_clock.h"
#include "runtime/sim/sim_events.h"
#include "runtime/sim/sim_file_system.h"
#include "runtime/sim/sim_host.h"
#include "runtime/sim/sim_shared_folder.h"

namespace leeway::runtime {

struct SimWorld::State {
  explicit State(std::uint64_t world_seed)
      : seed(world_seed), random(RandomAt(world_seed, StableHash("world"), 0)) {}

  // One simulated machine.
  struct Machine {
    std::uint64_t processes_started = 0;
    std::vector<std::shared_ptr<SimLife>> processes;  // not killed
    std::shared_ptr<SimFileSystem> disk;
    std::shared_ptr<SimClock> clock;
  };
  Machine& machine(const std::string& name);

  const std::uint64_t seed;
  runtime::Random random;
  // Shared with hosts and loops, which may outlive the world.
  const std::shared_ptr<SimEvents> events = std::make_shared<SimEvents>();
  std::map<std::string, Machine> machines;
  std::string shared_folder;  // empty: none

  bool keep_trace = false;
  std::string trace;
  std::size_t lines_kept_max = 0;
  std::deque<std::string> last_lines;
  std::uint64_t trace_hash = 0xcbf29ce484222325;  // FNV-1a of the trace's text
};

SimWorld::State::Machine& SimWorld::State::machine(const std::string& name) {
  Machine& machine = machines[name];
  if (machine.disk == nullptr) {
    machine.disk =
        std::make_shared<SimFileSystem>(RandomAt(seed, StableHash("disk"), StableHash(name)));
    machine.clock = std::make_shared<SimClock>(events->Now());
  }
  return machine;
}

SimWorld::SimWorld(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {}
// Destroys the events first, because objects that tasks hold may use the world.
SimWorld::~SimWorld() { state_->events->End(); }

absl::Time SimWorld::Now() const { return state_->events->Now(); }

std::unique_ptr<Host> SimWorld::NewHost(const std::string& name) {
  State::Machine& machine = state_->machine(name);
  Trace(absl::StrCat("start ", name));
  auto life = std::make_shared<SimLife>();
  machine.processes.push_back(life);
  const std::uint64_t seed = RandomAt(state_->seed, StableHash(absl::StrCat("process ", name)),
                                      ++machine.processes_started);
  std::shared_ptr<FileSystem> disk = machine.disk;
  if (const std::string& folder = state_->shared_folder; !folder.empty()) {
    disk = std::make_shared<SimSharedFolder>(folder, state_->machine(folder).disk, machine.disk);
  }
  return NewSimHost(state_->events, std::move(life), std::move(disk), machine.clock, seed);
}

void SimWorld::Kill(const std::string& host_name) {
  Trace(absl::StrCat("kill ", host_name));
  State::Machine& machine = state_->machine(host_name);
  for (const std::shared_ptr<SimLife>& process : machine.processes) process->ended = true;
  machine.processes.clear();
  state_->events->DropTheDead();
  machine.disk->Crash();
}

std::size_t SimWorld::PendingOf(const std::string& host_name) const {
  std::size_t pending = 0;
  for (const auto& process : state_->machine(host_name).processes) {
    pending += state_->events->PendingOf(*process);
  }
  return pending;
}

void SimWorld::ShareFolder(const std::string& folder) { state_->shared_folder = folder; }

SimFileSystem* SimWorld::files(const std::string& host_name) {
  return state_->machine(host_name).disk.get();
}

void SimWorld::SetClockRate(const std::string& host_name, double rate) {
  state_->machine(host_name).clock->SetRate(rate, Now());
}

void SimWorld::Schedule(absl::Duration delay, Task task) {
  state_->events->Add(delay, nullptr, std::move(task));
}

std::uint64_t SimWorld::Random() { return state_->random.Next(); }
double SimWorld::Uniform() { return state_->random.Uniform(); }

bool SimWorld::Step() { return state_->events->Step(); }

absl::Status SimWorld::RunUntil(const std::function<bool()>& done, absl::Duration limit) {
  SimEvents& events = *state_->events;
  const absl::Time deadline = events.Now() + limit;
  while (!done()) {
    if (events.stuck()) {
      return absl::DeadlineExceededError(
          absl::StrCat("virtual time stands still at ", absl::FormatDuration(events.Elapsed())));
    }
    if (events.Step(deadline)) continue;
    if (events.next() == absl::InfiniteFuture()) {
      return absl::DeadlineExceededError(
          absl::StrCat("nothing is left to happen after ", absl::FormatDuration(events.Elapsed())));
    }
    events.AdvanceTo(deadline);
    return absl::DeadlineExceededError(
        absl::StrCat("not done within ", absl::FormatDuration(limit), " of virtual time"));
  }
  return absl::OkStatus();
}

void SimWorld::RunFor(absl::Duration duration) {
  SimEvents& events = *state_->events;
  const absl::Time end = events.Now() + duration;
  while (events.Step(end)) {
    if (events.stuck()) {
      LogError("virtual time stands still at ", absl::FormatDuration(events.Elapsed()));
      return;
    }
  }
  events.AdvanceTo(end);
}

void SimWorld::Trace(absl::string_view line) {
  const std::string text =
      absl::StrCat(absl::ToInt64Nanoseconds(state_->events->Elapsed()), " ", line, "\n");
  for (const char c : text) {
    state_->trace_hash = (state_->trace_hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  if (state_->keep_trace) state_->trace += text;
  if (state_->lines_kept_max == 0) return;
  if (state_->last_lines.size() >= state_->lines_kept_max) state_->last_lines.pop_front();
  state_->last_lines.push_back(text.substr(0, text.size() - 1));
}

std::uint64_t SimWorld::trace_hash() const { return state_->trace_hash; }
void SimWorld::KeepTrace(bool keep) { state_->keep_trace = keep; }
const std::string& SimWorld::trace() const { return state_->trace; }

void SimWorld::KeepLastLines(std::size_t lines) {
  state_->lines_kept_max = lines;
  while (state_->last_lines.size() > lines) state_->last_lines.pop_front();
}

const std::deque<std::string>& SimWorld::last_lines() const { return state_->last_lines; }

}  // namespace leeway::runtime
