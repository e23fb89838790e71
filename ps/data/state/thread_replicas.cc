#include "ps/data/state/thread_replicas.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

ThreadReplicas::ThreadReplicas(runtime::Loop* loop, Counters* counters, ReplicaHost* host,
                               ReplySink* replies)
    : loop_(loop), resend_(loop, [this] { OnResendTimer(); }) {
  shards_.loop = loop;
  shards_.counters = counters;
  context_.host = host;
  context_.replies = replies;
  context_.shards = &shards_;
}

void ThreadReplicas::TakeMap(const proto::ClusterMap& map) {
  for (std::uint32_t id = 0; id < map.owners.size(); ++id) {
    auto it = replicas_.find(id);
    if (it == replicas_.end()) {
      const proto::Chain chain = proto::ChainOf(map, id);
      const auto here = [this](const proto::ShardOwner& place) { return place == context_.place; };
      if (std::none_of(chain.members.begin(), chain.members.end(), here) &&
          std::none_of(chain.joining.begin(), chain.joining.end(), here)) {
        continue;
      }
      it = replicas_.emplace(id, std::make_unique<Replica>(id, &context_)).first;
      for (const proto::WorkerEntry& worker : map.workers) it->second->shard().SetWorker(worker);
    }
    it->second->shard().SeeMap(map.version);
    it->second->TakeMap(map);
  }
  std::erase_if(replicas_, [](const auto& entry) { return entry.second->gone(); });
}

Replica* ThreadReplicas::Find(std::uint32_t shard) const {
  auto it = replicas_.find(shard);
  return it == replicas_.end() ? nullptr : it->second.get();
}

std::vector<const Replica*> ThreadReplicas::List() const {
  std::vector<const Replica*> replicas;
  for (const auto& [id, replica] : replicas_) replicas.push_back(replica.get());
  return replicas;
}

std::vector<std::uint32_t> ThreadReplicas::Shards() const {
  std::vector<std::uint32_t> shards;
  for (const auto& [id, replica] : replicas_) shards.push_back(id);
  return shards;
}

bool ThreadReplicas::AwaitHandover() const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [](const auto& entry) { return entry.second->awaits_handover(); });
}

// ---- clocks ----

std::uint64_t ThreadReplicas::ClockOf(std::uint32_t rank) const {
  std::uint64_t clock = kClockMax;
  for (const auto& [id, replica] : replicas_) {
    if (replica->leads()) clock = std::min(clock, replica->shard().clocks().ClockOf(rank));
  }
  return clock == kClockMax ? 0 : clock;
}

std::uint64_t ThreadReplicas::Stable() const {
  std::uint64_t stable = kClockMax;
  for (const auto& [id, replica] : replicas_) {
    if (!replica->is_head()) continue;
    stable = std::min(stable, replica->leads() ? replica->stable() : 0);
  }
  return stable == kClockMax ? 0 : stable;
}

// ---- calls that replicas ask for ----

// Once for each of `shards`, a member of this, however often it is asked for until then.
void ThreadReplicas::CallSoon(void (Replica::*call)(), std::uint32_t shard,
                              std::set<std::uint32_t>* shards) {
  const bool posted = !shards->empty();
  shards->insert(shard);
  if (posted) return;
  loop_->Post([this, call, shards, here = lifetime_.watch()] {
    if (!here) return;
    for (const std::uint32_t one : std::exchange(*shards, {})) {
      if (Replica* replica = Find(one)) (replica->*call)();
    }
  });
}

void ThreadReplicas::OnResendTimer() {
  const absl::Time now = loop_->Now();
  for (auto& [id, replica] : replicas_) {
    replica->ResendIfDue(now);
    ResendAt(replica->due());
  }
}

// ---- checkpoints ----

std::uint64_t ThreadReplicas::NewestClock() const {
  std::uint64_t newest = 0;
  for (const auto& [id, replica] : replicas_) {
    if (replica->is_head()) newest = std::max(newest, replica->shard().newest_clock());
  }
  return newest;
}

// Values that are not on every replica may be lost with this server: nobody may be told of a cut or
// a publication that has them.
template <class Begin>
absl::StatusOr<std::uint32_t> ThreadReplicas::BeginAtHeads(const Begin& begin) {
  std::uint32_t shards = 0;
  for (const auto& [id, replica] : replicas_) {
    if (!replica->is_head()) continue;
    if (!replica->leads()) {
      return absl::AbortedError(absl::StrCat("shard ", id, " is being handed over"));
    }
    ++shards;
    LEEWAY_RETURN_IF_ERROR(begin(replica.get()));
  }
  return shards;
}

absl::StatusOr<std::uint32_t> ThreadReplicas::BeginCuts(const CutOrder& order,
                                                        const ShardCut::Done& done) {
  return BeginAtHeads([&](Replica* replica) {
    return replica->shard().BeginCut(order, [replica, done](absl::StatusOr<FrozenShard> frozen) {
      auto kept = std::make_shared<absl::StatusOr<FrozenShard>>(std::move(frozen));
      replica->WhenCommitted([kept, done] { done(std::move(*kept)); });
    });
  });
}

absl::StatusOr<std::uint32_t> ThreadReplicas::BeginPublications(const proto::Publish& publish,
                                                                const Publications::Done& done) {
  return BeginAtHeads([&](Replica* replica) {
    return replica->shard().BeginPublication(publish, [replica, done](const absl::Status& made) {
      replica->WhenCommitted([made, done] { done(made); });
    });
  });
}

void ThreadReplicas::KeepPublications(const std::set<std::uint64_t>& kept) {
  for (const auto& [id, replica] : replicas_) replica->shard().KeepPublications(kept);
}

void ThreadReplicas::AbandonCuts(const absl::Status& why) {
  for (const auto& [id, replica] : replicas_) replica->shard().AbandonCut(why);
}

absl::Status ThreadReplicas::Restore(const ShardContent& content) {
  for (const auto& [id, replica] : replicas_) {
    const bool same = content.num_shards == shards_.num_shards;
    if (same && id != content.shard) continue;
    if (replica->shard().index() != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("shard ", id,
                       " has been pushed to already: a checkpoint is restored before "
                       "the workers begin"));
    }
    LEEWAY_RETURN_IF_ERROR(replica->shard().Restore(content).status());
  }
  return absl::OkStatus();
}

std::string ThreadReplicas::UnderWay() const {
  std::string text;
  for (const auto& [name, amount] :
       {std::pair("held bytes", shards_.held.bytes), std::pair("early bytes", shards_.early.bytes),
        std::pair("trailing bytes", shards_.trailing.bytes),
        std::pair("log bytes", context_.log.bytes),
        std::pair("bytes for readers", context_.readers.bytes),
        std::pair("transfers", std::uint64_t{context_.transfers})}) {
    if (amount != 0) absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", amount);
  }
  return text;
}

}  // namespace leeway::ps
