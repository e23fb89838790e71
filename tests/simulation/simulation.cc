#include "tests/simulation/simulation.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/messages/chain.h"
#include "runtime/base/random.h"
#include "runtime/sim/sim_file_system.h"
#include "tests/simulation/aimed_faults.h"
#include "tests/simulation/checkpoint_checker.h"
#include "tests/simulation/coded_checker.h"
#include "tests/simulation/fault_injector.h"
#include "tests/simulation/invariants/acknowledgements.h"
#include "tests/simulation/invariants/closed_clocks.h"
#include "tests/simulation/invariants/nothing_left.h"
#include "tests/simulation/invariants/said_clocks.h"
#include "tests/simulation/invariants/status_is_so.h"
#include "tests/simulation/log_history.h"
#include "tests/simulation/process_faults.h"
#include "tests/simulation/published_model.h"
#include "tests/simulation/restore_checker.h"
#include "tests/simulation/scripted_worker.h"
#include "tests/simulation/second_life.h"
#include "tests/simulation/sent_pushes.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/sim_handler.h"
#include "tests/simulation/sim_reader.h"
#include "tests/simulation/sim_stranger.h"
#include "tests/simulation/verbs_faults.h"

namespace leeway::simulation {
namespace {

constexpr std::uint32_t kSpareServers = 2;
constexpr std::uint32_t kReaders = 2;
// One in so many seeds has a stranger, which stays for some time.
constexpr std::uint64_t kStrangerEvery = 6;
constexpr absl::Duration kStrangerStays = absl::Seconds(10);
constexpr std::size_t kLinesKept = 2000, kLinesShown = 40;
constexpr absl::Duration kLoadedWithin = absl::Seconds(15);
// Iterations of a second life.
constexpr std::uint32_t kAgainMin = 40, kAgainMore = 80;
constexpr absl::Duration kRunMax = absl::Minutes(10);
// The time within which all nodes find a scheduler at another address.
constexpr absl::Duration kFoundWithin = absl::Seconds(2);
constexpr absl::Duration kLookEvery = absl::Milliseconds(500);
// After this time all deadlines of operations have passed, on any worker's clock.
constexpr absl::Duration kLastWords = absl::Minutes(5);
// After this time everything has reached all replicas, also resent messages.
constexpr absl::Duration kRestBeforeComparing = absl::Seconds(2);

constexpr absl::string_view kNothingLeft = "nothing is left behind";
constexpr absl::string_view kClocksStay = "acknowledged clocks never go back";

// In some seeds the limits are so low that queues are sometimes full, each kind of queue
// independently.
void ChooseLimits(std::uint64_t seed, Config* config) {
  runtime::Random random(runtime::RandomAt(seed, runtime::StableHash("limits"), 0));
  if (random.Below(2) == 0) config->replication_window_bytes = 512 + random.Below(4096);
  if (random.Below(3) == 0) {
    config->send_window_bytes = config->push_window_bytes = 2048 + random.Below(8192);
  }
  if (random.Below(4) == 0) config->send_queue_bytes_max = (16 << 10) + random.Below(64 << 10);
}

// A cluster that goes on from a checkpoint: with as many workers and blocks of the same size, and
// half the time as many shards.
void GoOn(const SecondLife& life, runtime::Random* random, Config* config) {
  config->restore = kSavedFolder;
  config->num_workers = static_cast<std::uint32_t>(life.history().lives.size());
  if (random->Below(2) == 0) config->num_shards = life.manifest().num_shards;
  // So that faults of links do not keep servers from loading in time.
  config->checkpoint_timeout = kLoadedWithin;
}

SimCluster::Setup ChooseCluster(const SeedOptions& options, const SecondLife* life,
                                runtime::Random* random) {
  SimCluster::Setup setup;
  setup.seed = options.seed;
  setup.data_options = options.data_options;
  setup.spare_servers = kSpareServers;
  setup.over_rdma = options.over_rdma;
  Config& config = setup.config;
  config.replication = static_cast<std::uint32_t>(1 + random->Below(3));
  config.num_servers = config.replication + static_cast<std::uint32_t>(random->Below(3));
  config.num_workers = static_cast<std::uint32_t>(2 + random->Below(3));
  // So little that rows have to leave it.
  config.residual_bytes_max = 1024;
  config.server_threads = static_cast<std::uint32_t>(1 + random->Below(2));
  config.num_shards = static_cast<std::uint32_t>(6 + random->Below(10));
  config.block_bytes = kBlockBytes;
  config.heartbeat_interval = absl::Milliseconds(250);
  config.failure_timeout = absl::Seconds(5);
  config.connect_timeout = absl::Minutes(1);  // a node that comes after the cluster's end gives up
  config.suspicion = absl::Milliseconds(100 + random->Below(900));
  // Every fault of a device breaks connections, and a node that does not come back in time is taken
  // for dead: the cluster promises to survive only one fewer than there are replicas.
  if (options.over_rdma) config.suspicion += absl::Seconds(2);
  config.scheduler_state = "/scheduler";
  // A checkpoint whose clock is not reached in this time is given up.
  config.checkpoint_timeout = absl::Seconds(5);
  if (random->Below(3) == 0) {
    config.checkpoint_dir = kSavedFolder;
    config.checkpoint_every_clocks = 10 + random->Below(50);
    config.checkpoint_full_every = 1 + random->Below(3);
    config.checkpoint_keep = random->Below(3);
  }
  // Short, so that a lost message does not delay the script beyond the faults.
  config.resend_interval = absl::Milliseconds(30);
  ChooseLimits(options.seed, &config);
  if (life != nullptr) GoOn(*life, random, &config);
  return setup;
}

class Run {
 public:
  // `life`: the cluster goes on from that checkpoint; null: it begins with nothing.
  Run(const SeedOptions& options, const SecondLife* life)
      : options_(options),
        life_(life),
        random_(runtime::RandomAt(options.seed, runtime::StableHash("simulation"), 0)),
        cluster_(ChooseCluster(options, life, &random_)),
        window_((absl::Seconds(8) + absl::Seconds(12) * random_.Uniform()) /
                (life == nullptr ? 1 : 4)),
        plan_(ChoosePlan()),
        script_(ChooseScript()),
        history_(life != nullptr ? life->history()
                                 : History(script_.tables.size(), cluster_.config().num_workers)),
        checker_(&history_),
        coded_(&script_.tables, &history_, &checker_),
        restores_(&script_.tables, &history_, &sent_,
                  [this](std::uint32_t table, std::uint64_t clock, absl::Time before) {
                    return coded_.SwitchedBy(table, clock, before);
                  }),
        checkpoints_(cluster_.world().files(kSharedFolder), &script_.tables, &history_, &restores_,
                     &checker_),
        model_(&script_.tables, &history_, &checker_),
        process_faults_(&cluster_, &script_.tables, &workers_, &model_, &checker_),
        injector_(&cluster_, plan_, [this](const Episode& episode) { return Strike(episode); }) {
    if (options.over_rdma) verbs_.emplace(&cluster_, options.seed);
    if (options.faults.test(static_cast<std::size_t>(FaultKind::kAimed)) && !options.over_rdma &&
        !plan_.Has(FaultKind::kMoveScheduler)) {
      const bool workers_come_back =
          plan_.Has(FaultKind::kRestartWorker) || plan_.Has(FaultKind::kLongPartition);
      aimed_.emplace(&cluster_, workers_come_back, window_, options.seed,
                     [this](const Episode& episode) { (void)Strike(episode); });
    }
    cluster_.SetTap([this](const van::Overheard& heard) {
      sent_.Hear(heard);
      coded_.Hear(heard, cluster_.world().Now());
      logs_.Hear(heard);
      checkpoints_.Hear(heard, cluster_.world().Now());
      model_.Hear(heard, cluster_.world().Now());
      HearClocks(heard);
      meetings_.Hear(heard, cluster_.world().Now());
      if (const auto* const welcome = std::get_if<proto::Welcome>(&heard.message)) {
        cluster_id_ = welcome->cluster;
      }
      std::string wrong = acknowledgements_.Hear(heard);
      if (!wrong.empty()) checker_.Fail("acknowledgements are each push's own", std::move(wrong));
    });
    cluster_.world().ShareFolder(kSharedFolder);
    (void)cluster_.world().files(kSharedFolder)->CreateDirectories(kSavedFolder);
    if (life != nullptr) GoOnFrom(*life);
    cluster_.world().KeepTrace(options.keep_trace);
    cluster_.world().KeepLastLines(kLinesKept);
    for (std::uint32_t rank = 0; rank < cluster_.config().num_workers; ++rank) {
      workers_.push_back(std::make_unique<ScriptedWorker>(rank, &script_, &cluster_, &history_,
                                                          &checker_, &coded_, random_.Next()));
    }
    runtime::Random seeds(runtime::RandomAt(options_.seed, runtime::StableHash("readers"), 0));
    for (std::uint32_t number = 0; number < kReaders; ++number) {
      readers_.push_back(std::make_unique<SimReader>(number, &script_.tables, &cluster_, &history_,
                                                     &model_, &checker_, seeds.Next()));
    }
  }

