#include "tests/simulation/aimed_faults.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::simulation {
namespace {

constexpr absl::string_view kStateDisk = "the scheduler's disk";
constexpr absl::string_view kSharedDisk = "the disk of checkpoints";

// All aims, each with the same chance.
constexpr absl::string_view kAims[] = {"Join",
                                       "Welcome",
                                       "ClusterMap",
                                       "MapAck",
                                       "Heartbeat",
                                       "HeartbeatAck",
                                       "NodeDown",
                                       "BarrierEnter",
                                       "CreateTable",
                                       "TableReply",
                                       "InstallTable",
                                       "InstallTableReply",
                                       "Request",
                                       "Reply",
                                       "ClockTick",
                                       "ClockAck",
                                       "EnterClock",
                                       "EnterClockReply",
                                       "ReplicateAck",
                                       "ReplicaReady",
                                       "Admin",
                                       "AdminReply",
                                       "CheckpointPrepare",
                                       "CheckpointPrepared",
                                       "CheckpointCut",
                                       "CheckpointWritten",
                                       "PushBatch",
                                       "PushAcks",
                                       "CodecReport",
                                       "LinkReport",
                                       "LeadNow",
                                       "BarrierRelease",
                                       "Replicate 1",
                                       "Replicate 2",
                                       "Replicate 3",
                                       "Replicate 4",
                                       "Replicate 5",
                                       "Replicate 6",
                                       "Replicate 7",
                                       "Replicate 8",
                                       "Replicate 9",
                                       "Replicate 10",
                                       "Replicate 11",
                                       "Replicate 12",
                                       kStateDisk,
                                       kStateDisk,
                                       kSharedDisk,
                                       kSharedDisk};

constexpr std::uint64_t kShotsMax = 7;
// The number of messages that pass before a strike: up to 2^kPassesLog.
constexpr std::uint64_t kPassesLog = 7;
constexpr absl::Duration kShortest = absl::Microseconds(200);
// Together with the partitions of a plan well below the failure timeout.
constexpr absl::Duration kLongestCut = absl::Milliseconds(600);
constexpr absl::Duration kLatestHeartbeat = absl::Milliseconds(300);
constexpr absl::Duration kLongestReaction = absl::Milliseconds(3);
constexpr absl::Duration kBackAfterMax = absl::Seconds(4);

bool IsHeartbeat(absl::string_view aim) { return absl::StartsWith(aim, "Heartbeat"); }

// Connections to the scheduler are never broken: over a slow link a node may not reconnect in time,
// and is then taken for dead.
bool IsScheduler(const std::string& host) { return absl::StartsWith(host, Name(Role::kScheduler)); }

}  // namespace

std::string AimOf(const proto::AnyMessage& message) {
  const auto* const entry = std::get_if<proto::Replicate>(&message);
  if (entry == nullptr) return std::string(proto::NameOf(message));
  return absl::StrCat("Replicate ", static_cast<int>(entry->kind));
}

AimedFaults::AimedFaults(SimCluster* cluster, bool workers_come_back, absl::Duration window,
                         std::uint64_t seed, Strike strike)
    : cluster_(cluster), workers_come_back_(workers_come_back), strike_(std::move(strike)) {
  runtime::Random random(runtime::RandomAt(seed, runtime::StableHash("aimed faults"), 0));
  for (std::uint64_t left = random.Below(kShotsMax + 1); left > 0; --left) {
    shots_.push_back(Choose(window, &random));
  }
  waiting_ = shots_.size();
  cluster_->network().SetDirector([this](const van::Overheard& heard) { return Direct(heard); });
}

AimedFaults::~AimedFaults() { cluster_->network().SetDirector(nullptr); }

AimedFaults::Shot AimedFaults::Choose(absl::Duration window, runtime::Random* random) const {
  Shot shot;
  shot.aim = std::string(kAims[random->Below(std::size(kAims))]);
  shot.start = window * random->Uniform();
  shot.patience = window / 3;
  shot.passes = random->Below(std::uint64_t{1} << random->Below(kPassesLog + 1));
  const bool both = random->Below(4) == 0;
  const bool changed = both || random->Below(2) == 0;
  if (changed) shot.change = static_cast<Change>(1 + random->Below(3));
  if (both || !changed) shot.deed = static_cast<Deed>(1 + random->Below(5));
  const absl::Duration longest =
      IsHeartbeat(shot.aim) ? kLatestHeartbeat : 1.5 * cluster_->config().failure_timeout;
  shot.length = LogUniform(kShortest, longest, random);
  shot.reaction =
      random->Below(2) == 0 ? absl::ZeroDuration() : kLongestReaction * random->Uniform();
  return shot;
}

