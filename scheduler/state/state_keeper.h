// The keeper of a scheduler's durable state in a folder. A message is sent only once the state that
// it may rest on has been written and synced, so that a restarted scheduler knows all that nodes
// do.
#ifndef LEEWAY_SCHEDULER_STATE_STATE_KEEPER_H_
#define LEEWAY_SCHEDULER_STATE_STATE_KEEPER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/files/file_system.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "scheduler/state/state.h"
#include "scheduler/state/state_file.h"

namespace leeway::scheduler {

// Messages that wait to be sent. Beyond that the newest is dropped, since everything is resent.
inline constexpr std::size_t kSendsHeldMax = 1 << 18;
// After a write that failed.
inline constexpr absl::Duration kStateRetryInterval = absl::Milliseconds(500);

// Lives on the scheduler's loop; a loop of its own does the writing.
class StateKeeper {
 public:
  // The number of the present state: grows with every change of what is to be kept.
  using Stamp = std::function<std::uint64_t()>;
  using Collect = std::function<State()>;

  StateKeeper(runtime::Host* host, runtime::Loop* loop, std::string folder, Stamp stamp,
              Collect collect);
  ~StateKeeper();

  // Locks the folder for this process and reads the state in it; nullopt: there is none. The error
  // tells people the remedy.
  absl::StatusOr<std::optional<State>> Open();

  // Runs `send` once the present state is on the disk: at once if it is.
  void Once(runtime::Task send);
  // Writes the state if it has changed, though no message waits for it.
  void Write();
  // The cluster is over: removes the state, and sends the messages that wait.
  void Forget();

  const std::string& folder() const { return folder_; }
  const std::string& path() const { return path_; }
  // True if the present state is on disk.
  bool is_up_to_date() const { return stamp_() == durable_; }
  // Why the newest state is not on the disk yet; OK: it is, or is on its way.
  const absl::Status& trouble() const { return trouble_; }
  // Since when, while there is trouble.
  absl::Time trouble_since() const { return trouble_since_; }
  // The map's version in the state that this process wrote last; 0: it has written none.
  std::uint64_t written_version() const { return written_version_; }

 private:
  void StartWrite();
  void Written(std::uint64_t stamp, std::uint64_t version, const absl::Status& result);

  const std::string folder_, path_;
  runtime::Loop* const loop_;
  runtime::FileSystem* const files_;
  const Stamp stamp_;
  const Collect collect_;
  std::unique_ptr<runtime::FileLock> lock_;
  std::uint64_t durable_ = 0;  // stamp
  bool writing_ = false, forgotten_ = false;
  absl::Status trouble_;
  absl::Time trouble_since_;
  std::uint64_t written_version_ = 0;
  std::deque<std::pair<std::uint64_t, runtime::Task>> held_;  // by stamp
  runtime::Timer retry_timer_;
  StateFile file_;  // the writer's, while that lives
  // For calls on their way between the loops: null once this object has gone.
  std::shared_ptr<StateKeeper*> self_ = std::make_shared<StateKeeper*>(this);
  std::unique_ptr<runtime::LoopRunner> writer_;  // last, so that it stops first
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_STATE_STATE_KEEPER_H_
