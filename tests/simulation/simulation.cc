#include "tests/simulation/simulation.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/chain.h"
#include "runtime/random.h"
#include "tests/simulation/fault_injector.h"
#include "tests/simulation/scripted_worker.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {
namespace {

constexpr std::size_t kLinesKept = 2000, kLinesShown = 40;
constexpr absl::Duration kRunMax = absl::Minutes(10);
constexpr absl::Duration kLookEvery = absl::Milliseconds(500);
// By then everything has reached all replicas, also what has to be sent again.
constexpr absl::Duration kRestBeforeComparing = absl::Seconds(2);

SimCluster::Setup ChooseCluster(const SeedOptions& options, runtime::Random* random) {
  SimCluster::Setup setup;
  setup.seed = options.seed;
  setup.data_options = options.data_options;
  Config& config = setup.config;
  config.replication = static_cast<std::uint32_t>(1 + random->Below(3));
  config.num_servers = config.replication + static_cast<std::uint32_t>(random->Below(3));
  config.num_workers = static_cast<std::uint32_t>(2 + random->Below(3));
  config.server_threads = static_cast<std::uint32_t>(1 + random->Below(2));
  config.num_shards = static_cast<std::uint32_t>(6 + random->Below(10));
  config.block_bytes = kBlockBytes;
  config.heartbeat_interval = absl::Milliseconds(250);
  config.failure_timeout = absl::Seconds(5);
  config.suspicion = absl::Milliseconds(100 + random->Below(900));
  config.scheduler_state = "/scheduler";
  // Short, so that a lost message does not keep the script out of the faults for long.
  config.resend_interval = absl::Milliseconds(30);
  return setup;
}

class Run {
 public:
  explicit Run(const SeedOptions& options)
      : options_(options),
        random_(runtime::RandomAt(options.seed, runtime::StableHash("simulation"), 0)),
        cluster_(ChooseCluster(options, &random_)),
        window_(absl::Seconds(8) + absl::Seconds(12) * random_.Uniform()),
        script_(ChooseScript()),
        history_(script_.tables.size(), cluster_.config().num_workers),
        checker_(&history_),
        injector_(&cluster_, MakeFaultPlan(cluster_.config(), options.faults, window_, &random_),
                  [this](const Episode& episode) { return Strike(episode); }) {
    cluster_.world().KeepTrace(options.keep_trace);
    cluster_.world().KeepLastLines(kLinesKept);
    for (std::uint32_t rank = 0; rank < cluster_.config().num_workers; ++rank) {
      workers_.push_back(std::make_unique<ScriptedWorker>(rank, &script_, &cluster_, &history_,
                                                          &checker_, random_.Next()));
    }
  }

  SeedResult Go() {
    StartAll();
    injector_.Start();
    Look();
    const bool ended =
        cluster_.RunUntil([this] { return checker_.violation().has_value() || Ended(); }, kRunMax);
    if (!ended) checker_.Fail("the run ends", "it is not over after 10 minutes");
    return Result();
  }

 private:
  Script ChooseScript() {
    Script script;
    script.tables = ChooseTables(cluster_.config().num_workers, &random_);
    // Whoever comes back would have missed some.
    if (options_.faults.test(static_cast<std::size_t>(FaultKind::kRestartWorker)) ||
        options_.faults.test(static_cast<std::size_t>(FaultKind::kLongPartition))) {
      script.barrier_every = 0;
    }
    script.iterations = static_cast<std::uint32_t>(200 + random_.Below(300));
    // Faults slow the workers down, so that they outlast most of them.
    script.think_max = window_ / script.iterations;
    return script;
  }

  // In any order, some a little later than others.
  void StartAll() {
    const auto soon = [this](runtime::Task task) {
      cluster_.world().Schedule(absl::Milliseconds(300) * random_.Uniform(), std::move(task));
    };
    soon([this] { cluster_.Start(Role::kScheduler); });
    for (std::uint32_t rank = 0; rank < cluster_.config().num_servers; ++rank) {
      soon([this, rank] { cluster_.Start(Role::kServer, rank); });
    }
    for (const auto& worker : workers_) soon([raw = worker.get()] { raw->Start(); });
  }

