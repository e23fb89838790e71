// SimWorld is the simulator of a whole cluster in one thread: virtual time, and events in an order
// that follows from the seed alone.
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

  // Starts a simulated process. Its loops (Host::Spawn) live until their runner is destroyed or the
  // process is killed. A name may be used again, e.g. after Kill: that is another process, which
  // draws other random numbers but finds the files of the one before it.
  std::unique_ptr<Host> NewHost(const std::string& name);
  // Ends the processes of that name: their tasks and timers are dropped, and their machine goes
  // down (SimFileSystem::Crash).
  void Kill(const std::string& host_name);
  // The disk of the hosts of that name (their Host::files()), for tests that make it fail.
  SimFileSystem* files(const std::string& host_name);

  // The number of pending tasks and timers of the loops of the processes of that name.
  std::size_t PendingOf(const std::string& host_name) const;

  // Makes the folder ("/shared") the same for all hosts that are made from now on. It stays when a
  // host is killed, and is a disk of its own: files(folder).
  void ShareFolder(const std::string& folder);

  // Sets the clock rate of the hosts of that name (their loops' Now and timers): seconds on their
  // clock per second of the world.
  void SetClockRate(const std::string& host_name, double rate);

  // Schedules an event of the world itself (a network's delivery, a step of a test's script), at
  // least `delay` from now.
  void Schedule(absl::Duration delay, Task task);
  std::uint64_t Random();  // the world's own random stream
  double Uniform();        // [0, 1)

  // Runs the next event; false when there is none.
  bool Step();
  // Runs until `done` is true. DEADLINE_EXCEEDED: virtual time would pass `limit`, no event is
  // left, or time does not advance (tasks that post themselves again for ever).
  absl::Status RunUntil(const std::function<bool()>& done, absl::Duration limit);
  void RunFor(absl::Duration duration);

  // Adds a line to the trace, with its virtual time. Two runs are the same if their traces are.
  void Trace(absl::string_view line);
  std::uint64_t trace_hash() const;
  void KeepTrace(bool keep);  // whether trace() keeps the text as well as the hash; default false
  const std::string& trace() const;
  // Keeps that many of the newest lines, to show what led to a failure; default 0.
  void KeepLastLines(std::size_t lines);
  const std::deque<std::string>& last_lines() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_WORLD_H_
