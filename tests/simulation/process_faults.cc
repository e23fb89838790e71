#include "tests/simulation/process_faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/messages/chain.h"

namespace leeway::simulation {
namespace {

std::string SchedulerName() { return SimCluster::HostName(Role::kScheduler, 0); }
std::string ServerName(std::uint32_t rank) { return SimCluster::HostName(Role::kServer, rank); }
std::string WorkerName(std::uint32_t rank) { return SimCluster::HostName(Role::kWorker, rank); }

// After this time all nodes have found the scheduler's new address.
constexpr absl::Duration kMovedWithin = absl::Seconds(10);
constexpr absl::Duration kBackAfter = absl::Milliseconds(1500);
// After this time a state transfer has ended, unless faults delay it.
constexpr absl::Duration kTransferredWithin = absl::Seconds(5);
constexpr absl::Duration kLookForTransfer = absl::Milliseconds(2);
constexpr absl::Duration kLookAtTransfer = absl::Microseconds(50);
constexpr absl::Duration kLastMoments = absl::Milliseconds(30);

}  // namespace

FaultInjector::Struck ProcessFaults::Strike(const Episode& episode) {
  if (episode.kind == FaultKind::kRebalance) {
    AskFor("rebalance", {}, [](const absl::Status&) {});
    return Struck::kYes;
  }
  if (episode.kind == FaultKind::kCheckpoint) {
    ++need_clocks_;
    AskFor("checkpoint-save", {kSavedFolder}, [this](const absl::Status&) { --need_clocks_; });
    return Struck::kYes;
  }
  if (episode.kind == FaultKind::kSwitchCodec) return SwitchCodec(episode.amount);
  if (episode.kind == FaultKind::kChangeTable) return ChangeTable(episode.amount);
  if (episode.kind == FaultKind::kPublish) return Publish();
  if (episode.kind == FaultKind::kKillScheduler || episode.kind == FaultKind::kMoveScheduler)
    return StrikeScheduler(episode);
  for (std::uint32_t rank = 0; rank < cluster_->server_hosts(); ++rank) {
    if (episode.host != ServerName(rank)) continue;
    if (episode.kind == FaultKind::kAddServer) return AddServer(rank);
    if (episode.kind == FaultKind::kDrain) return Drain(rank);
    return StrikeServer(rank, episode);
  }
  for (const auto& worker : *workers_) {
    if (episode.host == WorkerName(worker->rank())) return StrikeWorker(worker.get(), episode);
  }
  return Struck::kNo;
}

FaultInjector::Struck ProcessFaults::StrikeScheduler(const Episode& episode) {
  if (scheduler() == nullptr) return Struck::kNo;
  if (episode.kind == FaultKind::kMoveScheduler) {
    if (!MayMoveScheduler()) return Struck::kAskAgain;
    cluster_->MoveScheduler();
    moved_ = cluster_->world().Now();
    cluster_->Note(absl::StrCat("the scheduler moves to ", cluster_->config().scheduler));
  }
  cluster_->Kill(episode.host);
  Later(episode.length, [this] { cluster_->Start(Role::kScheduler); });
  return Struck::kYes;
}

// Servers in the cluster are told the new address, and tell it to the nodes that they are connected
// to. A server that is about to be taken for dead is not told. Neither is a worker that is
// connected to no server which lives on: its map is so old that it may show dead servers alone, or
// an attempt to connect was lost and is still to be made anew. Such a worker ends after
// Config::scheduler_timeout.
bool ProcessFaults::MayMoveScheduler() const {
  const std::shared_ptr<const proto::ClusterMap> map = KeptMap();
  if (map == nullptr || !doomed_.empty()) return false;
  for (std::uint32_t rank = 0; rank < cluster_->server_hosts(); ++rank) {
    if (cluster_->Find(ServerName(rank)) != nullptr && ServerOf(*map, rank) == nullptr) {
      return false;
    }
  }
  const auto living = std::ranges::count_if(map->servers, &proto::ServerEntry::alive);
  return std::ranges::all_of(*workers_, [&](const auto& worker) {
    const std::string name = WorkerName(worker->rank());
    if (cluster_->WasKilled(name)) return true;
    SimProcess* const process = cluster_->Find(name);
    return worker->answered() && !worker->may_be_given_up() && process != nullptr &&
           process->core()->epoch() >= map->epoch &&
           std::ssize(process->core()->LivingServers()) == living;
  });
}

bool ProcessFaults::MovesScheduler() const {
  return cluster_->world().Now() - moved_ < kMovedWithin;
}

// Only while every shard is on another living server as well.
FaultInjector::Struck ProcessFaults::StrikeServer(std::uint32_t rank, const Episode& episode) {
  if (cluster_->config().replication < 2) return Struck::kNo;
  if (!CanDoWithout(rank)) return Struck::kAskAgain;
  if (episode.kind == FaultKind::kLongPartition && MovesScheduler()) return Struck::kAskAgain;
  if (episode.kind == FaultKind::kLongPartition) {
    doomed_.insert(episode.host);
    Later(episode.length + 2 * cluster_->config().failure_timeout,
          [this, host = episode.host] { doomed_.erase(host); });
    return Struck::kYes;
  }
  ReplaceServer(rank, episode.length);
  if (episode.kind == FaultKind::kKillTransferSource) {
    KillTransferSourceWhenDue(std::make_shared<TransferWatch>(),
                              cluster_->world().Now() + episode.length + kTransferredWithin);
  }
  return Struck::kYes;
}

void ProcessFaults::ReplaceServer(std::uint32_t rank, absl::Duration after) {
  cluster_->Kill(ServerName(rank));
  Later(after, [this, rank] { cluster_->Start(Role::kServer, rank); });
}

// Kills the sender of a state transfer before the map with the new member can have reached it.
void ProcessFaults::KillTransferSourceWhenDue(std::shared_ptr<TransferWatch> watch,
                                              absl::Time until) {
  if (cluster_->world().Now() >= until) return;
  std::optional<TransferWatch::Ended> ended;
  if (const auto map = KeptMap()) ended = watch->Look(*map);
  if (ended.has_value() && CanDoWithout(ended->source)) return KillCutOff(*ended);
  Later(watch->joining() ? kLookAtTransfer : kLookForTransfer,
        [this, watch, until] { KillTransferSourceWhenDue(watch, until); });
}

// Pushes in the sender's last moments do not reach the new member, and the sender does not learn
// that this one counts: none of them may be acknowledged.
void ProcessFaults::KillCutOff(const TransferWatch::Ended& ended) {
  const std::string source = ServerName(ended.source);
  const std::vector<std::pair<std::string, std::string>> links = {
      {source, ServerName(ended.target)}, {SchedulerName(), source}};
  for (const auto& [from, to] : links) cluster_->network().Cut(from, to);
  doomed_.insert(source);
  Later(cluster_->world().Uniform() * kLastMoments, [this, ended, source, links] {
    doomed_.erase(source);
    if (cluster_->Find(source) != nullptr) ReplaceServer(ended.source, kBackAfter);
    for (const auto& [from, to] : links) cluster_->network().Heal(from, to);
  });
}

// At least one worker stays.
FaultInjector::Struck ProcessFaults::StrikeWorker(ScriptedWorker* victim, const Episode& episode) {
  const auto works = [](const auto& worker) {
    return worker->at_work() && !worker->may_be_given_up();
  };
  if (!works(victim) || std::count_if(workers_->begin(), workers_->end(), works) < 2) {
    return Struck::kNo;
  }
  if (episode.kind == FaultKind::kLongPartition) {
    if (MovesScheduler()) return Struck::kAskAgain;
    victim->MayBeGivenUp();
    // Over a slow link it may learn late that it was given up.
    Later(episode.length + 4 * cluster_->config().failure_timeout,
          [victim, life = victim->life()] { victim->SurvivesIf(life); });
    return Struck::kYes;
  }
  if (episode.kind == FaultKind::kLeaveWorker) return LetWorkerLeave(victim, episode);
  cluster_->Kill(episode.host);
  victim->OnKilled();
  if (episode.kind == FaultKind::kRestartWorker) {
    Later(episode.length, [victim] { victim->Start(); });
  }
  return Struck::kYes;
}

// Another process takes the rank after the episode's length.
FaultInjector::Struck ProcessFaults::LetWorkerLeave(ScriptedWorker* leaver,
                                                    const Episode& episode) {
  ++to_come_;
  leaver->LeaveInMidRun(
      [this, leaver, episode] {
        --to_come_;
        cluster_->Kill(episode.host);
        leaver->OnKilled();
        Later(episode.length, [leaver] { leaver->Start(); });
      },
      [this] { --to_come_; });
  return Struck::kYes;
}

// ---- changes on purpose ----

// Additional ranks come one after the other.
FaultInjector::Struck ProcessFaults::AddServer(std::uint32_t rank) {
  const auto begun = [this](std::uint32_t server) {
    return cluster_->Find(ServerName(server)) != nullptr || cluster_->WasKilled(ServerName(server));
  };
  while (rank > cluster_->config().num_servers && !begun(rank - 1)) --rank;
  if (begun(rank)) return Struck::kNo;
  cluster_->Start(Role::kServer, rank);
  return Struck::kYes;
}

FaultInjector::Struck ProcessFaults::Drain(std::uint32_t rank) {
  SimProcess* const process = cluster_->Find(ServerName(rank));
  if (process == nullptr || process->server() == nullptr || process->node() == 0) {
    return Struck::kNo;
  }
  // The request is repeated when the scheduler has been started again, and another process may have
  // the rank by then.
  AskFor("drain", {absl::StrCat("server:", rank), absl::StrCat("node:", process->node())},
         [this, rank, started = process->started()](const absl::Status& answer) {
           const SimProcess* const now = cluster_->Find(ServerName(rank));
           // It is about to end.
           if (answer.ok() && now != nullptr && now->started() == started) {
             doomed_.insert(ServerName(rank));
           }
         });
  return Struck::kYes;
}

// Gives some table some codec, perhaps the one that it has.
FaultInjector::Struck ProcessFaults::SwitchCodec(double choice) {
  std::vector<std::pair<std::string, std::string>> may;
  for (const SimTable& table : *tables_) {
    if (!table.switches()) continue;
    for (const std::string& text : table.codecs.texts) may.emplace_back(table.spec.name, text);
  }
  if (may.empty()) return Struck::kNo;
  const auto& [table, codec] =
      may[static_cast<std::size_t>(choice * static_cast<double>(may.size()))];
  ++need_clocks_;
  AskFor("codec", {table, codec}, [this](const absl::Status& answer) {
    --need_clocks_;
    if (!answer.ok()) {
      checker_->Fail("what is promised to succeed does",
                     absl::StrCat("a change of codecs: ", answer.ToString()));
    }
  });
  return Struck::kYes;
}

// Changes the bound to a tighter one, or back to the original, which the invariants know: so they
// hold all the same. The workers' cores know the bound of each clock, and check it.
FaultInjector::Struck ProcessFaults::ChangeTable(double choice) {
  std::vector<std::pair<std::string, std::string>> may;
  for (const SimTable& table : *tables_) {
    const Consistency& created = table.spec.consistency;
    const bool by_bound = !created.is_bsp() && created.rule == Consistency::Rule::kClocks;
    if (!by_bound || table.created_in > 0) continue;
    may.emplace_back(table.spec.name, created.ToString());
    for (const std::uint64_t bound : {1, 2, 4}) {
      Consistency tighter = created;
      tighter.staleness = bound;
      if (bound < created.staleness) may.emplace_back(table.spec.name, tighter.ToString());
    }
  }
  if (may.empty()) return Struck::kNo;
  const auto& [table, bound] =
      may[static_cast<std::size_t>(choice * static_cast<double>(may.size()))];
  ++need_clocks_;
  AskFor("table", {table, absl::StrCat("consistency=", bound)}, [this](const absl::Status& answer) {
    --need_clocks_;
    table_changes_ += answer.ok() ? 1 : 0;
    if (!answer.ok() && !absl::IsAborted(answer)) {
      checker_->Fail("what is promised to succeed does",
                     absl::StrCat("a change of a table: ", answer.ToString()));
    }
  });
  return Struck::kYes;
}

FaultInjector::Struck ProcessFaults::Publish() {
  std::vector<std::string> arguments = model_->Arguments();
  if (arguments.empty()) return Struck::kNo;
  ++need_clocks_;
  AskFor("publish", std::move(arguments), [this](const absl::Status&) { --need_clocks_; });
  return Struck::kYes;
}

void ProcessFaults::AskFor(const std::string& command, std::vector<std::string> arguments,
                           std::function<void(const absl::Status&)> then) {
  ++to_come_;
  asks_.push_back(std::make_unique<Ask>());
  Ask* const ask = asks_.back().get();
  ask->what = absl::StrCat(command, arguments.empty() ? "" : " ", absl::StrJoin(arguments, " "));
  ask->since = cluster_->world().Now();
  cluster_->Note(absl::StrCat("asks for ", ask->what));
  ask->tool = std::make_unique<SimTool>(
      cluster_, absl::StrCat("tool", asks_.size()), command, std::move(arguments),
      [this, ask, then = std::move(then)](const absl::Status& answer) {
        --to_come_;
        ask->answered = true;
        cluster_->Note(absl::StrCat("answer to ", ask->what, ": ", answer.ToString()));
        then(answer);
      });
}

void ProcessFaults::CheckWaiting() {
  for (const auto& ask : asks_) {
    if (!ask->answered) checker_->OnWaited(ask->what, ask->since, cluster_->world().Now());
  }
}

// ---- processes that have ended by themselves ----

void ProcessFaults::Replace() {
  ReplaceScheduler();
  for (std::uint32_t rank = 0; rank < cluster_->server_hosts(); ++rank) {
    SimProcess* const process = cluster_->Find(ServerName(rank));
    if (process == nullptr || !process->over().has_value()) continue;
    cluster_->Note(absl::StrCat(ServerName(rank), " is over: ", process->over()->ToString()));
    cluster_->Kill(ServerName(rank));
    doomed_.erase(ServerName(rank));
    Later(kBackAfter, [this, rank] { cluster_->Start(Role::kServer, rank); });
  }
  for (const auto& worker : *workers_) {
    if (!worker->given_up()) continue;
    cluster_->Kill(WorkerName(worker->rank()));
    worker->OnKilled();
    Later(absl::Seconds(1), [raw = worker.get()] { raw->Start(); });
  }
}

// It may not start if it cannot keep its state.
void ProcessFaults::ReplaceScheduler() {
  SimProcess* const process = cluster_->Find(SchedulerName());
  if (process == nullptr || !process->over().has_value() || process->over()->ok()) return;
  const std::string why = process->over()->ToString();
  cluster_->Note(absl::StrCat("the scheduler is over: ", why));
  if (why.find("LEEWAY_SCHEDULER_STATE") == std::string::npos) {
    return checker_->Fail("what is promised to succeed does", absl::StrCat("the scheduler: ", why));
  }
  cluster_->Kill(SchedulerName());
  cluster_->Start(Role::kScheduler);
}

void ProcessFaults::Later(absl::Duration delay, std::function<void()> what) {
  ++to_come_;
  cluster_->world().Schedule(delay, [this, what = std::move(what)] {
    --to_come_;
    what();
  });
}

// ---- lookups ----

scheduler::Scheduler* ProcessFaults::scheduler() const {
  SimProcess* const process = cluster_->Find(SchedulerName());
  return process == nullptr ? nullptr : process->scheduler();
}

std::shared_ptr<const proto::ClusterMap> ProcessFaults::KeptMap() const {
  const scheduler::Scheduler* const known = scheduler();
  return known == nullptr || !known->map_is_kept() ? nullptr : known->map();
}

ps::Server* ProcessFaults::ServerOf(const proto::ClusterMap& map, std::uint32_t rank) const {
  SimProcess* const process = cluster_->Find(ServerName(rank));
  if (process == nullptr || doomed_.contains(ServerName(rank))) return nullptr;
  const bool same = std::any_of(map.servers.begin(), map.servers.end(), [&](const auto& entry) {
    return entry.rank == rank && entry.alive && entry.node == process->node();
  });
  return same ? process->server() : nullptr;
}

bool ProcessFaults::CanDoWithout(std::uint32_t rank) const {
  const std::shared_ptr<const proto::ClusterMap> map = KeptMap();
  if (map == nullptr || ServerOf(*map, rank) == nullptr) return false;
  // If a chain has more members than it needs, the scheduler may remove any of them while it takes
  // the others for alive.
  const auto dead = std::count_if(map->servers.begin(), map->servers.end(),
                                  [&](const proto::ServerEntry& server) {
                                    return server.alive && ServerOf(*map, server.rank) == nullptr;
                                  });
  if (dead + 1 >= cluster_->config().replication) return false;
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

}  // namespace leeway::simulation
