#include "tests/simulation/meetings.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"
#include "proto/messages/chain.h"

namespace leeway::simulation {
namespace {

// What a moment is stays in sight for so long.
constexpr absl::Duration kMoment = absl::Milliseconds(50);

bool IsOf(const std::string& host, Role role) { return absl::StartsWith(host, Name(role)); }

// Whether a change of a table's codec or settings is announced.
template <class Entry>
bool Announces(const std::vector<Entry>& entries) {
  return std::ranges::any_of(entries, [](const Entry& entry) { return !entry.decided; });
}
template <class Entry>
bool Has(const std::vector<Entry>& entries, const Entry& like, bool decided) {
  return std::ranges::any_of(entries, [&](const Entry& entry) {
    return entry.decided == decided && entry.table == like.table && entry.number == like.number;
  });
}
template <class Entry>
bool DecidesMore(const std::vector<Entry>& before, const std::vector<Entry>& now) {
  return std::ranges::any_of(now, [&](const Entry& entry) {
    return entry.decided && !Has(before, entry, /*decided=*/true);
  });
}
// `state`, unless a change that was announced before still is.
template <class Entry>
std::optional<State> AloneIn(State state, const std::vector<Entry>& before,
                             const std::vector<Entry>& now) {
  const bool goes_on = std::ranges::any_of(before, [&](const Entry& entry) {
    return !entry.decided && Has(now, entry, /*decided=*/false);
  });
  return goes_on ? std::nullopt : std::make_optional(state);
}
// Likewise, of replicas that were joining.
std::optional<State> AloneInTransfer(const proto::ClusterMap& before,
                                     const proto::ClusterMap& map) {
  const bool goes_on = std::ranges::any_of(before.replicas, [&](const proto::ShardReplica& was) {
    return was.joining && std::ranges::find(map.replicas, was) != map.replicas.end();
  });
  return goes_on ? std::nullopt : std::make_optional(State::kTransfer);
}

bool Lives(const proto::ClusterMap& map, std::uint32_t rank, std::uint64_t incarnation) {
  return std::ranges::any_of(map.servers, [&](const proto::ServerEntry& server) {
    return server.rank == rank && server.incarnation == incarnation && server.alive;
  });
}
std::optional<std::uint64_t> IncarnationOf(const proto::ClusterMap& map, std::uint32_t rank) {
  for (const proto::ServerEntry& server : map.servers) {
    if (server.rank == rank && server.alive) return server.incarnation;
  }
  return std::nullopt;
}
std::string HostOf(Role role, std::uint32_t rank) { return absl::StrCat(Name(role), rank); }

bool Refuses(const absl::Status& result) {
  return absl::IsInvalidArgument(result) || absl::IsResourceExhausted(result);
}

}  // namespace

absl::string_view NameOf(State state) {
  static constexpr absl::string_view kNames[kStates] = {
      "open clock", "handover",          "transfer",  "codec switch", "table change",
      "create",     "checkpoint",        "late join", "leave",        "refusal",
      "reader",     "scheduler restart", "cut",       "restored"};
  return kNames[static_cast<std::size_t>(state)];
}

absl::string_view NameOf(Event event) {
  static constexpr absl::string_view kNames[kEvents] = {"a clock ends",
                                                        "a shard is handed over",
                                                        "a transfer begins",
                                                        "a replica has joined",
                                                        "a codec switch is decided",
                                                        "a table change is decided",
                                                        "a table is created",
                                                        "a checkpoint's clock is said",
                                                        "a part of a checkpoint is written",
                                                        "a late worker ends its first clock",
                                                        "a worker leaves",
                                                        "a worker is dead",
                                                        "a server is dead",
                                                        "a worker's rank is taken again",
                                                        "a push is refused",
                                                        "a reader pulls",
                                                        "another scheduler goes on"};
  return kNames[static_cast<std::size_t>(event)];
}

std::string DescribeMeetings(const std::vector<Met>& seeds) {
  std::string text = "| |";
  for (std::size_t state = 0; state < kStates; ++state) {
    absl::StrAppend(&text, " ", NameOf(static_cast<State>(state)), " |");
  }
  absl::StrAppend(&text, "\n|---|");
  for (std::size_t state = 0; state < kStates; ++state) absl::StrAppend(&text, "---|");
  for (std::size_t event = 0; event < kEvents; ++event) {
    absl::StrAppend(&text, "\n| ", NameOf(static_cast<Event>(event)), " |");
    for (std::size_t state = 0; state < kStates; ++state) {
      const auto met =
          std::ranges::count_if(seeds, [&](const Met& seed) { return seed[event].test(state); });
      absl::StrAppend(&text, " ", met, " |");
    }
  }
  return absl::StrCat(text, "\n");
}

bool Meetings::Holds(State state) const {
  switch (state) {
    case State::kOpenClock:
      return !open_.empty();
    case State::kHandover:
      return !handed_over_.empty();
    case State::kTransfer:
      return map_ != nullptr && std::ranges::any_of(map_->replicas, &proto::ShardReplica::joining);
    case State::kCodecSwitch:
      return map_ != nullptr && Announces(map_->codecs);
    case State::kTableChange:
      return map_ != nullptr && Announces(map_->table_settings);
    case State::kCreate:
      return !creating_.empty();
    case State::kCheckpoint:
      return !writing_.empty();
    case State::kLateJoin:
      return !entering_.empty();
    case State::kLeave:
      return !leaving_.empty();
    case State::kRefusal:
      return now_ < refused_ + kMoment;
    case State::kReader:
      return now_ < read_ + kMoment;
    case State::kSchedulerRestart:
      return restarting_;
    case State::kCut:
      return is_cut_();
    case State::kRestored:
      return restored_;
  }
  return false;
}

void Meetings::Happens(Event event, std::optional<State> alone) {
  std::bitset<kStates>& met = met_[static_cast<std::size_t>(event)];
  for (std::size_t i = 0; i < kStates; ++i) {
    const auto state = static_cast<State>(i);
    if (!met.test(i) && alone != state && Holds(state)) met.set(i);
  }
}

// What hears of a message ends states first, then says what has happened, and begins states last.
void Meetings::Hear(const van::Overheard& heard, absl::Time now) {
  now_ = now;
  restarting_ = restarting_ || scheduler_is_dead_();
  if (IsOf(heard.from, Role::kWorker)) return OnFromWorker(heard);
  if (IsOf(heard.from, Role::kScheduler)) return OnFromScheduler(heard);
  if (IsOf(heard.from, Role::kServer)) return OnFromServer(heard);
  const bool reads =
      IsOf(heard.from, Role::kReader) && std::holds_alternative<proto::Request>(heard.message);
  if (!reads) return;
  Happens(Event::kRead);
  read_ = now;
}

void Meetings::OnFromWorker(const van::Overheard& heard) {
  const std::string& host = heard.from;
  if (const auto* const batch = std::get_if<proto::PushBatch>(&heard.message)) {
    OnPush(host, batch->clock);
  } else if (const auto* const request = std::get_if<proto::Request>(&heard.message)) {
    if (proto::HasPush(request->op)) OnPush(host, request->clock);
  } else if (const auto* const tick = std::get_if<proto::ClockTick>(&heard.message)) {
    OnTick(host, *tick);
  } else if (const auto* const create = std::get_if<proto::CreateTable>(&heard.message)) {
    // It is repeated until the answer has arrived, as a leave is.
    if (!asked_.emplace(host, create->request).second) return;
    Happens(Event::kCreate);
    creating_[host].insert(create->request);
  } else if (std::holds_alternative<proto::EnterClock>(heard.message)) {
    entering_.insert(host);
  } else if (std::holds_alternative<proto::Leave>(heard.message)) {
    if (!said_leave_.insert(host).second) return;
    Happens(Event::kLeaves);
    leaving_.insert(host);
  } else if (std::holds_alternative<proto::Join>(heard.message)) {
    OnJoin(heard);
  }
}

// A process joins again over each new connection.
void Meetings::OnJoin(const van::Overheard& heard) {
  const auto [known, first] = joined_.try_emplace(heard.from, heard.way.van);
  if (!first && std::exchange(known->second, heard.way.van) == heard.way.van) return;
  Forget(heard.from);
  writing_.erase(heard.from);
  written_.erase(heard.from);
}

// A push of a clock that has ended is a repetition.
void Meetings::OnPush(const Host& host, std::uint64_t clock) {
  if (clock >= ended_[host]) open_.insert(host);
}

// The first ticks of a process may name the clock that it begins at.
void Meetings::OnTick(const Host& host, const proto::ClockTick& tick) {
  if (entering_.erase(host) > 0) fresh_.insert(host);
  std::uint64_t& ended = ended_[host];
  ended = std::max(ended, tick.since);
  if (tick.clock <= ended) return;
  ended = tick.clock;
  open_.erase(host);
  Happens(Event::kTick);
  if (fresh_.erase(host) > 0) Happens(Event::kEntered);
}

void Meetings::Forget(const Host& worker) {
  for (auto* const hosts : {&open_, &entering_, &leaving_, &fresh_, &said_leave_}) {
    hosts->erase(worker);
  }
  ended_.erase(worker);
  creating_.erase(worker);
  std::erase_if(asked_, [&](const auto& asked) { return asked.first == worker; });
}

void Meetings::OnFromScheduler(const van::Overheard& heard) {
  if (const auto* const map = std::get_if<proto::ClusterMap>(&heard.message)) {
    OnMap(*map);
  } else if (const auto* const welcome = std::get_if<proto::Welcome>(&heard.message)) {
    if (IsOf(heard.to, Role::kWorker)) {
      ended_[heard.to] = std::max(ended_[heard.to], welcome->clock);
    }
  } else if (const auto* const reply = std::get_if<proto::TableReply>(&heard.message)) {
    const auto asked = creating_.find(heard.to);
    if (asked == creating_.end()) return;
    asked->second.erase(reply->request);
    if (asked->second.empty()) creating_.erase(asked);
  } else if (std::holds_alternative<proto::LeaveAck>(heard.message)) {
    leaving_.erase(heard.to);
  } else if (const auto* const down = std::get_if<proto::NodeDown>(&heard.message)) {
    if (down->left) left_.insert(down->incarnation);
  } else if (const auto* const lead = std::get_if<proto::LeadNow>(&heard.message)) {
    handed_over_.erase(lead->shard);
  } else if (std::holds_alternative<proto::RestoreShards>(heard.message)) {
    restored_ = true;
  } else if (const auto* const prepare = std::get_if<proto::CheckpointPrepare>(&heard.message)) {
    // A server gives up an older one. Nothing begins: it may be asked for the workers' clock alone.
    const auto writing = writing_.find(heard.to);
    if (writing != writing_.end() && writing->second < prepare->checkpoint) writing_.erase(writing);
  } else if (const auto* const cut = std::get_if<proto::CheckpointCut>(&heard.message)) {
    OnCut(heard.to, *cut);
  }
}

void Meetings::OnCut(const Host& host, const proto::CheckpointCut& cut) {
  if (cut.checkpoint > cut_) Happens(Event::kCut);
  cut_ = std::max(cut_, cut.checkpoint);
  if (cut.checkpoint > written_[host]) writing_[host] = cut.checkpoint;
}

void Meetings::OnFromServer(const van::Overheard& heard) {
  if (const auto* const written = std::get_if<proto::CheckpointWritten>(&heard.message)) {
    OnWritten(heard.from, *written);
  } else if (const auto* const entry = std::get_if<proto::Replicate>(&heard.message)) {
    if (entry->kind == proto::LogEntryKind::kHandoverEnd) OnHandoverEnd(heard.from, *entry);
  } else if (const auto* const ack = std::get_if<proto::ReplicateAck>(&heard.message)) {
    OnAck(heard.from, *ack);
  } else if (const auto* const reply = std::get_if<proto::Reply>(&heard.message)) {
    if (IsOf(heard.to, Role::kWorker)) OnReply(*reply);
  } else if (std::holds_alternative<proto::Join>(heard.message)) {
    OnJoin(heard);
  }
}

// Without a stream it says that there is nothing to hand over, which nobody acknowledges.
void Meetings::OnHandoverEnd(const Host& host, const proto::Replicate& end) {
  const auto handed = handed_over_.find(end.shard);
  if (handed == handed_over_.end() || end.epoch < handed->second.epoch) return;
  if (host != HostOf(Role::kServer, handed->second.from)) return;
  if (end.stream == 0) {
    handed_over_.erase(handed);
  } else {
    handed->second.stream = end.stream;
    handed->second.entry = end.entry;
  }
}

void Meetings::OnAck(const Host& host, const proto::ReplicateAck& ack) {
  const auto handed = handed_over_.find(ack.shard);
  if (handed == handed_over_.end() || handed->second.stream == 0) return;
  const Handover& handover = handed->second;
  if (ack.stream != handover.stream || ack.entry < handover.entry) return;
  if (host == HostOf(Role::kServer, handover.to)) handed_over_.erase(handed);
}

void Meetings::OnWritten(const Host& host, const proto::CheckpointWritten& written) {
  const auto writing = writing_.find(host);
  if (writing == writing_.end() || writing->second != written.checkpoint) return;
  writing_.erase(writing);
  written_[host] = written.checkpoint;
  if (written.result.ok()) Happens(Event::kWritten);
}

// A refusal is remembered, and said again where the push is repeated.
void Meetings::OnReply(const proto::Reply& reply) {
  if (!proto::HasPush(reply.op) || !Refuses(reply.result)) return;
  if (!refusals_.emplace(reply.id.incarnation, reply.id.shard, reply.id.sequence).second) return;
  Happens(Event::kRefusal);
  refused_ = now_;
}

// All that a map tells is judged by what held before it.
void Meetings::OnMap(const proto::ClusterMap& map) {
  if (map_ != nullptr && map.version <= map_->version) return;
  if (restarting_) Happens(Event::kSchedulerRestart, State::kSchedulerRestart);
  restarting_ = false;
  const proto::ClusterMap none, &before = map_ == nullptr ? none : *map_;
  if (before.epoch != 0) {
    Handovers handed_over = handed_over_;
    CompareServers(before, map);
    CompareChains(before, map, &handed_over);
    CompareWorkers(before, map);
    if (DecidesMore(before.codecs, map.codecs)) {
      Happens(Event::kSwitchDecided, AloneIn(State::kCodecSwitch, before.codecs, map.codecs));
    }
    if (DecidesMore(before.table_settings, map.table_settings)) {
      Happens(Event::kChangeDecided,
              AloneIn(State::kTableChange, before.table_settings, map.table_settings));
    }
    handed_over_ = std::move(handed_over);
  }
  ForgetGone(map);
  map_ = std::make_shared<const proto::ClusterMap>(map);
}

void Meetings::CompareServers(const proto::ClusterMap& before, const proto::ClusterMap& map) {
  for (const proto::ServerEntry& server : before.servers) {
    const bool gone = server.alive && !Lives(map, server.rank, server.incarnation);
    if (gone && !left_.contains(server.incarnation)) Happens(Event::kServerDies);
  }
}

void Meetings::CompareChains(const proto::ClusterMap& before, const proto::ClusterMap& map,
                             Handovers* handed_over) {
  const auto has = [](const std::vector<proto::ShardOwner>& places, const proto::ShardOwner& it) {
    return std::ranges::find(places, it) != places.end();
  };
  for (std::uint32_t shard = 0; shard < std::min(before.owners.size(), map.owners.size());
       ++shard) {
    const proto::Chain was = proto::ChainOf(before, shard), is = proto::ChainOf(map, shard);
    if (was.members.empty() || is.members.empty()) continue;
    if (was.members.front() != is.members.front()) {
      handed_over->erase(shard);
      const std::uint32_t rank = was.members.front().server_rank;
      const auto incarnation = IncarnationOf(before, rank);
      if (incarnation.has_value() && Lives(map, rank, *incarnation)) {
        Happens(Event::kHandover);
        (*handed_over)[shard] = {.from = rank,
                                 .incarnation = *incarnation,
                                 .epoch = map.epoch,
                                 .to = is.members.front().server_rank};
      }
    }
    for (const proto::ShardOwner& place : is.joining) {
      if (!has(was.joining, place)) Happens(Event::kTransferBegins);
    }
    for (const proto::ShardOwner& place : was.joining) {
      if (has(is.members, place)) Happens(Event::kTransferEnds, AloneInTransfer(before, map));
    }
  }
}

void Meetings::CompareWorkers(const proto::ClusterMap& before, const proto::ClusterMap& map) {
  for (const proto::WorkerEntry& was : before.workers) {
    const auto is = std::ranges::find(map.workers, was.rank, &proto::WorkerEntry::rank);
    if (is == map.workers.end()) continue;
    if (is->incarnation != was.incarnation) Happens(Event::kRankTakenAgain);
    const bool died = is->state == proto::WorkerState::kDead || is->incarnation != was.incarnation;
    if (was.state == proto::WorkerState::kAlive && died) Happens(Event::kWorkerDies);
  }
}

// A worker's rank that is taken again was forgotten when its new process joined.
void Meetings::ForgetGone(const proto::ClusterMap& map) {
  for (const proto::WorkerEntry& worker : map.workers) {
    const std::string host = HostOf(Role::kWorker, worker.rank);
    if (worker.state == proto::WorkerState::kDead) Forget(host);
    if (worker.state != proto::WorkerState::kLeft) continue;
    for (auto* const hosts : {&open_, &entering_, &fresh_}) hosts->erase(host);
    creating_.erase(host);
  }
  for (const proto::ServerEntry& server : map.servers) {
    if (!server.alive) writing_.erase(HostOf(Role::kServer, server.rank));
  }
  std::erase_if(handed_over_, [&](const auto& handed) {
    return !Lives(map, handed.second.from, handed.second.incarnation);
  });
}

}  // namespace leeway::simulation
