#include "ps/shard/state/client_sessions.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"

namespace leeway::ps {

// ---- answers that are kept ----

absl::Status KeptAnswers::CheckRoom(std::uint64_t bytes) const {
  if (answers_.size() < proto::kAnswersKeptMax && bytes_ + bytes <= proto::kAnswersKeptBytesMax) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(answers_.size(), " answers of shard handlers, of ", bytes_,
                   " bytes, are kept for this "
                   "worker, which has not got all of them yet; of one shard at most ",
                   proto::kAnswersKeptMax, " of ", proto::kAnswersKeptBytesMax,
                   " bytes are: wait for some before calling again"));
}

void KeptAnswers::Keep(std::uint64_t sequence, const runtime::Buffer& answer) {
  const auto [kept, first] = answers_.try_emplace(sequence, answer.EnsureOwned());
  if (first) bytes_ += kept->second.size();
}

void KeptAnswers::ForgetBelow(std::uint64_t settled) {
  while (!answers_.empty() && answers_.begin()->first < settled) {
    bytes_ -= answers_.begin()->second.size();
    answers_.erase(answers_.begin());
  }
}

ClientSession* ClientSessions::Find(const WorkerKey& worker) {
  const auto found = sessions_.find(worker);
  return found == sessions_.end() ? nullptr : &found->second;
}

const ClientSession* ClientSessions::Find(const WorkerKey& worker) const {
  const auto found = sessions_.find(worker);
  return found == sessions_.end() ? nullptr : &found->second;
}

// ---- workers ----

void ClientSessions::Replace(const WorkerKey& before) { sessions_.erase(before); }

void ClientSessions::SeeMap(std::uint64_t version) {
  seen_ = std::max(seen_, version);
  told_ = std::max(told_, seen_);
  std::erase_if(not_shown_, [&](const WorkerKey& worker) {
    const ClientSession* const session = Find(worker);
    const std::optional<std::uint64_t> shown = clocks_->IncarnationOf(worker.first);
    if (session == nullptr || shown == worker.second) return true;
    const bool replaced = shown.has_value() && session->told <= seen_;
    if (!replaced) return false;
    Drop(worker);
    return true;
  });
}

ClientSession* ClientSessions::OfTold(const WorkerKey& worker, std::uint64_t version) {
  const std::optional<std::uint64_t> shown = clocks_->IncarnationOf(worker.first);
  if (shown == worker.second) return &Of(worker);
  if (AtMost(version) <= seen_ && shown.has_value()) {
    return nullptr;
  }
  not_shown_.insert(worker);
  ClientSession& session = Of(worker);
  session.told = std::max(session.told, AtMost(version));
  return &session;
}

void ClientSessions::DropRestored(const WorkerKey& worker) {
  std::erase_if(sessions_, [&](const auto& session) {
    return session.second.restored && session.first.first == worker.first &&
           session.first.second != worker.second;
  });
}

void ClientSessions::Enter(const WorkerKey& worker, std::uint64_t clock, std::uint64_t since) {
  ClientSession& session = Of(worker);
  session.since = since;
  session.clock = std::max(session.clock, clock);
  clocks_->Enter(worker.first, worker.second, clock, since);
}

void ClientSessions::DropPeer(van::PeerId peer) {
  std::erase_if(early_from_, [&](const WorkerKey& worker) {
    ClientSession* const session = Find(worker);
    if (session == nullptr) return true;
    bool none_left = true;
    for (RequestOrder& order : session->orders) {
      order.DropPeer(peer);
      none_left = none_left && order.keeps_nothing();
    }
    return none_left;
  });
}

// ---- changes of the head ----

void ClientSessions::RestartAsHead(bool inherited) {
  heads_before_ = heads_before_ || inherited;
  for (auto& [worker, session] : sessions_) {
    session.orders[kAtOnce].Restart(session.orders[kAtOnce].admitted());
    session.orders[kHeld].Restart(session.in_state);
    for (const RequestClass kind : {kAtOnce, kHeld}) {
      session.inherited[kind] = session.orders[kind].admitted();
    }
    session.updates_sent.Clear();
  }
}