  // Operations that have not ended write to memory of the scripts, so the processes go first.
  ~Run() {
    cluster_.SetTap(nullptr);  // closing vans send messages that wait for the send window
    for (const auto& worker : workers_) cluster_.Kill(WorkerName(worker->rank()));
    for (const auto& reader : readers_) reader->End();
    stranger_.reset();
  }

  SimCluster& cluster() { return cluster_; }
  const std::optional<Violation>& violation() const { return checker_.violation(); }

  // At its end: what another cluster goes on from. nullopt: nothing, or something is wrong with it.
  std::optional<SecondLife> NextLife() {
    if (!SecondLife::IsPlanned(options_.seed) || checker_.violation().has_value()) return {};
    // In a second life some workers may not return.
    if (std::ranges::any_of(script_.tables, &SimTable::waits)) return {};
    auto life = SecondLife::Choose(cluster_.world().files(kSharedFolder), script_.tables, history_,
                                   options_.seed);
    if (life.ok()) return *std::move(life);
    checker_.Fail("checkpoints are whole", life.status().ToString());
    return {};
  }

  SeedResult Go() {
    StartAll();
    injector_.Start();
    if (verbs_.has_value()) verbs_->Start(window_);
    if (aimed_.has_value()) aimed_->Start();
    Look();
    const bool ended = cluster_.RunUntil(
        [this] { return checker_.violation().has_value() || (leaving_ && Ended()); }, kRunMax);
    if (!ended) {
      checker_.Fail("the run ends", absl::StrCat("it is not over after 10 minutes", Lacking()));
    }
    SeedResult result = Result();
    if (!result.violation.has_value()) result.violation = LeftBehind();
    return result;
  }

