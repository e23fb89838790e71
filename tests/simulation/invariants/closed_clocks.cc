#include "tests/simulation/invariants/closed_clocks.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/consistency/worker_clocks.h"

namespace leeway::simulation {
namespace {

std::string DescribeItem(const proto::Replicate& sent) {
  return absl::StrCat("sent of kind ", static_cast<int>(sent.kind), " of shard ", sent.shard,
                      ", epoch ", sent.epoch, ", index ", sent.index, ", clock ", sent.clock);
}

// Empty unless `now` says less of a worker than `before` did.
std::string SaysLess(const proto::ClientSession& now, const proto::ClientSession& before) {
  const auto since = [](const proto::ClientSession& session) {
    return session.since == ps::WorkerClocks::kNotEntered ? 0 : session.since;
  };
  if (now.clock >= before.clock && since(now) >= since(before) && now.admitted >= before.admitted &&
      now.admitted_held >= before.admitted_held) {
    return "";
  }
  const auto text = [](const proto::ClientSession& session) {
    return absl::StrCat("clock ", session.clock, " since ", session.since, ", pushes up to ",
                        session.admitted, " and ", session.admitted_held);
  };
  return absl::StrCat("worker ", now.rank, " is at ", text(now), ", and was at ", text(before));
}

}  // namespace

std::uint64_t ClosedClocks::ClosedIn(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found == shards_.end() ? 0 : found->second.closed;
}

std::string ClosedClocks::Hear(const van::Overheard& heard) {
  if (const auto* sent = std::get_if<proto::Replicate>(&heard.message)) {
    epoch_ = std::max(epoch_, sent->epoch);
    std::string wrong = OnEntry(*sent);
    Commit(sent->shard);
    return wrong;
  }
  if (const auto* ack = std::get_if<proto::ReplicateAck>(&heard.message)) {
    Commit(ack->shard);
  } else if (const auto* request = std::get_if<proto::Request>(&heard.message)) {
    OnRequest(*request);
  } else if (const auto* reply = std::get_if<proto::Reply>(&heard.message)) {
    return OnReply(*reply);
  } else if (const auto* map = std::get_if<proto::ClusterMap>(&heard.message)) {
    epoch_ = std::max(epoch_, map->epoch);
    if (map->version < version_) return "";
    version_ = map->version;
    for (const proto::WorkerEntry& worker : map->workers) {
      // One that has left sends nothing again.
      const bool left = worker.state == proto::WorkerState::kLeft;
      incarnations_[worker.rank] = left ? 0 : worker.incarnation;
    }
  } else if (const auto* install = std::get_if<proto::InstallTable>(&heard.message)) {
    if (install->of == 0 && install->spec.consistency.is_bsp()) bsp_.insert(install->table);
  }
  return "";
}

std::string ClosedClocks::OnEntry(const proto::Replicate& sent) {
  Shard& shard = shards_[sent.shard];
  const bool entry_ends = LogHistory::IsOfEntry(sent.kind) && !proto::IsPartOfNext(sent.kind);
  if (entry_ends && sent.index > logs_->committed(sent.shard)) {
    Entry& entry = shard.open[sent.index];
    if (sent.epoch >= entry.epoch) {
      entry = {.epoch = sent.epoch,
               .closes = sent.kind == proto::LogEntryKind::kClose,
               .clock = sent.clock,
               .workers = sent.workers};
    }
  }
  if (sent.kind == proto::LogEntryKind::kTransferBegin) {
    // A head without followers may have made other entries with these numbers meanwhile.
    std::erase_if(shard.open, [&](const auto& entry) { return entry.second.epoch < sent.epoch; });
  }
  if (sent.kind == proto::LogEntryKind::kClose) return OnClose(&shard, sent);
  if (sent.epoch < shard.since) return "";
  if (sent.kind == proto::LogEntryKind::kEnter && sent.index > logs_->committed(sent.shard) &&
      sent.workers.front().clock < shard.closed) {
    return absl::StrCat(DescribeItem(sent), ": worker ", sent.workers.front().rank,
                        " enters at clock ", sent.workers.front().clock, ", where clocks below ",
                        shard.closed, " have closed");
  }
  const bool begins = sent.kind == proto::LogEntryKind::kTransferBegin && sent.index >= shard.index;
  return begins ? OnWindows(shard, sent) : "";
}

std::string ClosedClocks::OnClose(Shard* shard, const proto::Replicate& sent) {
  const auto [here, first] = shard->closes.try_emplace({sent.epoch, sent.index}, sent.clock);
  if (here != shard->closes.begin()) {
    const auto& [at, clock] = *std::prev(here);
    if (at.first == sent.epoch && clock >= sent.clock) {
      return absl::StrCat(DescribeItem(sent), ": entry ", at.second, " has closed clock ", clock);
    }
  }
  if (sent.epoch < shard->since || sent.index <= logs_->committed(sent.shard)) return "";
  if (sent.clock < shard->closed) {
    return absl::StrCat(DescribeItem(sent), ": clocks below ", shard->closed,
                        " have closed already");
  }
  return OnWindows(*shard, sent);
}

std::string ClosedClocks::OnWindows(const Shard& shard, const proto::Replicate& sent) const {
  if (sent.kind == proto::LogEntryKind::kTransferBegin && sent.clock < shard.closed) {
    return absl::StrCat(DescribeItem(sent), ": clocks below ", shard.closed, " have closed");
  }
  for (const proto::ClientSession& session : sent.workers) {
    const auto known = shard.sessions.find({session.rank, session.incarnation});
    if (known == shard.sessions.end()) continue;
    const auto current = incarnations_.find(session.rank);
    if (current != incarnations_.end() && current->second != session.incarnation) continue;
    std::string wrong = SaysLess(session, known->second);
    if (!wrong.empty()) return absl::StrCat(DescribeItem(sent), ": ", wrong);
  }
  return "";
}

// Commits entries that were sent: they may be relied on from now on.
void ClosedClocks::Commit(std::uint32_t id) {
  Shard& shard = shards_[id];
  const std::uint64_t committed = logs_->committed(id);
  while (!shard.open.empty() && shard.open.begin()->first <= committed) {
    const auto node = shard.open.extract(shard.open.begin());
    const Entry& entry = node.mapped();
    if (!entry.closes) continue;
    shard.index = node.key();
    shard.sessions.clear();
    for (const proto::ClientSession& session : entry.workers) {
      shard.sessions[{session.rank, session.incarnation}] = session;
    }
    shard.closed = std::max(shard.closed, entry.clock + 1);
    shard.since = epoch_;
  }
}

void ClosedClocks::OnRequest(const proto::Request& request) {
  epoch_ = std::max(epoch_, request.epoch);
  if (!proto::HasPull(request.op) || !bsp_.contains(request.table)) return;
  if (request.publication != 0) return;  // published_model.h knows what such a pull may see
  const proto::RequestId& id = request.id;
  asked_.try_emplace({id.worker, id.incarnation, id.shard, id.sequence}, ClosedIn(id.shard));
}

std::string ClosedClocks::OnReply(const proto::Reply& reply) {
  const proto::RequestId& id = reply.id;
  const auto asked = asked_.find({id.worker, id.incarnation, id.shard, id.sequence});
  if (asked == asked_.end() || !reply.result.ok()) return "";
  if (reply.coded || reply.slowest_clock >= asked->second) return "";
  return absl::StrCat("request ", id.sequence, " of worker ", id.worker, " to shard ", id.shard,
                      " is answered as of clock ", reply.slowest_clock, ", where clocks below ",
                      asked->second, " had closed when it was asked");
}

}  // namespace leeway::simulation
