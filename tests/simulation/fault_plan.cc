#include "tests/simulation/fault_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {
namespace {

// Among the others, by start.
void Insert(Episode it, FaultPlan* plan) {
  plan->over = std::max(plan->over, it.start + it.length);
  const auto after = std::ranges::upper_bound(plan->episodes, it.start, {}, &Episode::start);
  plan->episodes.insert(after, std::move(it));
}

class Planner {
 public:
  Planner(const Config& config, std::uint32_t spare_servers, absl::Duration window,
          runtime::Random* random)
      : config_(config),
        spare_servers_(spare_servers),
        window_(window),
        random_(random),
        often_(0.3 + 0.6 * random->Uniform()) {}

  // Some seeds have few kinds and some nearly all, a few of them twice.
  void Add(FaultKind kind) {
    if (random_->Uniform() >= often_) return;
    AddOne(kind);
    if (random_->Below(3) == 0) AddOne(kind);
  }
  std::string SomeServer() { return Host(Role::kServer); }
  // One of that kind.
  Episode One(FaultKind kind) {
    plan_ = {};
    AddOne(kind);
    return std::move(plan_.episodes.front());
  }
  FaultPlan Take() { return std::move(plan_); }

 private:
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return low + (high - low) * random_->Uniform();
  }
  std::string Host(Role role) {
    const std::uint32_t count = role == Role::kServer ? config_.num_servers : config_.num_workers;
    return SimCluster::HostName(role, static_cast<std::uint32_t>(random_->Below(count)));
  }
  std::string AnyHost() {
    switch (random_->Below(4)) {
      case 0:
        return SimCluster::HostName(Role::kScheduler, 0);
      case 1:
        return Host(Role::kServer);
      default:
        return Host(Role::kWorker);
    }
  }
  // A host that this one exchanges messages with.
  std::string PartnerOf(const std::string& host) {
    if (absl::StartsWith(host, Name(Role::kWorker))) return Host(Role::kServer);
    return Host(Role::kWorker);
  }
  // Chooses all links, one host's sending, its receiving, or one link.
  void ChooseLink(Episode* episode) {
    switch (random_->Below(6)) {
      case 0:
        episode->from = AnyHost();
        return;
      case 1:
        episode->to = AnyHost();
        return;
      case 2:
        episode->from = AnyHost();
        episode->to = PartnerOf(episode->from);
        return;
      default:
        return;
    }
  }
  // Partitions come one at a time, with time for a heartbeat in between: together they must stay
  // below the failure timeout.
  absl::Duration PartitionStart(absl::Duration length) {
    const absl::Duration start = partitions_until_ + Between(absl::ZeroDuration(), window_ / 6);
    partitions_until_ = start + length + absl::Seconds(1);
    return start;
  }

  void AddOne(FaultKind kind) {
    Episode it;
    it.kind = kind;
    it.length = Between(absl::Milliseconds(50), window_ / 2);
    it.start = Between(absl::ZeroDuration(), window_ - it.length);
    switch (kind) {
      case FaultKind::kDrop:
        ChooseLink(&it);
        it.link.drop_probability = 0.01 + 0.2 * random_->Uniform();
        break;
      case FaultKind::kDuplicate:
        ChooseLink(&it);
        it.link.duplicate_probability = 0.01 + 0.3 * random_->Uniform();
        break;
      case FaultKind::kDelay:
        ChooseLink(&it);
        it.link.delay_max = Between(absl::Milliseconds(1), absl::Milliseconds(60));
        break;
      case FaultKind::kReorder:
        ChooseLink(&it);
        it.link.reorder_probability = 0.05 + 0.4 * random_->Uniform();
        it.link.reorder_delay = Between(absl::Milliseconds(1), absl::Milliseconds(80));
        break;
      case FaultKind::kSlowLink:
        ChooseLink(&it);
        it.link.bytes_per_second = 3e5 + 3e6 * random_->Uniform();
        break;
      case FaultKind::kPartition:
      case FaultKind::kOneWayPartition:
        it.from = AnyHost();
        if (random_->Below(2) == 0) it.to = PartnerOf(it.from);
        if (random_->Below(2) == 0) std::swap(it.from, it.to);
        it.length = Between(absl::Milliseconds(20), absl::Milliseconds(1500));
        it.start = PartitionStart(it.length);
        break;
      case FaultKind::kLongPartition:
        it.host =
            Host(config_.replication > 1 && random_->Below(2) == 0 ? Role::kServer : Role::kWorker);
        it.from = it.host;
        it.length = config_.failure_timeout + Between(absl::Seconds(1), absl::Seconds(3));
        it.start = PartitionStart(it.length);
        break;
      case FaultKind::kKillWorker:
      case FaultKind::kRestartWorker:
      case FaultKind::kLeaveWorker:
        it.host = Host(Role::kWorker);
        break;
      case FaultKind::kKillServer:
      case FaultKind::kKillTransferSource:
      case FaultKind::kDrain:
        it.host = Host(Role::kServer);
        break;
      case FaultKind::kAddServer:
        it.host = SimCluster::HostName(
            Role::kServer,
            config_.num_servers + static_cast<std::uint32_t>(random_->Below(spare_servers_)));
        break;
      case FaultKind::kKillScheduler:
      case FaultKind::kRebalance:
      case FaultKind::kCheckpoint:
      case FaultKind::kSwitchCodec:
      case FaultKind::kChangeTable:
      case FaultKind::kPublish:
        it.host = SimCluster::HostName(Role::kScheduler, 0);
        break;
      case FaultKind::kDiskFull:
      case FaultKind::kDiskErrors:
        it.host = random_->Below(2) == 0 ? SimCluster::HostName(Role::kScheduler, 0)
                                         : std::string(kSharedFolder);
        it.amount = 0.1 + 0.5 * random_->Uniform();
        break;
      case FaultKind::kClockSkew:
        it.host = AnyHost();
        it.amount = 0.6 + 0.9 * random_->Uniform();
        break;
      case FaultKind::kPriorities:     // by AddPriorities
      case FaultKind::kAimed:          // by AimedFaults
      case FaultKind::kMoveScheduler:  // by AddSchedulerMoves
      case FaultKind::kStranger:       // by strangers
      case FaultKind::kRefusedPush:    // by scripts
      case FaultKind::kShortDeadline:
        return;
    }
    Insert(std::move(it), &plan_);
  }