 private:
  void GoOnFrom(const SecondLife& life) {
    const absl::Status put = life.PutFiles(cluster_.world().files(kSharedFolder));
    if (!put.ok()) checker_.Fail("checkpoints are whole", put.ToString());
    checkpoints_.IgnoreOlder();
    life.Begin(&checker_, &coded_);
  }

  FaultPlan ChoosePlan() {
    FaultSet kinds = options_.faults;
    if (options_.over_rdma) kinds &= ~FaultsOfLinks();
    // So that some runs have barriers.
    if (random_.Below(3) == 0) {
      kinds.reset(static_cast<std::size_t>(FaultKind::kRestartWorker));
      kinds.reset(static_cast<std::size_t>(FaultKind::kLongPartition));
    }
    FaultPlan plan = MakeFaultPlan(cluster_.config(), kSpareServers, kinds, window_, &random_);
    if (kinds.test(static_cast<std::size_t>(FaultKind::kSwitchCodec))) {
      runtime::Random own(
          runtime::RandomAt(options_.seed, runtime::StableHash("codec switches"), 0));
      AddChanges(FaultKind::kSwitchCodec, window_, &own, &plan);
    }
    if (kinds.test(static_cast<std::size_t>(FaultKind::kChangeTable))) {
      runtime::Random own(
          runtime::RandomAt(options_.seed, runtime::StableHash("table changes"), 0));
      AddChanges(FaultKind::kChangeTable, window_, &own, &plan);
    }
    if (kinds.test(static_cast<std::size_t>(FaultKind::kPublish))) {
      runtime::Random own(runtime::RandomAt(options_.seed, runtime::StableHash("publications"), 0));
      if (own.Below(3) == 0) AddChanges(FaultKind::kPublish, window_, &own, &plan);
    }
    // Not if any dial may be lost at any time.
    if (kinds.test(static_cast<std::size_t>(FaultKind::kMoveScheduler)) && !options_.over_rdma) {
      runtime::Random own(
          runtime::RandomAt(options_.seed, runtime::StableHash("scheduler moves"), 0));
      AddSchedulerMoves(window_, &own, &plan);
    }
    const bool come_back = kinds.test(static_cast<std::size_t>(FaultKind::kRestartWorker));
    if (come_back && kinds.test(static_cast<std::size_t>(FaultKind::kLeaveWorker))) {
      runtime::Random own(runtime::RandomAt(options_.seed, runtime::StableHash("leavings"), 0));
      AddLeavings(cluster_.config(), kinds, window_, &own, &plan);
    }
    if (come_back && life_ != nullptr) {
      runtime::Random own(runtime::RandomAt(options_.seed, runtime::StableHash("late worker"), 0));
      AddLateWorker(cluster_.config(), window_, &own, &plan);
    }
    runtime::Random pairs(runtime::RandomAt(options_.seed, runtime::StableHash("pairs"), 0));
    AddPairs(cluster_.config(), kSpareServers, kinds, window_, &pairs, &plan);
    if (kinds.test(static_cast<std::size_t>(FaultKind::kPriorities))) {
      runtime::Random own(runtime::RandomAt(options_.seed, runtime::StableHash("priorities"), 0));
      AddPriorities(window_, &own, &plan);
    }
    return plan;
  }

