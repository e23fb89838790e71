#include "ps/control/server_checkpoints.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "ps/control/restore_job.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/file_system.h"
#include "runtime/log/log.h"

namespace leeway::ps {
namespace {

// Made ready after each file at most, so that the next one is not kept waiting for long.
constexpr std::uint64_t kRefillBytes = 32 << 20;
// The bytes that lie ready on each thread when its shards are frozen, or more if the last
// checkpoint took more.
constexpr std::uint64_t kReadyBytes = 128 << 20;
// The first time: this part of what the thread has in use. Where workers push as fast as files are
// written, more than that does not change before it is written. But a machine need not have so much
// to give where tables are huge, and they may hardly change.
constexpr std::uint64_t kFirstPart = 4;
constexpr std::uint64_t kFirstBytesMax = 1 << 30;

std::uint64_t ReadyBytes(const BlockPool& pool) {
  if (pool.copies_known()) return kReadyBytes;
  return std::clamp(pool.in_use_bytes() / kFirstPart, kReadyBytes, kFirstBytesMax);
}

absl::StatusOr<proto::CheckpointFile> WriteFrozen(runtime::FileSystem* files, const CutOrder& order,
                                                  absl::StatusOr<FrozenShard> frozen) {
  LEEWAY_RETURN_IF_ERROR(frozen.status());
  LEEWAY_ASSIGN_OR_RETURN(ShardContent content, ApplyTrailingPushes(*std::move(frozen)));
  content.checkpoint = checkpoint::SplitPath(order.folder).second;
  auto written = WriteShardFile(files, order.folder, std::move(content));
  if (written.ok() || !absl::IsResourceExhausted(written.status())) return written;
  const absl::StatusOr<std::uint64_t> free = files->BytesFree(order.folder);
  if (!free.ok()) return written;
  return absl::ResourceExhaustedError(absl::StrCat(written.status().message(), " (", *free,
                                                   " bytes are free in ", order.folder, ")"));
}

}  // namespace

ServerCheckpoints::ServerCheckpoints(Setup setup) : setup_(std::move(setup)) {}
ServerCheckpoints::~ServerCheckpoints() {
  if (save_ != nullptr) save_->given_up = true;
}

runtime::Loop* ServerCheckpoints::writer() {
  if (writer_ == nullptr) writer_ = setup_.host->SpawnInBackground("server files");
  return writer_->loop();
}

void ServerCheckpoints::GiveUp(const absl::Status& why) {
  if (save_ == nullptr) return;
  save_->given_up = true;
  save_ = nullptr;
  setup_.on_every_thread([why](DataThread* thread, std::uint32_t) { thread->AbandonCuts(why); },
                         [] {});
  FreeExcess();
}

// ---- before the cut ----

void ServerCheckpoints::On(const proto::CheckpointPrepare& prepare) {
  if (prepare.checkpoint < newest_) return;
  if (prepare.checkpoint == newest_ && save_ != nullptr) return;  // it is further already
  newest_ = prepare.checkpoint;
  GiveUp(absl::AbortedError("another checkpoint has begun"));
  struct Found {
    std::mutex mutex;
    Refillers refillers;
  };
  auto found = std::make_shared<Found>();
  setup_.on_every_thread(
      [found](DataThread* thread, std::uint32_t) {
        BlockPool* const pool = thread->block_pool();
        pool->Reserve(ReadyBytes(*pool));
        const std::lock_guard lock(found->mutex);
        found->refillers.push_back(pool->refiller());
      },
      [this, found, checkpoint = prepare.checkpoint] {
        refillers_ = found->refillers;
        MakeReady(checkpoint);
      });
}

// Before anything is frozen: from then on workers wait for it.
void ServerCheckpoints::MakeReady(std::uint64_t checkpoint) {
  writer()->Post([this, checkpoint, refillers = refillers_] {
    for (const BlockPool::Refiller& refiller : refillers) {
      refiller.Refill(std::numeric_limits<std::uint64_t>::max());
    }
    setup_.loop->Post([this, checkpoint] { SayNewestClock(checkpoint); });
  });
}

void ServerCheckpoints::SayNewestClock(std::uint64_t checkpoint) {
  struct Newest {
    std::mutex mutex;
    std::uint64_t clock = 0;
  };
  auto newest = std::make_shared<Newest>();
  setup_.on_every_thread(
      [newest](DataThread* thread, std::uint32_t) {
        const std::lock_guard lock(newest->mutex);
        newest->clock = std::max(newest->clock, thread->NewestClock());
      },
      [this, newest, checkpoint] {
        setup_.tell_scheduler(
            proto::CheckpointPrepared{.checkpoint = checkpoint, .fastest_clock = newest->clock});
      });
}

// ---- the cut ----

void ServerCheckpoints::On(const proto::CheckpointCut& cut) {
  if (cut.checkpoint < newest_) return;
  if (save_ != nullptr && cut.checkpoint == newest_) {
    if (save_->reported) setup_.tell_scheduler(save_->report);
    return;
  }
  newest_ = cut.checkpoint;
  GiveUp(absl::AbortedError("another checkpoint has begun"));
  save_ = std::make_shared<Save>();
  save_->order = {.checkpoint = cut.checkpoint,
                  .clock = cut.clock,
                  .folder = cut.directory,
                  .base = cut.base,
                  .bounded = cut.bounded};
  save_->report.checkpoint = cut.checkpoint;
  save_->refillers = refillers_;
  Begin(save_);
}

void ServerCheckpoints::Begin(const std::shared_ptr<Save>& save) {
  // Shards are frozen at their own times, and written one after another as they come.
  const ShardCut::Done done = [this, save, writer = writer()](absl::StatusOr<FrozenShard> frozen) {
    auto kept = std::make_shared<absl::StatusOr<FrozenShard>>(std::move(frozen));
    writer->Post([this, save, kept] { Write(save, std::move(*kept)); });
  };
  struct Begun {
    std::mutex mutex;
    std::uint32_t shards = 0;
    absl::Status result;
  };
  auto begun = std::make_shared<Begun>();
  setup_.on_every_thread(
      [save, done, begun](DataThread* thread, std::uint32_t) {
        thread->block_pool()->BeginCopies();
        const absl::StatusOr<std::uint32_t> shards = thread->BeginCuts(save->order, done);
        const std::lock_guard lock(begun->mutex);
        begun->result.Update(shards.status());
        if (shards.ok()) begun->shards += *shards;
      },
      [this, save, begun] {
        save->begun = true;
        save->shards = begun->shards;
        save->report.result.Update(begun->result);
        ReportIfOver(save);
      });
}

// On the writer's loop.
void ServerCheckpoints::Write(const std::shared_ptr<Save>& save,
                              absl::StatusOr<FrozenShard> frozen) {
  if (save->given_up) return;
  auto file = WriteFrozen(setup_.host->files(), save->order, std::move(frozen));
  // The memory that the threads have used meanwhile, as far as it has not come back.
  for (const BlockPool::Refiller& refiller : save->refillers) refiller.Refill(kRefillBytes);
  setup_.loop->Post(
      [this, save, file = std::move(file)]() mutable { OnWritten(save, std::move(file)); });
}

void ServerCheckpoints::OnWritten(const std::shared_ptr<Save>& save,
                                  absl::StatusOr<proto::CheckpointFile> file) {
  ++save->written;
  save->report.result.Update(file.status());
  if (file.ok()) save->report.files.push_back(*std::move(file));
  ReportIfOver(save);
}

void ServerCheckpoints::ReportIfOver(const std::shared_ptr<Save>& save) {
  const bool failed = !save->report.result.ok();
  if (save->reported || save->given_up || !save->begun) return;
  if (!failed && save->written < save->shards) return;
  if (failed) {
    save->given_up = true;
    save->report.files.clear();
    setup_.on_every_thread([why = save->report.result](DataThread* thread,
                                                       std::uint32_t) { thread->AbandonCuts(why); },
                           [] {});
  }
  save->reported = true;
  setup_.tell_scheduler(save->report);
  FreeExcess();
}

// Memory beyond what is to lie ready goes back to the system: on the writer's loop, since
// that takes its time.
void ServerCheckpoints::FreeExcess() {
  setup_.on_every_thread(
      [writer = writer()](DataThread* thread, std::uint32_t) {
        thread->block_pool()->EndCopies();
        auto excess = std::make_shared<BlockPool::Excess>(thread->block_pool()->TakeExcess());
        if (!excess->empty()) writer->Post([excess] { excess->clear(); });
      },
      [] {});
}

// ---- restoring ----

void ServerCheckpoints::On(const proto::RestoreShards& restore) {
  if (restore_ != nullptr && restore_->request() == restore.request) {
    restore_->AnswerAgain();
    return;
  }
  restore_ =
      std::make_shared<RestoreJob>(RestoreJob::Setup{.files = setup_.host->files(),
                                                     .loop = setup_.loop,
                                                     .reader = writer(),
                                                     .on_every_thread = setup_.on_every_thread,
                                                     .tell_scheduler = setup_.tell_scheduler},
                                   restore);
  restore_->Start();
}

}  // namespace leeway::ps