  const Config& config_;
  const std::uint32_t spare_servers_;
  const absl::Duration window_;
  runtime::Random* const random_;
  const double often_;
  absl::Duration partitions_until_;
  FaultPlan plan_;
};

}  // namespace

absl::Duration LogUniform(absl::Duration low, absl::Duration high, runtime::Random* random) {
  return low * std::pow(absl::FDivDuration(high, low), random->Uniform());
}

FaultPlan MakeFaultPlan(const Config& config, std::uint32_t spare_servers, FaultSet kinds,
                        absl::Duration window, runtime::Random* random) {
  Planner planner(config, spare_servers, window, random);
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    const auto planned = static_cast<FaultKind>(kind);
    const bool apart = planned == FaultKind::kSwitchCodec || planned == FaultKind::kChangeTable ||
                       planned == FaultKind::kPriorities || planned == FaultKind::kAimed ||
                       planned == FaultKind::kMoveScheduler || planned == FaultKind::kLeaveWorker ||
                       planned == FaultKind::kStranger || planned == FaultKind::kRefusedPush ||
                       planned == FaultKind::kShortDeadline || planned == FaultKind::kPublish;
    if (kinds.test(kind) && !apart) planner.Add(planned);
  }
  return planner.Take();
}

namespace {

// The kinds that make pairs.
constexpr FaultKind kPaired[] = {
    FaultKind::kKillWorker,  FaultKind::kRestartWorker, FaultKind::kLeaveWorker,
    FaultKind::kKillServer,  FaultKind::kKillScheduler, FaultKind::kAddServer,
    FaultKind::kDrain,       FaultKind::kRebalance,     FaultKind::kCheckpoint,
    FaultKind::kSwitchCodec, FaultKind::kChangeTable};
constexpr std::uint64_t kPairsMax = 3;
constexpr absl::Duration kClosest = absl::Milliseconds(1), kFurthest = absl::Seconds(1);
// A death is told after the time of suspicion. Commands take some time, over slow links most.
constexpr absl::Duration kBeforeDeath = absl::Milliseconds(300),
                         kAfterDeath = absl::Milliseconds(20);
// What a host sends about the time of a pair is late in half of them, so that others hear of the
// second event before they have what the first one sent.
constexpr absl::Duration kLateBefore = absl::Milliseconds(200), kLateFor = absl::Seconds(2);
constexpr absl::Duration kLateMin = absl::Milliseconds(10), kLateMax = absl::Milliseconds(500);

// The others may not be where workers pass barriers.
bool ComesBack(FaultKind kind) {
  return kind == FaultKind::kRestartWorker || kind == FaultKind::kLeaveWorker;
}
bool KillsWorker(FaultKind kind) {
  return kind == FaultKind::kKillWorker || kind == FaultKind::kRestartWorker;
}

// About the time of that event.
Episode LateNear(const Episode& event, runtime::Random* random) {
  Episode late;
  late.kind = FaultKind::kDelay;
  late.start = std::max(event.start - kLateBefore, absl::ZeroDuration());
  late.length = kLateFor;
  late.link.delay_max = LogUniform(kLateMin, kLateMax, random);
  return late;
}
// What the host of that event sends, or else that server, is late.
Episode LateBeside(const Episode& event, const std::string& server, runtime::Random* random) {
  Episode late = LateNear(event, random);
  late.from = absl::StartsWith(event.host, Name(Role::kServer)) ? event.host : server;
  return late;
}
// The scheduler hears the host of that event late.
Episode HeardLate(const Episode& event, runtime::Random* random) {
  Episode late = LateNear(event, random);
  late.from = event.host;
  late.to = SimCluster::HostName(Role::kScheduler, 0);
  return late;
}

}  // namespace

