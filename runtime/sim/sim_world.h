// A whole cluster's world in one thread: virtual time, and every event in an order that follows
// from the seed alone.
#ifndef LEEWAY_RUNTIME_SIM_SIM_WORLD_H_
#define LEEWAY_RUNTIME_SIM_SIM_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/loop/loop.h"

namespace leeway::runtime {

class SimFileSystem;

class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  absl::Time Now() const;

  // One simulated process. Its loops (Host::Spawn) live until their runner goes or it is killed.
  // A name may be used again, e.g. after Kill: another process, which draws other random numbers
  // but finds the files that the one before it left.
  std::unique_ptr<Host> NewHost(const std::string& name);
  // From now on nothing of that process runs: its tasks and timers are dropped. Its machine goes
  // down with it (SimFileSystem::Crash).
  void Kill(const std::string& host_name);
  // The disk of the hosts of that name (what their Host::files() is), to make it fail.
  SimFileSystem* files(const std::string& host_name);

  // Tasks and timers of the loops of the processes of that name, to come.
  std::size_t PendingOf(const std::string& host_name) const;

  // What lies below that folder ("/shared") is the same to all hosts that are made from now on; it
  // stays when one is killed, and is a disk of its own: files(folder).
  void ShareFolder(const std::string& folder);

  // From now on the clock of the hosts of that name (their loops' Now, and their timers) goes at
  // that rate: seconds in one of the world's.
  void SetClockRate(const std::string& host_name, double rate);

  // The world's own events (a network's deliveries, a test's script): at least `delay` from now.
  void Schedule(absl::Duration delay, Task task);
  std::uint64_t Random();  // the world's stream
  double Uniform();        // [0, 1)

  // Runs the next event; false when there is none.
  bool Step();
  // Runs until `done` holds. DEADLINE_EXCEEDED when virtual time passes `limit` first, or nothing
  // is left to happen, or it stands still (tasks that post themselves again for ever).
  absl::Status RunUntil(const std::function<bool()>& done, absl::Duration limit);
  void RunFor(absl::Duration duration);

  // Everything worth telling, in order, with its virtual time; the trace of a run is its identity.
  void Trace(absl::string_view line);
  std::uint64_t trace_hash() const;
  void KeepTrace(bool keep);  // whether trace() holds the text as well; default false
  const std::string& trace() const;
  // Keeps the newest lines, so that a failure can show what led to it; default 0.
  void KeepLastLines(std::size_t lines);
  const std::deque<std::string>& last_lines() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_WORLD_H_