  // Nothing dies before everyone works, nor when the last reads have begun.
  FaultInjector::Struck Strike(const Episode& episode) {
    using Struck = FaultInjector::Struck;
    if (gate_open_) return Struck::kNo;
    if (!complete_) return Struck::kAskAgain;
    if (episode.kind == FaultKind::kKillScheduler) return StrikeScheduler(episode);
    for (std::uint32_t rank = 0; rank < cluster_.config().num_servers; ++rank) {
      if (episode.host == ServerName(rank)) return StrikeServer(rank, episode);
    }
    for (const auto& worker : workers_) {
      if (episode.host == WorkerName(worker->rank())) return StrikeWorker(worker.get(), episode);
    }
    return Struck::kNo;
  }

  FaultInjector::Struck StrikeScheduler(const Episode& episode) {
    if (scheduler() == nullptr) return FaultInjector::Struck::kNo;
    cluster_.Kill(episode.host);
    Later(episode.length, [this] { cluster_.Start(Role::kScheduler); });
    return FaultInjector::Struck::kYes;
  }

  // Only while every shard is on another living server as well.
  FaultInjector::Struck StrikeServer(std::uint32_t rank, const Episode& episode) {
    if (cluster_.config().replication < 2) return FaultInjector::Struck::kNo;
    if (scheduler() == nullptr || !CanDoWithout(rank)) return FaultInjector::Struck::kAskAgain;
    if (episode.kind == FaultKind::kLongPartition) {
      doomed_.insert(episode.host);
      Later(episode.length + 2 * cluster_.config().failure_timeout,
            [this, host = episode.host] { doomed_.erase(host); });
      return FaultInjector::Struck::kYes;
    }
    cluster_.Kill(episode.host);
    Later(episode.length, [this, rank] { cluster_.Start(Role::kServer, rank); });
    return FaultInjector::Struck::kYes;
  }

  // One worker stays in any case.
  FaultInjector::Struck StrikeWorker(ScriptedWorker* victim, const Episode& episode) {
    const auto works = [](const auto& worker) {
      return worker->at_work() && !worker->may_be_given_up();
    };
    if (!works(victim) || std::count_if(workers_.begin(), workers_.end(), works) < 2) {
      return FaultInjector::Struck::kNo;
    }
    if (episode.kind == FaultKind::kLongPartition) {
      victim->MayBeGivenUp();
      Later(episode.length + 2 * cluster_.config().failure_timeout,
            [victim, life = victim->life()] { victim->SurvivesIf(life); });
      return FaultInjector::Struck::kYes;
    }
    cluster_.Kill(episode.host);
    victim->OnKilled();
    if (episode.kind == FaultKind::kRestartWorker) {
      Later(episode.length, [victim] { victim->Start(); });
    }
    return FaultInjector::Struck::kYes;
  }

  // Something that is part of a fault: no quiet before it.
  void Later(absl::Duration delay, std::function<void()> what) {
    ++to_come_;
    cluster_.world().Schedule(delay, [this, what = std::move(what)] {
      --to_come_;
      what();
    });
  }

  // Those that were taken for dead end, and start again.
  void Replace() {
    for (std::uint32_t rank = 0; rank < cluster_.config().num_servers; ++rank) {
      SimProcess* const process = cluster_.Find(ServerName(rank));
      if (process == nullptr || !process->over().has_value() || process->over()->ok()) continue;
      cluster_.Note(absl::StrCat(ServerName(rank), " is over: ", process->over()->ToString()));
      cluster_.Kill(ServerName(rank));
      doomed_.erase(ServerName(rank));
      cluster_.Start(Role::kServer, rank);
    }
    for (const auto& worker : workers_) {
      if (!worker->given_up()) continue;
      cluster_.Kill(WorkerName(worker->rank()));
      worker->OnKilled();
      Later(absl::Seconds(1), [raw = worker.get()] { raw->Start(); });
    }
  }