void AddLeavings(const Config& config, FaultSet kinds, absl::Duration window,
                 runtime::Random* random, FaultPlan* plan) {
  if (random->Below(3) != 0) return;
  Planner planner(config, /*spare_servers=*/1, window, random);
  for (std::uint64_t left = 1 + random->Below(3); left > 0; --left) {
    Episode it = planner.One(FaultKind::kLeaveWorker);
    it.length = random->Below(2) == 0 ? absl::ZeroDuration() : absl::Seconds(1) * random->Uniform();
    if (kinds.test(static_cast<std::size_t>(FaultKind::kDelay)) && random->Below(2) == 0) {
      Insert(HeardLate(it, random), plan);
    }
    Insert(std::move(it), plan);
  }
}

void AddLateWorker(const Config& config, absl::Duration window, runtime::Random* random,
                   FaultPlan* plan) {
  if (random->Below(2) == 0) return;
  Planner planner(config, /*spare_servers=*/1, window, random);
  Episode it = planner.One(FaultKind::kRestartWorker);
  it.start = window / 4 * random->Uniform();
  it.length = absl::Seconds(1) * random->Uniform();
  Insert(std::move(it), plan);
}

void AddPairs(const Config& config, std::uint32_t spare_servers, FaultSet kinds,
              absl::Duration window, runtime::Random* random, FaultPlan* plan) {
  std::vector<FaultKind> may;
  const bool come_back = plan->Has(FaultKind::kRestartWorker) ||
                         plan->Has(FaultKind::kLongPartition) || plan->Has(FaultKind::kLeaveWorker);
  for (const FaultKind kind : kPaired) {
    if (kinds.test(static_cast<std::size_t>(kind)) && (come_back || !ComesBack(kind))) {
      may.push_back(kind);
    }
  }
  if (may.empty()) return;
  Planner planner(config, spare_servers, window, random);
  for (std::uint64_t left = random->Below(kPairsMax + 1); left > 0; --left) {
    Episode first = planner.One(may[random->Below(may.size())]);
    Episode second = planner.One(may[random->Below(may.size())]);
    absl::Duration apart = LogUniform(kClosest, kFurthest, random);
    if (KillsWorker(first.kind) && random->Below(2) == 0) {
      apart = config.suspicion - kBeforeDeath + (kBeforeDeath + kAfterDeath) * random->Uniform();
    }
    second.start = first.start + std::max(apart, kClosest);
    first.length = second.length = std::min({first.length, second.length, kFurthest});
    first.amount = random->Uniform();
    second.amount = random->Uniform();
    if (kinds.test(static_cast<std::size_t>(FaultKind::kDelay)) && random->Below(2) == 0) {
      Insert(LateBeside(second, planner.SomeServer(), random), plan);
    }
    Insert(std::move(first), plan);
    Insert(std::move(second), plan);
  }
}

void AddChanges(FaultKind kind, absl::Duration window, runtime::Random* random, FaultPlan* plan) {
  absl::Duration start;
  for (std::uint64_t left = 1 + random->Below(6); left > 0; --left) {
    const bool soon = start > absl::ZeroDuration() && random->Below(3) == 0;
    start = soon ? start + absl::Milliseconds(300) * random->Uniform() : window * random->Uniform();
    Episode it;
    it.kind = kind;
    it.start = start;
    it.host = SimCluster::HostName(Role::kScheduler, 0);
    it.amount = random->Uniform();
    Insert(std::move(it), plan);
  }
}

void AddSchedulerMoves(absl::Duration window, runtime::Random* random, FaultPlan* plan) {
  if (random->Below(3) != 0) return;
  for (std::uint64_t left = 1 + random->Below(3); left > 0; --left) {
    Episode it;
    it.kind = FaultKind::kMoveScheduler;
    it.start = window * random->Uniform();
    it.length = absl::Seconds(3) * random->Uniform();
    it.host = SimCluster::HostName(Role::kScheduler, 0);
    Insert(std::move(it), plan);
  }
}

void AddPriorities(absl::Duration window, runtime::Random* random, FaultPlan* plan) {
  if (random->Below(2) == 0) return;
  absl::Duration start = window * random->Uniform() / 2;
  for (std::uint64_t left = 1 + random->Below(5); left > 0 && start < window; --left) {
    Episode it;
    it.kind = FaultKind::kPriorities;
    it.start = start;
    it.length = std::min(window - start, window * random->Uniform() / 4);
    it.choice = random->Next();
    start += it.length;
    Insert(std::move(it), plan);
  }
}

bool FaultPlan::Has(FaultKind kind) const {
  return std::any_of(episodes.begin(), episodes.end(),
                     [kind](const Episode& it) { return it.kind == kind; });
}

std::string FaultPlan::ToString() const {
  std::string text;
  for (const Episode& it : episodes) {
    absl::StrAppend(&text, "  ", absl::FormatDuration(it.start), " +",
                    absl::FormatDuration(it.length), " ", NameOf(it.kind), " ", it.host,
                    it.host.empty() ? (it.from.empty() ? "*" : it.from) : "",
                    it.host.empty() ? absl::StrCat(">", it.to.empty() ? "*" : it.to) : "", "\n");
  }
  return text;
}

}  // namespace leeway::simulation