  Script ChooseScript() {
    Script script;
    ChooseTablesOf(&script);
    script.short_deadlines = Meets(FaultKind::kShortDeadline);
    script.calls_handlers =
        runtime::RandomAt(options_.seed, runtime::StableHash("handlers"), 0) % 2 == 0;
    // A worker that comes back would have missed some.
    if (plan_.Has(FaultKind::kRestartWorker) || plan_.Has(FaultKind::kLongPartition) ||
        plan_.Has(FaultKind::kLeaveWorker)) {
      script.barrier_every = 0;
    }
    ChooseIterations(&script);
    // Long enough that the workers outlast most faults.
    script.think_max = window_ / (script.iterations - script.begins_at);
    return script;
  }

  void ChooseTablesOf(Script* script) {
    if (life_ != nullptr) {
      script->tables = life_->tables();
      return;
    }
    runtime::Random ragged(runtime::RandomAt(options_.seed, runtime::StableHash("ragged"), 0));
    script->tables = ChooseTables(cluster_.config().num_workers, ragged.Below(2) == 0, &random_);
    runtime::Random coded(runtime::RandomAt(options_.seed, runtime::StableHash("coded tables"), 0));
    AddCodedTables(cluster_.config().num_workers, &coded, &script->tables);
    if (Meets(FaultKind::kRefusedPush)) {
      runtime::Random own(runtime::RandomAt(options_.seed, runtime::StableHash("refusing"), 0));
      script->tables.push_back(RefusingTable(static_cast<std::uint32_t>(script->tables.size()),
                                             cluster_.config().num_workers, &own));
    }
    runtime::Random small(runtime::RandomAt(options_.seed, runtime::StableHash("small tables"), 0));
    if (small.Below(2) == 0) AddSmallTables(cluster_.config().num_workers, &small, &script->tables);
    runtime::Random policy(runtime::RandomAt(options_.seed, runtime::StableHash("policies"), 0));
    if (policy.Below(2) == 0) {
      const bool workers_return =
          !plan_.Has(FaultKind::kKillWorker) &&
          (plan_.Has(FaultKind::kRestartWorker) || plan_.Has(FaultKind::kLongPartition));
      script->tables.push_back(PolicyTable(static_cast<std::uint32_t>(script->tables.size()),
                                           cluster_.config().num_workers, workers_return, &policy));
    }
  }

  void ChooseIterations(Script* script) {
    if (life_ != nullptr) {
      script->begins_at = static_cast<std::uint32_t>(life_->manifest().clock);
      script->iterations =
          script->begins_at + kAgainMin + static_cast<std::uint32_t>(random_.Below(kAgainMore));
      return;
    }
    script->iterations = static_cast<std::uint32_t>(200 + random_.Below(300));
    runtime::Random late(runtime::RandomAt(options_.seed, runtime::StableHash("late table"), 0));
    if (late.Below(2) == 0) {
      const auto index = static_cast<std::uint32_t>(script->tables.size());
      const auto iteration = static_cast<std::uint32_t>(1 + late.Below(script->iterations / 2));
      script->tables.push_back(LateTable(index, cluster_.config().num_workers, iteration, &late));
      script->on_late_table = [this] { OnLateTable(); };
    }
  }