  scheduler::Scheduler* scheduler() const {
    SimProcess* const process = cluster_.Find(SimCluster::HostName(Role::kScheduler, 0));
    return process == nullptr ? nullptr : process->scheduler();
  }
  static std::string ServerName(std::uint32_t rank) {
    return SimCluster::HostName(Role::kServer, rank);
  }
  static std::string WorkerName(std::uint32_t rank) {
    return SimCluster::HostName(Role::kWorker, rank);
  }

  // The server that a map means by a rank; null if it does not live (any more).
  ps::Server* ServerOf(const proto::ClusterMap& map, std::uint32_t rank) const {
    SimProcess* const process = cluster_.Find(ServerName(rank));
    if (process == nullptr || doomed_.contains(ServerName(rank))) return nullptr;
    const bool same = std::any_of(map.servers.begin(), map.servers.end(), [&](const auto& entry) {
      return entry.rank == rank && entry.alive && entry.node == process->node();
    });
    return same ? process->server() : nullptr;
  }

  bool CanDoWithout(std::uint32_t rank) const {
    const std::shared_ptr<const proto::ClusterMap> map = scheduler()->map();
    if (ServerOf(*map, rank) == nullptr) return false;
    for (std::uint32_t shard = 0; shard < map->owners.size(); ++shard) {
      const proto::Chain chain = proto::ChainOf(*map, shard);
      if (std::none_of(chain.members.begin(), chain.members.end(), [&](const auto& place) {
            return place.server_rank != rank && ServerOf(*map, place.server_rank) != nullptr;
          })) {
        return false;
      }
    }
    return true;
  }

  // Every chain has as many members as it should have.
  bool IsWhole() const {
    if (scheduler() == nullptr) return false;
    const std::shared_ptr<const proto::ClusterMap> map = scheduler()->map();
    for (std::uint32_t shard = 0; shard < map->owners.size(); ++shard) {
      const proto::Chain chain = proto::ChainOf(*map, shard);
      if (!chain.filling.empty() || chain.members.size() < cluster_.config().replication ||
          std::any_of(chain.members.begin(), chain.members.end(), [&](const auto& place) {
            return ServerOf(*map, place.server_rank) == nullptr;
          })) {
        return false;
      }
    }
    return true;
  }

  void CompareReplicas() {
    const std::shared_ptr<const proto::ClusterMap> map = scheduler()->map();
    for (std::uint32_t shard = 0; shard < map->owners.size(); ++shard) {
      std::string text;
      std::set<std::uint64_t> digests;
      for (const proto::ShardOwner& place : proto::ChainOf(*map, shard).members) {
        ps::DataThread* thread = ServerOf(*map, place.server_rank)->data_thread(place.thread);
        ps::Replica* replica = thread->FindReplica(shard);
        if (replica == nullptr) {
          checker_.Fail("replicas are equal",
                        absl::StrCat("server ", place.server_rank, " does not have shard ", shard));
          return;
        }
        digests.insert(replica->shard().Digest());
        absl::StrAppend(&text, " server ", place.server_rank, " at entry ",
                        replica->shard().index(), " has ", absl::Hex(replica->shard().Digest()));
      }
      if (digests.size() > 1) {
        checker_.Fail("replicas are equal", absl::StrCat("shard ", shard, ":", text));
      }
    }
  }

  // The end of the script: all read everything, the replicas are compared, and all leave.
  void GoOnTogether() {
    std::vector<ScriptedWorker*> living;
    for (const auto& worker : workers_) {
      if (!cluster_.WasKilled(WorkerName(worker->rank()))) living.push_back(worker.get());
    }
    const auto all = [&](const auto& is) { return std::all_of(living.begin(), living.end(), is); };
    if (!gate_open_) {
      const bool over = complete_ && to_come_ == 0 && injector_.over();
      if (!over || !all([](auto* worker) { return worker->at_gate(); })) return;
      gate_open_ = true;
      std::uint64_t clock = 0;
      for (const ScriptedWorker* worker : living) clock = std::max(clock, worker->clock());
      for (ScriptedWorker* worker : living) worker->ReadAll(clock);
    } else if (!leaving_) {
      if (!all([](auto* worker) { return worker->at_end(); }) || !IsWhole()) {
        whole_since_ = absl::InfiniteFuture();
        return;
      }
      whole_since_ = std::min(whole_since_, cluster_.world().Now());
      if (cluster_.world().Now() - whole_since_ < kRestBeforeComparing) return;
      leaving_ = true;
      CompareReplicas();
      for (ScriptedWorker* worker : living) worker->Leave();
    }
  }

