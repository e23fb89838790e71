// A data thread and checkpoints.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/data/data_thread.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

std::uint64_t DataThread::NewestClock() const {
  std::uint64_t newest = 0;
  for (const auto& [id, replica] : replicas_) {
    if (replica->is_head()) newest = std::max(newest, replica->shard().newest_clock());
  }
  return newest;
}

absl::StatusOr<std::uint32_t> DataThread::BeginCuts(const CutOrder& order,
                                                    const ShardCut::Done& done) {
  std::uint32_t shards = 0;
  for (const auto& [id, replica] : replicas_) {
    if (!replica->is_head()) continue;
    if (!replica->leads() && !runtime::Planted<"cut-while-handed-over">()) {
      return absl::AbortedError(absl::StrCat("shard ", id, " is being handed over"));
    }
    ++shards;
    // What is not on every replica may never have been.
    auto committed = [replica = replica.get(), done](absl::StatusOr<FrozenShard> frozen) {
      auto kept = std::make_shared<absl::StatusOr<FrozenShard>>(std::move(frozen));
      if (runtime::Planted<"cut-before-replicas">()) return done(std::move(*kept));
      replica->WhenCommitted([kept, done] { done(std::move(*kept)); });
    };
    LEEWAY_RETURN_IF_ERROR(replica->shard().BeginCut(order, std::move(committed)));
  }
  return shards;
}

void DataThread::AbandonCuts(const absl::Status& why) {
  for (const auto& [id, replica] : replicas_) replica->shard().AbandonCut(why);
}

std::vector<std::uint32_t> DataThread::Shards() const {
  std::vector<std::uint32_t> shards;
  for (const auto& [id, replica] : replicas_) shards.push_back(id);
  return shards;
}

absl::Status DataThread::Restore(const ShardContent& content) {
  for (const auto& [id, replica] : replicas_) {
    const bool same = content.num_shards == context_.num_shards;
    if (same && id != content.shard) continue;
    if (replica->shard().index() != 0 && !runtime::Planted<"restored-over-pushes">()) {
      return absl::FailedPreconditionError(
          absl::StrCat("shard ", id,
                       " has been pushed to already: a checkpoint is restored before "
                       "the workers begin"));
    }
    LEEWAY_RETURN_IF_ERROR(replica->shard().Restore(content).status());
  }
  return absl::OkStatus();
}

}  // namespace leeway::ps