  // True if this seed has that kind, which scripts bring about: half of the seeds do.
  bool Meets(FaultKind kind) const {
    if (!options_.faults.test(static_cast<std::size_t>(kind))) return false;
    return runtime::RandomAt(options_.seed, runtime::StableHash(NameOf(kind)), 0) % 2 == 0;
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

  // Half the time a checkpoint is saved while the table is created.
  void OnLateTable() {
    if (!options_.faults.test(static_cast<std::size_t>(FaultKind::kCheckpoint))) return;
    if (late_tables_.Below(2) == 0) return;
    cluster_.world().Schedule(absl::Milliseconds(2) * late_tables_.Uniform(), [this] {
      Episode save;
      save.kind = FaultKind::kCheckpoint;
      (void)Strike(save);
    });
  }

  // Some time after the workers have begun, to some of the nodes that the map has.
  void LetStrangerCome() {
    runtime::Random random(runtime::RandomAt(options_.seed, runtime::StableHash("stranger"), 0));
    const bool comes = options_.faults.test(static_cast<std::size_t>(FaultKind::kStranger)) &&
                       !options_.over_rdma && random.Below(kStrangerEvery) == 0;
    if (!comes) return;
    const absl::Duration after = window_ / 2 * random.Uniform();
    const bool knows_id = random.Below(3) != 0;
    cluster_.world().Schedule(after, [this, knows_id, seed = random.Next()] {
      const std::shared_ptr<const proto::ClusterMap> map = process_faults_.KeptMap();
      if (map == nullptr || gate_open_) return;
      runtime::Random choice(seed);
      const proto::ServerEntry& server = map->servers[choice.Below(map->servers.size())];
      SimStranger::Nodes nodes = {
          {SimCluster::HostName(Role::kScheduler, 0), cluster_.config().scheduler}};
      if (!server.endpoints.empty()) {
        nodes = {{SimCluster::HostName(Role::kServer, server.rank),
                  server.endpoints[choice.Below(server.endpoints.size())]}};
      }
      ++strangers_;
      stranger_.emplace(&cluster_, &checker_, seed);
      stranger_->Come(nodes, cluster_id_, knows_id);
      cluster_.world().Schedule(kStrangerStays, [this] { stranger_.reset(); });
    });
  }

  // No process dies before all work, or after the last reads have begun.
  FaultInjector::Struck Strike(const Episode& episode) {
    using Struck = FaultInjector::Struck;
    if (gate_open_) return Struck::kNo;
    if (!complete_) return Struck::kAskAgain;
    if (episode.kind == FaultKind::kMoveScheduler && !MayMoveScheduler(episode)) {
      return Struck::kAskAgain;
    }
    return process_faults_.Strike(episode);
  }

  // A worker that has no connection to any server cannot learn of it. Each is told once over a
  // connection, and dials once within its time: on links that lose nothing.
  bool MayMoveScheduler(const Episode& move) {
    const auto settled = [](const auto& reader) { return reader->settled(); };
    if (!std::ranges::all_of(readers_, settled)) return false;
    const absl::Duration now = cluster_.world().Now() - started_;
    const absl::Duration until = now + move.length + kFoundWithin;
    return std::ranges::none_of(plan_.episodes, [&](const Episode& it) {
      const bool loses = it.kind == FaultKind::kDrop || it.kind == FaultKind::kPartition ||
                         it.kind == FaultKind::kOneWayPartition;
      return loses && it.start < until && it.start + it.length > now;
    });
  }

  bool FaultsAreOver() const {
    return injector_.over() && process_faults_.over() && (!verbs_.has_value() || verbs_->over()) &&
           (!aimed_.has_value() || aimed_->over()) && !stranger_.has_value();
  }

  // What keeps the run from its end.
  std::string Lacking() const {
    std::string text;
    if (!complete_) text += "; the workers have not begun";
    if (!injector_.over())
      absl::StrAppend(&text, "; faults go on or are to come: ", injector_.ToCome());
    if (!process_faults_.over()) text += "; a command is not answered, or a process is to come";
    if (verbs_.has_value() && !verbs_->over()) text += "; verbs fail";
    if (aimed_.has_value() && !aimed_->over()) text += "; an aimed fault is to come";
    if (stranger_.has_value()) text += "; a stranger is there";
    for (const auto& worker : workers_) {
      const bool there = leaving_     ? worker->finished()
                         : gate_open_ ? worker->at_end()
                                      : worker->at_gate();
      if (there || cluster_.WasKilled(WorkerName(worker->rank()))) continue;
      absl::StrAppend(&text, "; worker ", worker->rank(), " is at work");
    }
    if (gate_open_ && !leaving_ && !IsWhole()) text += "; chains are not whole";
    return text;
  }

  // It was killed, or has ended by itself before the cluster's end.
  bool SchedulerIsDead() const {
    const std::string host = SimCluster::HostName(Role::kScheduler, 0);
    const SimProcess* const process = cluster_.Find(host);
    if (process == nullptr) return cluster_.WasKilled(host);
    return !leaving_ && process->over().has_value() && !process->over()->ok();
  }

  static std::string WorkerName(std::uint32_t rank) {
    return SimCluster::HostName(Role::kWorker, rank);
  }

  // Every chain has its full number of members.
  bool IsWhole() const {
    if (process_faults_.scheduler() == nullptr) return false;
    const std::shared_ptr<const proto::ClusterMap> map = process_faults_.scheduler()->map();
    for (std::uint32_t shard = 0; shard < map->owners.size(); ++shard) {
      const proto::Chain chain = proto::ChainOf(*map, shard);
      if (!chain.joining.empty() || chain.members.size() < cluster_.config().replication ||
          std::any_of(chain.members.begin(), chain.members.end(), [&](const auto& place) {
            return process_faults_.ServerOf(*map, place.server_rank) == nullptr;
          })) {
        return false;
      }
    }
    return true;
  }

  void CompareReplicas(std::uint64_t clock) {
    const std::shared_ptr<const proto::ClusterMap> map = process_faults_.scheduler()->map();
    for (std::uint32_t shard = 0; shard < map->owners.size(); ++shard) {
      std::string text;
      std::set<std::uint64_t> digests;
      ps::Shard* head = nullptr;
      for (const proto::ShardOwner& place : proto::ChainOf(*map, shard).members) {
        ps::DataThread* thread =
            process_faults_.ServerOf(*map, place.server_rank)->data_thread(place.thread);
        ps::Replica* replica = thread->FindReplica(shard);
        if (replica == nullptr) {
          checker_.Fail("replicas are equal",
                        absl::StrCat("server ", place.server_rank, " does not have shard ", shard));
          return;
        }
        if (head == nullptr) head = &replica->shard();
        digests.insert(replica->shard().Digest());
        std::string forgotten = FindForgotten(replica->shard(), *map);
        if (!forgotten.empty()) {
          checker_.Fail(kNothingLeft, absl::StrCat("server ", place.server_rank, ": ", forgotten));
        }
        absl::StrAppend(&text, " server ", place.server_rank, " at entry ",
                        replica->shard().index(), " has ", absl::Hex(replica->shard().Digest()));
      }
      if (digests.size() > 1) {
        checker_.Fail("replicas are equal", absl::StrCat("shard ", shard, ":", text));
      }
      if (head != nullptr) coded_.JudgeShard(head, clock);
    }
  }

  // At any time: replicas that have applied equally many entries have the same state.
  void CompareAtEqualIndex() {
    // While servers load a checkpoint they have parts of it.
    if (life_ != nullptr && !complete_) return;
    const std::shared_ptr<const proto::ClusterMap> map = process_faults_.KeptMap();
    for (std::uint32_t shard = 0; map != nullptr && shard < map->owners.size(); ++shard) {
      std::map<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>> states;  // by index
      for (const proto::ShardOwner& place : proto::ChainOf(*map, shard).members) {
        ps::Server* const server = process_faults_.ServerOf(*map, place.server_rank);
        ps::Replica* const replica =
            server == nullptr ? nullptr : server->data_thread(place.thread)->FindReplica(shard);
        if (replica == nullptr) continue;
        if (const auto closed = closed_clocks_.ClosedIn(shard);
            replica->shard().closed() < closed) {
          checker_.Fail(kClocksStay,
                        absl::StrCat("server ", place.server_rank, ", of the chain of shard ",
                                     shard, ", knows of clocks below ", replica->shard().closed(),
                                     " that they have closed, not of those below ", closed));
        }
        const std::uint64_t digest = replica->shard().Digest();
        const auto [known, first] =
            states.try_emplace(replica->shard().index(), place.server_rank, digest);
        if (first || known->second.second == digest) continue;
        checker_.Fail("replicas are equal",
                      absl::StrCat("shard ", shard, " after entry ", known->first, ": server ",
                                   known->second.first, " has ", absl::Hex(known->second.second),
                                   ", server ", place.server_rank, " ", absl::Hex(digest)));
      }
    }
  }

  void HearClocks(const van::Overheard& heard) {
    for (std::string wrong : {said_clocks_.Hear(heard), closed_clocks_.Hear(heard)}) {
      if (!wrong.empty()) checker_.Fail(kClocksStay, std::move(wrong));
    }
  }

  // At rest nothing is under way or kept: everything that was charged is returned.
  void JudgeBudgets() {
    const auto waits = [](const auto& reader) { return reader->waits(); };
    if (std::any_of(readers_.begin(), readers_.end(), waits)) return;
    const std::shared_ptr<const proto::ClusterMap> map = process_faults_.scheduler()->map();
    for (const proto::ServerEntry& entry : map->servers) {
      ps::Server* const server = process_faults_.ServerOf(*map, entry.rank);
      for (std::uint32_t i = 0; server != nullptr && i < cluster_.config().server_threads; ++i) {
        const std::string under_way = server->data_thread(i)->UnderWay();
        if (under_way.empty()) continue;
        checker_.Fail("budgets are given back", absl::StrCat("server ", entry.rank, ", thread ", i,
                                                             ", at rest: ", under_way));
      }
    }
  }

  // Over rdma: without open requests, no peer may write an answer.
  void CompareGrants() {
    const auto waits = [](const auto& reader) { return reader->waits(); };
    if (std::any_of(readers_.begin(), readers_.end(), waits)) return;  // it may be reading
    if (cluster_.rdma() == nullptr || !cluster_.rdma()->HasOpenGrants()) return;
    checker_.Fail("grants end with their requests",
                  "memory is open to a peer when all requests have ended");
  }

  bool StatusIsJudged() {
    std::optional<std::string> wrong = status_.Look();
    if (!wrong.has_value()) return false;
    if (!wrong->empty()) checker_.Fail("what status says is so", *std::move(wrong));
    return true;
  }

  // The end of the script: all workers read everything, the replicas are compared, and all leave.
  void GoOnTogether() {
    std::vector<ScriptedWorker*> living;
    for (const auto& worker : workers_) {
      if (!cluster_.WasKilled(WorkerName(worker->rank()))) living.push_back(worker.get());
    }
    const auto all = [&](const auto& is) { return std::all_of(living.begin(), living.end(), is); };
    if (!gate_open_) {
      const bool over = complete_ && FaultsAreOver();
      if (!all([](auto* worker) { return worker->at_gate(); })) return;
      if (!over) {
        if (!process_faults_.needs_clocks()) return;
        for (ScriptedWorker* worker : living) worker->TickAtGate();
        return;
      }
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
      if (!StatusIsJudged()) return;
      leaving_ = true;
      for (const auto& reader : readers_) reader->MayFail();
      CompareGrants();
      JudgeBudgets();
      CompareReplicas(living.front()->clock());
      for (ScriptedWorker* worker : living) coded_.JudgeWorker(worker->rank(), worker->infos());
      for (ScriptedWorker* worker : living) worker->Leave();
    }
  }

  // Every second: checks whether anything waits for too long.
  void Look() {
    if (ended_) return;
    complete_ = complete_ || std::all_of(workers_.begin(), workers_.end(),
                                         [](const auto& worker) { return worker->begun(); });
    if (complete_ && !std::exchange(readers_come_, true)) {
      for (const auto& reader : readers_) reader->Come();
      LetStrangerCome();
    }
    if (!leaving_) process_faults_.Replace();
    CompareAtEqualIndex();
    GoOnTogether();
    if (!quiet_ && FaultsAreOver()) {
      quiet_ = true;
      if (verbs_.has_value()) verbs_->Stop();
      checker_.SetQuietFrom(cluster_.world().Now());
      cluster_.Note("no more faults");
    }
    for (const auto& worker : workers_) worker->CheckWaiting();
    for (const auto& reader : readers_) reader->CheckWaiting();
    process_faults_.CheckWaiting();
    checkpoints_.Look(cluster_.world().Now());
    if (!quiet_ || leaving_ || IsWhole()) not_whole_since_ = cluster_.world().Now();
    checker_.OnWaited("the joining of replicas", not_whole_since_, cluster_.world().Now());
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

  // Messages that were on their way at the end have arrived, and timers have run out.
  std::optional<Violation> LeftBehind() {
    ended_ = true;
    for (const auto& reader : readers_) reader->End();
    cluster_.world().RunFor(kLastWords);
    std::string left = FindLeftBehind(&cluster_);
    if (left.empty()) return std::nullopt;
    return Violation{std::string(kNothingLeft), std::move(left)};
  }

  SeedResult Result() {
    SeedResult result;
    runtime::SimWorld& world = cluster_.world();
    result.seed = options_.seed;
    result.over_rdma = options_.over_rdma;
    result.violation = checker_.violation();
    result.setting = Setting();
    result.trace = world.trace();
    result.trace_hash = world.trace_hash();
    result.faults = injector_.counts();
    if (aimed_.has_value()) {
      result.faults[static_cast<std::size_t>(FaultKind::kAimed)] = aimed_->struck();
    }
    result.faults[static_cast<std::size_t>(FaultKind::kStranger)] = strangers_;
    for (const auto& worker : workers_) {
      result.operations += worker->operations();
      result.handler_calls += worker->handler_calls();
      result.faults[static_cast<std::size_t>(FaultKind::kRefusedPush)] += worker->refused();
      result.faults[static_cast<std::size_t>(FaultKind::kShortDeadline)] += worker->out_of_time();
    }
    result.met = meetings_.met();
    result.reads = checker_.reads();
    result.table_changes = process_faults_.table_changes();
    for (const auto& reader : readers_) {
      result.reader_visits += reader->visits();
      result.reader_reads += reader->reads();
    }
    result.checkpoints = checkpoints_.checked();
    result.versions = model_.judged();
    result.codec_switches = coded_.switches();
    result.virtual_time = world.Now() - started_;
    if (result.violation.has_value()) result.tail = Tail();
    return result;
  }

  std::string Setting() const {
    std::string text = life_ == nullptr ? ""
                                        : absl::StrCat("(from ", life_->manifest().name,
                                                       ", of clock ", script_.begins_at, ") ");
    absl::StrAppend(&text, cluster_.config().num_servers, " servers of ",
                    cluster_.config().server_threads, " threads, replication ",
                    cluster_.config().replication, ", ", cluster_.config().num_workers,
                    " workers, ", script_.iterations, " iterations;");
    for (const SimTable& table : script_.tables) {
      absl::StrAppend(&text, " ", table.spec.name, " ", table.spec.consistency.ToString());
      if (table.coded) {
        absl::StrAppend(&text, " ", absl::StrJoin(table.codecs.texts, ";"), " ",
                        table.spec.updater.name, table.one_writer ? " of one writer" : "");
      }
    }
    return absl::StrCat(text, "\n", injector_.plan().ToString(),
                        aimed_.has_value() ? aimed_->ToString() : "");
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
  const SecondLife* const life_;  // null: it begins with nothing
  runtime::Random random_;
  SimCluster cluster_;
  const absl::Duration window_;
  const FaultPlan plan_;
  const Script script_;
  runtime::Random late_tables_{
      runtime::RandomAt(options_.seed, runtime::StableHash("saves beside tables"), 0)};
  History history_;
  Checker checker_;
  CodedChecker coded_;
  LogHistory logs_{&checker_};
  SaidClocks said_clocks_;
  ClosedClocks closed_clocks_{&logs_};
  Acknowledgements acknowledgements_{cluster_.config().replication};
  SentPushes sent_;
  Meetings meetings_{[this] { return injector_.cuts(); }, [this] { return SchedulerIsDead(); }};
  const RestoreChecker restores_;
  CheckpointChecker checkpoints_;
  PublishedModel model_;
  ProcessFaults::Workers workers_;
  ProcessFaults process_faults_;
  StatusIsSo status_{&cluster_, &process_faults_, &script_.tables, &workers_};
  FaultInjector injector_;
  std::optional<VerbsFaults> verbs_;  // over rdma
  std::optional<AimedFaults> aimed_;  // not over rdma
  const absl::Time started_ = cluster_.world().Now();
  std::vector<std::unique_ptr<SimReader>> readers_;
  std::uint64_t cluster_id_ = 0;
  std::optional<SimStranger> stranger_;
  std::uint64_t strangers_ = 0;  // that came
  bool readers_come_ = false;
  bool complete_ = false, quiet_ = false, gate_open_ = false, leaving_ = false, ended_ = false;
  absl::Time whole_since_ = absl::InfiniteFuture(), not_whole_since_ = absl::InfinitePast();
};

// Adds what a second life has come to.
void Join(const SeedResult& second, SeedResult* result) {
  result->second_life = true;
  result->violation = second.violation;
  absl::StrAppend(&result->setting, "in its second life ", second.setting);
  result->tail = second.tail;
  absl::StrAppend(&result->trace, second.trace);
  result->trace_hash = runtime::StableHash(result->trace_hash ^ second.trace_hash);
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind)
    result->faults[kind] += second.faults[kind];
  for (std::size_t event = 0; event < kEvents; ++event) result->met[event] |= second.met[event];
  result->operations += second.operations;
  result->handler_calls += second.handler_calls;
  result->reads += second.reads;
  result->checkpoints += second.checkpoints;
  result->codec_switches += second.codec_switches;
  result->table_changes += second.table_changes;
  result->reader_visits += second.reader_visits;
  result->reader_reads += second.reader_reads;
  result->virtual_time += second.virtual_time;
}

// Of the cluster, and not of a second one.
SeedResult RunFirst(const SeedOptions& options, std::optional<SecondLife>* next) {
  auto run = std::make_unique<Run>(options, nullptr);
  std::optional<van::verbs::FakeFabric> fabric;  // outlives the cluster
  if (options.over_rdma) fabric.emplace(run->cluster().rdma()->fabric());
  SeedResult result = run->Go();
  if (!result.violation.has_value() && !options.over_rdma) *next = run->NextLife();
  if (!result.violation.has_value()) result.violation = run->violation();
  run = nullptr;
  if (!fabric.has_value()) return result;
  result.verbs = fabric->counters();
  if (!result.violation.has_value()) result.violation = JudgeDevices(result.verbs);
  return result;
}

}  // namespace

SeedResult RunSeed(const SeedOptions& options) {
  RegisterSimHandler();
  std::optional<SecondLife> life;
  SeedResult result = RunFirst(options, &life);
  if (!life.has_value()) return result;
  SeedOptions again = options;
  again.seed = life->seed();
  again.faults &= SecondLife::Faults();
  Join(std::make_unique<Run>(again, &*life)->Go(), &result);
  return result;
}

}  // namespace leeway::simulation