std::optional<std::uint64_t> ClientSessions::UpdatesSentTo(const WorkerKey& worker,
                                                           std::uint32_t table,
                                                           std::uint64_t block) const {
  const ClientSession* const session = Find(worker);
  if (session == nullptr) return std::nullopt;
  const std::optional<std::uint64_t> sent = session->updates_sent.Of(table, block);
  if (sent.has_value() || heads_before_ || session->updates_sent.full()) return sent;
  return 0;
}

void ClientSessions::RestartAsFollower(std::uint64_t closed) {
  for (auto& [worker, session] : sessions_) {
    session.orders[kHeld].Restart(session.in_state);
    const bool entered = session.since != WorkerClocks::kNotEntered;
    session.clock = std::min(session.clock, entered ? std::max(closed, session.since) : closed);
  }
}

void ClientSessions::TakeHandover(const std::vector<proto::ClientSession>& sessions,
                                  std::uint64_t told) {
  NoteTold(told);
  for (const proto::ClientSession& worker : sessions) {
    const WorkerKey key{worker.rank, worker.incarnation};
    const bool left = clocks_->HasLeft(worker.rank, worker.incarnation);
    ClientSession* const known = left ? nullptr : OfTold(key, told);
    if (known == nullptr) {  // it has left or was replaced, and counts in means alone
      clocks_->NoteEnded({worker.rank, worker.incarnation, worker.clock, worker.since});
      continue;
    }
    Enter(key, worker.clock, worker.since);
    ClientSession& session = *known;
    for (const auto& [kind, admitted] :
         {std::pair(kAtOnce, worker.admitted), std::pair(kHeld, worker.admitted_held)}) {
      RequestOrder& order = session.orders[kind];
      order.Restart(std::max(order.admitted(), admitted));
      session.inherited[kind] = order.admitted();
    }
  }
}

// ---- the log, state transfers and checkpoints ----

std::vector<proto::ClientSession> ClientSessions::Export(std::uint64_t closed,
                                                         bool with_held) const {
  std::vector<proto::ClientSession> all;
  all.reserve(sessions_.size());
  for (const auto& [worker, session] : sessions_) {
    const bool current = clocks_->IncarnationOf(worker.first) == worker.second;
    const std::uint64_t since = current ? clocks_->SinceOf(worker.first) : session.since;
    std::uint64_t clock = current ? clocks_->ClockOf(worker.first) : session.clock;
    if (!with_held) {
      clock = std::min(clock, closed);
    }
    if (since != WorkerClocks::kNotEntered) clock = std::max(clock, since);
    all.push_back(
        {.rank = worker.first,
         .incarnation = worker.second,
         .clock = clock,
         .since = since,
         .admitted = session.orders[kAtOnce].admitted(),
         .admitted_held = with_held ? session.orders[kHeld].admitted() : session.in_state});
  }
  if (with_held) AddGone(closed, &all);
  return all;
}

// Workers that have left, or were replaced, have no session, but count in the means of clocks that
// they ended.
void ClientSessions::AddGone(std::uint64_t closed, std::vector<proto::ClientSession>* all) const {
  for (const WorkerClocks::Ended& gone : clocks_->EndedFrom(closed)) {
    if (sessions_.contains({gone.rank, gone.incarnation})) continue;
    all->push_back({.rank = gone.rank,
                    .incarnation = gone.incarnation,
                    .clock = gone.clock,
                    .since = gone.since});
  }
  std::ranges::sort(*all, {}, [](const proto::ClientSession& one) {
    return WorkerKey{one.rank, one.incarnation};
  });
}