void AimedFaults::Start() {
  for (std::size_t i = 0; i < shots_.size(); ++i) {
    cluster_->world().Schedule(shots_[i].start, [this, i] {
      shots_[i].armed = true;
      ++armed_;
      if (shots_[i].aim == kStateDisk) ArmDisk(i, SimCluster::HostName(Role::kScheduler, 0));
      if (shots_[i].aim == kSharedDisk) ArmDisk(i, kSharedFolder);
    });
    cluster_->world().Schedule(shots_[i].start + shots_[i].patience, [this, i] { Disarm(i); });
  }
}

void AimedFaults::ArmDisk(std::size_t index, const std::string& disk) {
  runtime::SimFileSystem* const files = cluster_->world().files(disk);
  files->HaltAfter(shots_[index].passes, [this, index, disk, files] {
    ++struck_;
    cluster_->Note(absl::StrCat("aimed fault at ", shots_[index].aim));
    // Writes that fail from here on belong to the moment at which the machine fails.
    cluster_->world().Schedule(absl::ZeroDuration(), [this, index, disk, files] {
      if (disk == kSharedFolder) {
        files->Crash();
      } else {
        Kill(shots_[index], disk);
      }
      files->Resume();
      Disarm(index);
    });
  });
}

// The shot has struck, or given up.
void AimedFaults::Disarm(std::size_t index) {
  Shot& shot = shots_[index];
  if (!std::exchange(shot.armed, false)) return;
  --armed_;
  --waiting_;
  if (shot.aim == kStateDisk) {
    cluster_->world().files(SimCluster::HostName(Role::kScheduler, 0))->Resume();
  }
  if (shot.aim == kSharedDisk) cluster_->world().files(kSharedFolder)->Resume();
}

van::SimNetwork::Fate AimedFaults::Direct(const van::Overheard& heard) {
  van::SimNetwork::Fate fate;
  if (armed_ == 0 && cut_until_.empty()) return fate;
  if (std::holds_alternative<std::monostate>(heard.message)) return fate;
  const std::string aim = AimOf(heard.message);
  if (const auto cut = cut_until_.find({heard.from, heard.to}); cut != cut_until_.end()) {
    if (cut->second <= cluster_->world().Now()) {
      cut_until_.erase(cut);
    } else if (!IsHeartbeat(aim)) {
      fate.lost = true;
      return fate;
    }
  }
  for (Shot& shot : shots_) {
    if (!shot.armed || shot.aim != aim || shot.passed++ < shot.passes) continue;
    shot.armed = false;
    --armed_;
    ++struck_;
    return Hit(shot, heard.from, heard.to);
  }
  return fate;
}

van::SimNetwork::Fate AimedFaults::Hit(const Shot& shot, const std::string& from,
                                       const std::string& to) {
  cluster_->Note(absl::StrCat("aimed fault at ", shot.aim, " ", from, ">", to, ": ",
                              static_cast<int>(shot.change), " ", static_cast<int>(shot.deed)));
  // The network must not change during a send.
  const bool kills = shot.deed == Deed::kKillSender || shot.deed == Deed::kKillReceiver;
  cluster_->world().Schedule(kills ? shot.reaction : absl::ZeroDuration(), [this, shot, from, to] {
    Do(shot, from, to);
    --waiting_;
  });
  van::SimNetwork::Fate fate;
  fate.lost = shot.change == Change::kLost;
  if (shot.change == Change::kDelayed) fate.delay = shot.length;
  if (shot.change == Change::kRepeated) fate.repeat = shot.length;
  return fate;
}

void AimedFaults::Do(const Shot& shot, const std::string& from, const std::string& to) {
  const absl::Time until = cluster_->world().Now() + std::min(shot.length, kLongestCut);
  switch (shot.deed) {
    case Deed::kNone:
      return;
    case Deed::kBreak:
      if (IsScheduler(from) || IsScheduler(to)) return;
      return cluster_->network().Break(from, to);
    case Deed::kCutThere:
      cut_until_[{from, to}] = until;
      return;
    case Deed::kCutBack:
      cut_until_[{to, from}] = until;
      return;
    case Deed::kKillSender:
      return Kill(shot, from);
    case Deed::kKillReceiver:
      return Kill(shot, to);
  }
}

void AimedFaults::Kill(const Shot& shot, const std::string& host) {
  Episode episode;
  episode.host = host;
  episode.length = std::min(shot.length, kBackAfterMax);
  if (IsScheduler(host)) {
    episode.kind = FaultKind::kKillScheduler;
  } else if (absl::StartsWith(host, Name(Role::kServer))) {
    episode.kind = FaultKind::kKillServer;
  } else if (absl::StartsWith(host, Name(Role::kWorker))) {
    episode.kind = workers_come_back_ ? FaultKind::kRestartWorker : FaultKind::kKillWorker;
  } else {
    return;  // a tool or a reader
  }
  strike_(episode);
}

std::string AimedFaults::ToString() const {
  std::string text;
  for (const Shot& shot : shots_) {
    absl::StrAppend(&text, "  ", absl::FormatDuration(shot.start), " aimed at ", shot.aim,
                    " after ", shot.passes, "\n");
  }
  return text;
}

}  // namespace leeway::simulation