  // Every second: is anyone waiting for too long?
  void Look() {
    complete_ = complete_ || std::all_of(workers_.begin(), workers_.end(),
                                         [](const auto& worker) { return worker->begun(); });
    Replace();
    GoOnTogether();
    if (!quiet_ && injector_.over() && to_come_ == 0) {
      quiet_ = true;
      checker_.SetQuietFrom(cluster_.world().Now());
      cluster_.Note("no more faults");
    }
    for (const auto& worker : workers_) worker->CheckWaiting();
    if (!quiet_ || leaving_ || IsWhole()) not_whole_since_ = cluster_.world().Now();
    checker_.OnWaited("the filling of replicas", not_whole_since_, cluster_.world().Now());
    cluster_.world().Schedule(kLookEvery, [this] { Look(); });
  }

  // All workers that live have left, and the cluster has ended by itself.
  bool Ended() const {
    for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
      if (!workers_[rank]->finished() &&
          !cluster_.WasKilled(SimCluster::HostName(Role::kWorker, rank))) {
        return false;
      }
    }
    for (const std::string& host : cluster_.HostNames()) {
      SimProcess* const process = cluster_.Find(host);
      const bool is_worker = absl::StartsWith(host, leeway::Name(Role::kWorker));
      if (!is_worker && process != nullptr && !process->over().has_value()) return false;
    }
    return true;
  }

  SeedResult Result() {
    SeedResult result;
    runtime::SimWorld& world = cluster_.world();
    result.seed = options_.seed;
    result.violation = checker_.violation();
    result.setting = Setting();
    result.trace = world.trace();
    result.trace_hash = world.trace_hash();
    result.faults = injector_.counts();
    for (const auto& worker : workers_) result.operations += worker->operations();
    result.reads = checker_.reads();
    result.virtual_time = world.Now() - started_;
    if (result.violation.has_value()) result.tail = Tail();
    return result;
  }

  std::string Setting() const {
    std::string text = absl::StrCat(
        cluster_.config().num_servers, " servers of ", cluster_.config().server_threads,
        " threads, replication ", cluster_.config().replication, ", ",
        cluster_.config().num_workers, " workers, ", script_.iterations, " iterations;");
    for (const SimTable& table : script_.tables) {
      absl::StrAppend(&text, " ", table.spec.name, " ", table.spec.consistency.ToString());
    }
    return absl::StrCat(text, "\n", injector_.plan().ToString());
  }

  std::vector<std::string> Tail() {
    std::deque<std::string> told;
    for (const std::string& line : cluster_.world().last_lines()) {
      if (absl::StrContains(line, "Heartbeat") || absl::StrContains(line, "Credit")) continue;
      if (told.size() == kLinesShown) told.pop_front();
      told.push_back(line);
    }
    return {told.begin(), told.end()};
  }

  const SeedOptions& options_;
  runtime::Random random_;
  SimCluster cluster_;
  const absl::Duration window_;
  const Script script_;
  History history_;
  Checker checker_;
  FaultInjector injector_;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
  const absl::Time started_ = cluster_.world().Now();
  bool complete_ = false, quiet_ = false, gate_open_ = false, leaving_ = false;
  std::size_t to_come_ = 0;       // that Later was given
  std::set<std::string> doomed_;  // servers that are cut off until they are taken for dead
  absl::Time whole_since_ = absl::InfiniteFuture(), not_whole_since_ = absl::InfinitePast();
};

}  // namespace

SeedResult RunSeed(const SeedOptions& options) { return Run(options).Go(); }

}  // namespace leeway::simulation