void ClientSessions::Take(const std::vector<proto::ClientSession>& sessions, std::uint64_t told) {
  NoteTold(told);
  for (const proto::ClientSession& worker : sessions) {
    const WorkerKey key{worker.rank, worker.incarnation};
    ClientSession* const known = OfTold(key, told);
    if (known == nullptr) continue;
    if (worker.since != WorkerClocks::kNotEntered) {
      Enter(key, worker.clock, worker.since);
    }
    ClientSession& session = *known;
    RequestOrder& at_once = session.orders[kAtOnce];
    at_once.NoteAdmitted(worker.admitted);
    session.in_state = std::max(session.in_state, worker.admitted_held);
  }
}

void ClientSessions::Restore(const std::vector<proto::ClientSession>& sessions) {
  for (const proto::ClientSession& saved : sessions) {
    const std::optional<std::uint64_t> shown = clocks_->IncarnationOf(saved.rank);
    const bool replaced = shown.has_value() && *shown != saved.incarnation;
    if (replaced) continue;
    ClientSession& session = Of({saved.rank, saved.incarnation});
    session.restored = true;
    session.in_state = std::max(session.in_state, saved.admitted_held);
    RequestOrder& at_once = session.orders[kAtOnce];
    RequestOrder& held = session.orders[kHeld];
    at_once.Restart(std::max(at_once.admitted(), saved.admitted));
    held.Restart(std::max(held.admitted(), session.in_state));
    session.inherited[kAtOnce] = at_once.admitted();
    session.inherited[kHeld] = session.in_state;
  }
}

// Each worker and class has the same share of what a message takes. Of those beyond it is said that
// they are forgotten: a request that failed must never be taken for one that did not.
std::vector<proto::Refusal> ClientSessions::Refusals() const {
  std::size_t orders = 0;
  for (const auto& [worker, session] : sessions_) {
    for (const RequestOrder& order : session.orders) {
      orders += !order.failures().empty() || order.forgotten_failures() > 0;
    }
  }
  const std::size_t share =
      std::max<std::size_t>(1, proto::kRefusalsMax / std::max<std::size_t>(1, orders));
  std::vector<proto::Refusal> all;
  for (const auto& [worker, session] : sessions_) {
    for (const RequestClass kind : {kAtOnce, kHeld}) {
      const RequestOrder& order = session.orders[kind];
      proto::Refusal refusal{
          .worker = worker.first, .incarnation = worker.second, .held = kind == kHeld};
      std::uint64_t forgotten = order.forgotten_failures();
      auto first = order.failures().begin();
      for (std::size_t left = order.failures().size(); left >= share; --left) {
        forgotten = std::max(forgotten, (first++)->first);
      }
      if (forgotten > 0) {
        refusal.sequence = forgotten;
        refusal.with_earlier = true;
        refusal.status = absl::UnknownError("");
        all.push_back(refusal);
      }
      refusal.with_earlier = false;
      for (; first != order.failures().end(); ++first) {
        std::tie(refusal.sequence, refusal.status) = *first;
        all.push_back(refusal);
      }
    }
  }
  return all;
}

void ClientSessions::TakeRefusals(const std::vector<proto::Refusal>& refusals, std::uint64_t told) {
  NoteTold(told);
  for (const proto::Refusal& refusal : refusals) {
    ClientSession* const session = OfTold({refusal.worker, refusal.incarnation}, told);
    if (session == nullptr) continue;
    RequestOrder& order = session->orders[refusal.held ? kHeld : kAtOnce];
    if (refusal.with_earlier) {
      order.ForgetFailuresUpTo(refusal.sequence);
      continue;
    }
    // Of the held class what counts as admitted is what is in the state.
    if (!refusal.held) order.NoteAdmitted(refusal.sequence);
    order.RememberFailure(refusal.sequence, refusal.status);
  }
}

std::map<WorkerKey, std::uint64_t> ClientSessions::AdmittedAtOnce() const {
  std::map<WorkerKey, std::uint64_t> admitted;
  for (const auto& [worker, session] : sessions_) {
    admitted[worker] = session.orders[kAtOnce].admitted();
  }
  return admitted;
}

}  // namespace leeway::ps
