// The saving of checkpoints of a running cluster, one at a time: asks the servers which clock the
// workers have reached, chooses the clock of the cut, has every server write its shards at it, and
// writes the manifest when all have been written. If an attempt fails (a server died, shards moved,
// the clock had passed) it begins anew until its time is up. docs/checkpoint-format.md has the
// protocol.
//
// Saves on command, periodically and when all workers have left. Knows no network. Lives on the
// scheduler's loop; disks are waited for on another (CheckpointDisk).
#ifndef LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINTS_H_
#define LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINTS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "checkpoint/manifest.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "scheduler/admin/admin_service.h"
#include "scheduler/checkpoints/checkpoint_disk.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

inline constexpr std::size_t kSavesWaitingMax = 64;

class Checkpoints {
 public:
  // The cluster as it is now.
  struct Facts {
    absl::Status ready;  // or why nothing can be saved
    std::uint64_t cluster = 0;
    std::uint64_t epoch = 0;
    std::uint32_t num_shards = 0;
    std::uint64_t block_bytes = 0;
    std::vector<std::uint32_t> servers;  // the living ones' nodes
    std::vector<checkpoint::TableEntry> tables;
    bool bounded = false;           // workers of one of them have been in several clocks at a time
    std::uint64_t model_bytes = 0;  // of all shards once, as servers last said; 0: not known

    bool IsBounded() const;  // or may be
  };
  using GetFacts = std::function<Facts()>;
  using Tell = std::function<void(std::uint32_t node, const proto::AnyMessage& message)>;
  // A checkpoint that has been saved.
  struct Saved {
    std::string path;
    checkpoint::Manifest manifest;
  };
  using Done = std::function<void(const absl::StatusOr<Saved>&)>;

  // All outlive it.
  Checkpoints(const Config* config, runtime::Host* host, runtime::Loop* loop,
              const MembershipTable* members, GetFacts facts, Tell tell);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  struct Wish {
    std::string directory;  // empty: LEEWAY_CHECKPOINT_DIR
    bool incremental = false;
    std::optional<std::uint64_t> at =
        {};               // a clock at which workers wait; taken if that is possible
    bool at_end = false;  // all workers have left: of the clock that they have reached
  };
  // Attempts are numbered from this on. Servers take no lower number than they have seen, so
  // `generation` grows with every start of the scheduler, whatever the calendar says.
  void NumberFrom(std::uint64_t generation) { attempt_ = generation << 32; }
  // Saves a checkpoint after those asked for before. At most kSavesWaitingMax wait.
  void Save(Wish wish, Done done);
  // checkpoint-save [FOLDER [incremental] [at:CLOCK]]. Answered once it is saved.
  void SaveCommand(const AdminService::Arguments& arguments, const AdminService::Answer& answer);

  // From servers.
  void OnPrepared(std::uint32_t node, const proto::CheckpointPrepared& prepared);
  void OnWritten(std::uint32_t node, const proto::CheckpointWritten& written);
  // To be called often: begins checkpoints that are due, and resends unanswered requests.
  void Tick();
  // The cluster ends: nothing more is begun.
  void Stop();

  // The checkpoint that is being saved, for people; empty: none.
  struct View {
    std::string path;
    std::string phase;
    std::uint64_t clock = 0;
    std::size_t servers = 0, servers_done = 0;
  };
  std::optional<View> view() const;

  // The last success and the last failure of this process, by the loop's clock.
  struct History {
    struct Good {
      std::string path;
      std::uint64_t clock = 0, bytes = 0;
      absl::Time at;
    };
    struct Bad {
      std::string reason;
      absl::Time at;
    };
    std::optional<Good> last_good;
    std::optional<Bad> last_failure;
  };
  const History& history() const { return history_; }

 private:
  struct Waiting {
    Wish wish;
    Done done;
    absl::Time deadline;
  };
  enum class Phase { kIdle, kOpening, kPreparing, kCutting, kFinishing, kPausing };

  void NextWish();
  void Open();
  void OnOpened(std::uint64_t attempt, absl::StatusOr<CheckpointDisk::Opened> opened);
  void Prepare();
  void Cut(std::uint64_t newest_clock);
  absl::StatusOr<checkpoint::Manifest> ManifestOf(bool whole) const;
  void OnAllWritten();
  void OnFinished(const absl::StatusOr<checkpoint::Manifest>& manifest);
  void TryAgain(const absl::Status& why);
  void Fail(const absl::Status& reason);
  absl::Status WithBytesNeeded(const absl::Status& why) const;
  void Over(const absl::StatusOr<Saved>& result);
  void SayAgain();
  absl::Status TimedOut() const;
  bool ServersHaveChanged() const;
  void LookWhetherDue();
  void LookAtClocks(std::uint64_t newest_clock);
  void SavePeriodically();
  absl::Time Now() const { return loop_->Now(); }

  const Config* const config_;
  runtime::Loop* const loop_;
  runtime::Host* const host_;
  const MembershipTable* const members_;
  const GetFacts get_facts_;
  const Tell tell_;
  bool stopped_ = false;
  std::deque<Waiting> wishes_;  // the first one is being seen to

  // Of the first wish.
  Phase phase_ = Phase::kIdle;
  std::uint64_t attempt_ = 0;  // its number; grows for ever
  std::uint64_t margin_ = 0;   // clocks between the fastest worker and the cut
  Facts facts_;
  CheckpointDisk::Opened opened_;
  std::uint64_t clock_ = 0;
  std::uint64_t newest_clock_ = 0;
  std::set<std::uint32_t> awaited_;  // servers that have not answered
  std::vector<proto::CheckpointFile> files_;
  absl::Time resend_at_ = absl::InfiniteFuture();
  absl::Duration pause_ = absl::ZeroDuration();
  absl::Status trouble_;  // of the last attempt
  History history_;

  // Periodic ones.
  absl::Time due_at_ = absl::InfiniteFuture();
  std::uint64_t due_clock_ = 0;
  bool asking_clocks_ = false;
  absl::Time ask_at_ = absl::InfinitePast();
  std::uint64_t saved_periodically_ = 0;

  // For calls on their way from the other loop: null once this object has gone.
  std::shared_ptr<Checkpoints*> self_ = std::make_shared<Checkpoints*>(this);
  CheckpointDisk disk_;  // last, so that its loop stops first
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINTS_H_
