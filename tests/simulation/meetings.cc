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

// What the last entry of a table in a map says of it: announced, decided, or nothing new.
template <class Entry>
bool Announces(const std::vector<Entry>& entries) {
  return std::ranges::any_of(entries, [](const Entry& entry) { return !entry.decided; });
}
template <class Entry>
bool DecidesMore(const std::vector<Entry>& before, const std::vector<Entry>& now) {
  return std::ranges::any_of(now, [&](const Entry& entry) {
    return entry.decided && std::ranges::none_of(before, [&](const Entry& old) {
             return old.decided && old.table == entry.table && old.number == entry.number;
           });
  });
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
      return !preparing_.empty();
    case State::kLateJoin:
      return !entering_.empty();
    case State::kLeave:
      return !leaving_.empty();
    case State::kRefusal:
      return now_ < refused_ + kMoment;
    case State::kReader:
      return now_ < read_ + kMoment;
    case State::kSchedulerRestart:
      return !scheduler_lives_() || restarting_;
    case State::kCut:
      return is_cut_();
    case State::kRestored:
      return restored_;
  }
  return false;
}

void Meetings::Happens(Event event) {
  std::bitset<kStates>& met = met_[static_cast<std::size_t>(event)];
  for (std::size_t state = 0; state < kStates; ++state) {
    if (!met.test(state) && Holds(static_cast<State>(state))) met.set(state);
  }
}

void Meetings::Hear(const van::Overheard& heard, absl::Time now) {
  now_ = now;
  restarting_ = restarting_ || !scheduler_lives_();
  if (IsOf(heard.from, Role::kWorker)) return OnFromWorker(heard);
  if (IsOf(heard.from, Role::kScheduler)) return OnFromScheduler(heard);
  if (IsOf(heard.from, Role::kServer)) return OnFromServer(heard);
  if (std::holds_alternative<proto::Request>(heard.message)) {
    Happens(Event::kRead);
    read_ = now;
  }
}

void Meetings::OnFromWorker(const van::Overheard& heard) {
  const std::string& host = heard.from;
  const bool pushes = std::holds_alternative<proto::PushBatch>(heard.message);
  const auto* const request = std::get_if<proto::Request>(&heard.message);
  if (pushes || (request != nullptr && proto::HasPush(request->op))) {
    open_.insert(host);
  } else if (std::holds_alternative<proto::ClockTick>(heard.message)) {
    // It is repeated until it is acknowledged.
    if (open_.contains(host)) Happens(Event::kTick);
    open_.erase(host);
    if (entering_.erase(host) > 0) Happens(Event::kEntered);
  } else if (std::holds_alternative<proto::CreateTable>(heard.message)) {
    if (creating_.insert(host).second) Happens(Event::kCreate);
  } else if (std::holds_alternative<proto::EnterClock>(heard.message)) {
    entering_.insert(host);
  } else if (std::holds_alternative<proto::Leave>(heard.message)) {
    if (leaving_.insert(host).second) Happens(Event::kLeaves);
  } else if (std::holds_alternative<proto::Join>(heard.message)) {
    for (auto* const hosts : {&open_, &creating_, &entering_, &leaving_}) hosts->erase(host);
  }
}

void Meetings::OnFromScheduler(const van::Overheard& heard) {
  if (const auto* const map = std::get_if<proto::ClusterMap>(&heard.message)) {
    OnMap(*map);
  } else if (std::holds_alternative<proto::TableReply>(heard.message)) {
    creating_.erase(heard.to);
  } else if (std::holds_alternative<proto::LeaveAck>(heard.message)) {
    leaving_.erase(heard.to);
  } else if (std::holds_alternative<proto::CheckpointPrepare>(heard.message)) {
    preparing_.insert(heard.to);
  } else if (std::holds_alternative<proto::RestoreShards>(heard.message)) {
    restored_ = true;
  } else if (std::holds_alternative<proto::CheckpointCut>(heard.message)) {
    Happens(Event::kCut);
  }
}

void Meetings::OnFromServer(const van::Overheard& heard) {
  if (std::holds_alternative<proto::CheckpointWritten>(heard.message)) {
    Happens(Event::kWritten);
    preparing_.erase(heard.from);
  } else if (const auto* const entry = std::get_if<proto::Replicate>(&heard.message)) {
    if (entry->kind == proto::LogEntryKind::kHandoverEnd) handed_over_.erase(entry->shard);
  } else if (const auto* const reply = std::get_if<proto::Reply>(&heard.message)) {
    OnResult(reply->result);
  } else if (const auto* const acks = std::get_if<proto::PushAcks>(&heard.message)) {
    for (const proto::PushAck& ack : acks->acks) OnResult(proto::ReplyOf(*acks, ack).result);
  }
}

void Meetings::OnResult(const absl::Status& result) {
  if (!Refuses(result)) return;
  Happens(Event::kRefusal);
  refused_ = now_;
}

void Meetings::OnMap(const proto::ClusterMap& map) {
  if (map_ != nullptr && map.version <= map_->version) return;
  if (restarting_) Happens(Event::kSchedulerRestart);
  restarting_ = false;
  const auto before = std::exchange(map_, std::make_shared<const proto::ClusterMap>(map));
  if (before == nullptr || before->epoch == 0) return;
  CompareChains(*before, map);
  CompareWorkers(*before, map);
  if (DecidesMore(before->codecs, map.codecs)) Happens(Event::kSwitchDecided);
  if (DecidesMore(before->table_settings, map.table_settings)) Happens(Event::kChangeDecided);
}

void Meetings::CompareChains(const proto::ClusterMap& before, const proto::ClusterMap& map) {
  for (const proto::ServerEntry& server : before.servers) {
    if (!server.alive || Lives(map, server.rank, server.incarnation)) continue;
    Happens(Event::kServerDies);
    preparing_.erase(absl::StrCat(Name(Role::kServer), server.rank));
  }
  for (std::uint32_t shard = 0; shard < std::min(before.owners.size(), map.owners.size());
       ++shard) {
    const proto::Chain was = proto::ChainOf(before, shard), is = proto::ChainOf(map, shard);
    if (was.members.empty() || is.members.empty()) continue;
    if (was.members.front() != is.members.front()) {
      const std::uint32_t rank = was.members.front().server_rank;
      const auto incarnation = IncarnationOf(before, rank);
      const bool lives = incarnation.has_value() && Lives(map, rank, *incarnation);
      if (lives && handed_over_.insert(shard).second) Happens(Event::kHandover);
      if (!lives) handed_over_.erase(shard);
    }
    if (is.joining.size() > was.joining.size()) Happens(Event::kTransferBegins);
    for (const proto::ShardOwner& joined : was.joining) {
      if (std::ranges::find(is.members, joined) != is.members.end()) Happens(Event::kTransferEnds);
    }
  }
}

void Meetings::CompareWorkers(const proto::ClusterMap& before, const proto::ClusterMap& map) {
  for (const proto::WorkerEntry& was : before.workers) {
    const auto is = std::ranges::find(map.workers, was.rank, &proto::WorkerEntry::rank);
    if (is == map.workers.end()) continue;
    if (is->incarnation != was.incarnation) Happens(Event::kRankTakenAgain);
    const bool died = is->state == proto::WorkerState::kDead || is->incarnation != was.incarnation;
    if (was.state != proto::WorkerState::kAlive || !died) continue;
    Happens(Event::kWorkerDies);
    const std::string host = absl::StrCat(Name(Role::kWorker), was.rank);
    for (auto* const hosts : {&open_, &creating_, &leaving_}) hosts->erase(host);
  }
}

}  // namespace leeway::simulation
