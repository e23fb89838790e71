#include "ps/control/restore_job.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

// The outcomes of all threads.
struct RestoreJob::Needed {
  std::mutex mutex;
  std::uint32_t num_shards = 0;
  std::vector<bool> here;  // by shard
  absl::Status result;
};

void RestoreJob::AnswerAgain() {
  if (reply_.has_value()) setup_.tell_scheduler(*reply_);
}

void RestoreJob::Start() {
  auto needed = std::make_shared<Needed>();
  setup_.on_every_thread(
      [needed](DataThread* thread, std::uint32_t) {
        const std::lock_guard lock(needed->mutex);
        needed->num_shards = thread->num_shards();
        needed->here.resize(needed->num_shards);
        for (const std::uint32_t shard : thread->Shards()) needed->here[shard] = true;
      },
      [self = shared_from_this(), needed] {
        self->setup_.reader->Post(
            [self, needed] { self->ReadManifests(needed->num_shards, needed->here); });
      });
}

// ---- on the reader's loop ----

void RestoreJob::ReadManifests(std::uint32_t num_shards, const std::vector<bool>& here) {
  auto chain = ReadModelChain(setup_.files, restore_.directory);
  if (!chain.ok()) return Finish(chain.status());
  chain_ = *std::move(chain);
  if (chain_.front().checksum != restore_.checksum) {
    return Finish(absl::DataLossError(absl::StrCat(
        restore_.directory, " is another checkpoint here than where the scheduler runs (",
        checkpoint::kManifestName, " differs): every server needs the folder that LEEWAY_RESTORE ",
        "names there")));
  }
  // With another number of shards, rows lie anywhere.
  const std::uint32_t saved = chain_.front().num_shards;
  for (std::uint32_t shard = saved; shard-- > 0;) {
    if (saved != num_shards || (shard < here.size() && here[shard])) to_read_.push_back(shard);
  }
  ReadNext();
}

void RestoreJob::ReadNext() {
  if (to_read_.empty()) return Finish(absl::OkStatus());
  const std::uint32_t shard = to_read_.back();
  to_read_.pop_back();
  auto contents = ReadShard(setup_.files, checkpoint::SplitPath(restore_.directory).first, chain_,
                            shard, [](std::uint64_t) {});
  if (!contents.ok()) return Finish(contents.status());
  auto kept = std::make_shared<std::vector<ShardContent>>(*std::move(contents));
  setup_.loop->Post([self = shared_from_this(), kept] { self->Load(std::move(*kept)); });
}

// ---- on the control loop ----

void RestoreJob::Load(std::vector<ShardContent> contents) {
  auto shared = std::make_shared<const std::vector<ShardContent>>(std::move(contents));
  auto needed = std::make_shared<Needed>();
  setup_.on_every_thread(
      [shared, needed](DataThread* thread, std::uint32_t) {
        absl::Status result;
        for (const ShardContent& content : *shared) {
          result.Update(thread->Restore(content));
        }
        const std::lock_guard lock(needed->mutex);
        needed->result.Update(result);
      },
      [self = shared_from_this(), needed] {
        if (!needed->result.ok()) return self->Finish(needed->result);
        self->setup_.reader->Post([self] { self->ReadNext(); });
      });
}

// On either loop.
void RestoreJob::Finish(const absl::Status& result) {
  setup_.loop->Post([self = shared_from_this(), result] {
    self->reply_ = proto::RestoreShardsReply{.request = self->restore_.request, .result = result};
    self->setup_.tell_scheduler(*self->reply_);
  });
}

}  // namespace leeway::ps
