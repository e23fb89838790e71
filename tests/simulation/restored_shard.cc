#include "tests/simulation/restored_shard.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"

namespace leeway::simulation {
namespace {

// More than any run holds.
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 40;

}  // namespace

RestoredShard::RestoredShard(const checkpoint::Manifest& manifest, std::uint32_t shard,
                             const History* history)
    : history_(history), fastest_(manifest.clock) {
  context_.loop = loop_->loop();
  context_.counters = &counters_;
  context_.num_shards = manifest.num_shards;
  context_.block_bytes = manifest.block_bytes;
  context_.start_clock = manifest.clock;
  context_.message_bytes_max = kBytesMax;
  context_.held.bytes_max = context_.trailing.bytes_max = kBytesMax;
  shard_ = std::make_unique<ps::Shard>(shard, &context_, &alone_, &alone_);
}

absl::Status RestoredShard::Begin(const checkpoint::Manifest& manifest,
                                  const std::vector<ps::ShardContent>& contents) {
  for (const checkpoint::TableEntry& table : manifest.tables) {
    LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Updater> updater, ps::MakeUpdater(table.spec));
    LEEWAY_RETURN_IF_ERROR(context_.tables.Install(table.id, table.spec, std::move(updater)));
  }
  for (std::uint32_t rank = 0; rank < history_->lives.size(); ++rank) {
    const std::uint32_t incarnation = NewestIn(contents.back(), rank);
    if (incarnation != 0) Join(rank, incarnation, /*late=*/false);
  }
  shard_->BecomeHead(/*inherited=*/false);
  for (const ps::ShardContent& content : contents) {
    LEEWAY_RETURN_IF_ERROR(shard_->Restore(content).status());
  }
  return absl::OkStatus();
}

// The newest incarnation of that rank in the file; 0: none that will send anything. A worker that
// leaves is forgotten: if the file does not have it, it may have left before.
std::uint32_t RestoredShard::NewestIn(const ps::ShardContent& content, std::uint32_t rank) const {
  const WorkerLife& life = history_->lives[rank];
  std::uint32_t newest = life.leaving || life.known_as.empty() || !life.left.empty() ? 0 : 1;
  for (const proto::ClientSession& window : content.sessions) {
    if (window.rank == rank) newest = std::max(newest, life.Incarnation(window.incarnation));
  }
  return newest;
}

void RestoredShard::Join(std::uint32_t rank, std::uint32_t incarnation, bool late) {
  Worker& worker = workers_[rank];
  if (history_->lives[rank].left.contains(worker.incarnation)) {
    proto::WorkerEntry leaver;
    leaver.rank = rank;
    leaver.incarnation = worker.known_as;
    leaver.state = proto::WorkerState::kLeft;
    shard_->SetWorker(leaver);
  }
  worker = {.incarnation = incarnation,
            .known_as = history_->lives[rank].known_as[incarnation - 1]};
  proto::WorkerEntry entry;
  entry.rank = rank;
  entry.incarnation = worker.known_as;
  entry.late = late;
  shard_->SetWorker(entry);
  if (late) worker.clock = shard_->Enter(rank, worker.known_as);
  fastest_ = std::max(fastest_, worker.clock);
}

bool RestoredShard::Take(const ps::Inbound& sent) {
  const proto::RequestId& id = sent.request.id;
  const std::uint32_t incarnation = history_->lives[id.worker].Incarnation(id.incarnation);
  const auto worker = workers_.find(id.worker);
  if (worker == workers_.end() || incarnation < worker->second.incarnation) return false;
  if (incarnation > worker->second.incarnation) Join(id.worker, incarnation, /*late=*/true);
  EndClocks(id.worker, sent.request.clock);
  const bool held = Find(sent.request.table)->is_bsp();
  std::uint64_t& last = worker->second.sent.by_class[held ? ps::kHeld : ps::kAtOnce];
  ps::Inbound again = sent;
  // As a worker that retains all its pushes.
  again.request.after = last;
  again.request.read_updates = 0;  // it has read nothing of this cluster yet
  last = id.sequence;
  shard_->TakeRequest(std::move(again));
  return true;
}

void RestoredShard::EndClocks(std::uint32_t rank, std::uint64_t clock) {
  Worker& worker = workers_.at(rank);
  if (clock <= worker.clock) return;
  worker.clock = clock;
  fastest_ = std::max(fastest_, clock);
  shard_->TakeTick(rank, worker.known_as, clock, 0, worker.sent);
}

void RestoredShard::End() {
  // A late worker's pushes are held for a clock that has not closed, which may be one that no
  // worker is in yet.
  const std::uint64_t end = std::max(fastest_, shard_->closed()) + 1;
  for (const auto& [rank, worker] : workers_) EndClocks(rank, end);
  shard_->CloseClocks();
}

}  // namespace leeway::simulation
