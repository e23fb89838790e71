#include "scheduler/checkpoints/checkpoints.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "checkpoint/folder.h"
#include "proto/messages/limits.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

constexpr absl::Duration kPauseFirst = absl::Milliseconds(20);
constexpr absl::Duration kPauseMax = absl::Seconds(1);
// How often servers are asked for the workers' clock, where a clock makes a checkpoint due.
constexpr absl::Duration kAskClocksInterval = absl::Seconds(1);
constexpr std::uint64_t kCutMarginMax = 1024;
constexpr std::size_t kDirectoryBytesMax = proto::kPathBytesMax - 64;  // and a checkpoint's name

}  // namespace

// Workers of such a table are in several clocks at a time.
bool Checkpoints::Facts::IsBounded() const {
  return bounded || std::any_of(tables.begin(), tables.end(), [](const auto& table) {
           return table.spec.consistency.is_bounded();
         });
}

Checkpoints::Checkpoints(const Config* config, runtime::Host* host, runtime::Loop* loop,
                         const MembershipTable* members, GetFacts facts, Tell tell)
    : config_(config),
      loop_(loop),
      host_(host),
      members_(members),
      get_facts_(std::move(facts)),
      tell_(std::move(tell)),
      due_clock_(config->checkpoint_every_clocks),
      disk_(host, loop) {}

Checkpoints::~Checkpoints() { *self_ = nullptr; }

void Checkpoints::Stop() {
  stopped_ = true;
  while (!wishes_.empty()) Fail(absl::UnavailableError("the cluster has ended"));
}

// ---- wishes ----

void Checkpoints::Save(Wish wish, Done done) {
  if (wish.directory.empty()) wish.directory = config_->checkpoint_dir;
  const std::string& where = wish.directory;
  if (where.empty()) {
    return done(absl::InvalidArgumentError(
        "no folder for the checkpoint: name one, or set LEEWAY_CHECKPOINT_DIR of the scheduler"));
  }
  if (where.size() > kDirectoryBytesMax) {
    return done(absl::InvalidArgumentError(absl::StrCat(
        "the folder's path is ", where.size(), " bytes long, may be ", kDirectoryBytesMax)));
  }
  if (stopped_) return done(absl::UnavailableError("the cluster has ended"));
  if (wishes_.size() >= kSavesWaitingMax) {
    return done(absl::ResourceExhaustedError(
        absl::StrCat(kSavesWaitingMax, " checkpoints wait to be saved already")));
  }
  wishes_.push_back(
      {.wish = std::move(wish), .done = std::move(done), .deadline = absl::InfiniteFuture()});
  if (phase_ == Phase::kIdle) NextWish();
}

void Checkpoints::SaveCommand(const AdminService::Arguments& arguments,
                              const AdminService::Answer& answer) {
  Wish wish;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view text = arguments[i];
    std::uint64_t clock = 0;
    if (i == 0) {
      wish.directory = arguments[0];
    } else if (text == "incremental") {
      wish.incremental = true;
    } else if (absl::ConsumePrefix(&text, "at:") && absl::SimpleAtoi(text, &clock)) {
      wish.at = clock;
    } else {
      return answer(absl::InvalidArgumentError(
          absl::StrCat("checkpoint-save takes a folder, and perhaps 'incremental' and "
                       "'at:CLOCK', but not '",
                       arguments[i], "'")));
    }
  }
  Save(std::move(wish), [answer](const absl::StatusOr<Saved>& saved) {
    if (!saved.ok()) return answer(saved.status());
    const checkpoint::Manifest& manifest = saved->manifest;
    const nlohmann::json json = {{"path", saved->path},
                                 {"clock", manifest.clock},
                                 {"bytes", manifest.bytes()},
                                 {"files", manifest.files.size()},
                                 {"base", manifest.base.has_value() ? manifest.base->name : ""}};
    answer(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

void Checkpoints::NextWish() {
  asking_clocks_ = false;
  margin_ = 0;
  pause_ = kPauseFirst;
  trouble_ = absl::OkStatus();
  wishes_.front().deadline = Now() + config_->checkpoint_timeout;
  Open();
}

// ---- one attempt ----

void Checkpoints::Open() {
  facts_ = get_facts_();
  if (!facts_.ready.ok()) return Fail(facts_.ready);
  phase_ = Phase::kOpening;
  ++attempt_;
  opened_ = {};
  disk_.Open({.directory = wishes_.front().wish.directory,
              .incremental = wishes_.front().wish.incremental,
              .cluster = facts_.cluster,
              .num_shards = facts_.num_shards,
              .block_bytes = facts_.block_bytes},
             [self = self_, attempt = attempt_](absl::StatusOr<CheckpointDisk::Opened> opened) {
               if (*self != nullptr) (*self)->OnOpened(attempt, std::move(opened));
             });
}

void Checkpoints::OnOpened(std::uint64_t attempt, absl::StatusOr<CheckpointDisk::Opened> opened) {
  if (phase_ != Phase::kOpening || attempt != attempt_) {
    if (opened.ok()) disk_.Discard(*opened);
    return;
  }
  if (!opened.ok()) return Fail(opened.status());
  opened_ = *std::move(opened);
  Prepare();
}

void Checkpoints::Prepare() {
  phase_ = Phase::kPreparing;
  newest_clock_ = 0;
  files_.clear();
  awaited_ = {facts_.servers.begin(), facts_.servers.end()};
  SayAgain();
}

void Checkpoints::OnPrepared(std::uint32_t node, const proto::CheckpointPrepared& prepared) {
  if (prepared.checkpoint != attempt_ || (phase_ != Phase::kPreparing && !asking_clocks_)) return;
  if (awaited_.erase(node) == 0) return;
  newest_clock_ = std::max(newest_clock_, prepared.fastest_clock);
  if (!awaited_.empty()) return;
  if (phase_ == Phase::kPreparing) return Cut(newest_clock_);
  asking_clocks_ = false;
  LookAtClocks(newest_clock_);
}

void Checkpoints::Cut(std::uint64_t newest_clock) {
  phase_ = Phase::kCutting;
  // Pushes of the newest clock may have been applied where there is a bound; where there is none,
  // or where they are held, that clock itself will do.
  const bool bounded = facts_.IsBounded();
  const bool at_end = wishes_.front().wish.at_end;
  clock_ = newest_clock + (bounded && !at_end ? 1 : 0) + margin_;
  const std::optional<std::uint64_t> at = wishes_.front().wish.at;
  if (at.has_value() && !bounded && margin_ == 0) clock_ = *at;
  awaited_ = {facts_.servers.begin(), facts_.servers.end()};
  SayAgain();
}

void Checkpoints::SayAgain() {
  resend_at_ = Now() + std::max(config_->resend_interval, absl::Milliseconds(1));
  for (const std::uint32_t node : awaited_) {
    if (phase_ == Phase::kCutting) {
      tell_(node, proto::CheckpointCut{.checkpoint = attempt_,
                                       .clock = clock_,
                                       .directory = opened_.path,
                                       .base = opened_.base.has_value() ? opened_.base->name : "",
                                       .bounded = facts_.IsBounded()});
    } else {
      tell_(node, proto::CheckpointPrepare{.checkpoint = attempt_});
    }
  }
}

void Checkpoints::OnWritten(std::uint32_t node, const proto::CheckpointWritten& written) {
  if (written.checkpoint != attempt_ || phase_ != Phase::kCutting) return;
  if (absl::IsOutOfRange(written.result)) margin_ = std::min(margin_ * 2 + 1, kCutMarginMax);
  if (absl::IsOutOfRange(written.result) || absl::IsAborted(written.result)) {
    return TryAgain(written.result);
  }
  if (!written.result.ok()) {
    return Fail(absl::Status(written.result.code(), absl::StrCat(members_->DescribeServer(node),
                                                                 ": ", written.result.message())));
  }
  if (awaited_.erase(node) == 0) return;
  files_.insert(files_.end(), written.files.begin(), written.files.end());
  if (awaited_.empty()) return OnAllWritten();
}

// `whole`: nothing may be missing.
absl::StatusOr<checkpoint::Manifest> Checkpoints::ManifestOf(bool whole) const {
  std::map<std::string, const proto::CheckpointFile*> by_name;
  for (const proto::CheckpointFile& file : files_) by_name[file.name] = &file;
  // Shards may have moved while they were taken.
  if (whole && (by_name.size() != files_.size() || files_.size() != facts_.num_shards)) {
    return absl::AbortedError(absl::StrCat("the servers have written ", files_.size(), " files of ",
                                           facts_.num_shards, " shards"));
  }
  checkpoint::Manifest manifest;
  manifest.name = opened_.name;
  manifest.time = absl::FormatTime(absl::RFC3339_sec, host_->WallTime(), absl::UTCTimeZone());
  manifest.cluster = facts_.cluster;
  manifest.clock = clock_;
  manifest.num_shards = facts_.num_shards;
  manifest.block_bytes = facts_.block_bytes;
  manifest.base = opened_.base;
  // Tables that were created meanwhile are in it as well.
  manifest.tables = get_facts_().tables;
  for (std::uint32_t shard = 0; shard < facts_.num_shards; ++shard) {
    const std::string name = checkpoint::ShardFileName(shard);
    const auto file = by_name.find(name);
    if (file == by_name.end() && whole) {
      return absl::AbortedError(absl::StrCat("no server has written shard ", shard));
    }
    const proto::CheckpointFile written =
        file == by_name.end() ? proto::CheckpointFile{} : *file->second;
    manifest.files.push_back(
        {.name = name, .shard = shard, .bytes = written.bytes, .checksum = written.checksum});
  }
  return manifest;
}

void Checkpoints::OnAllWritten() {
  absl::StatusOr<checkpoint::Manifest> manifest = ManifestOf(/*whole=*/true);
  if (!manifest.ok()) return TryAgain(manifest.status());
  phase_ = Phase::kFinishing;
  disk_.Finish(opened_, *std::move(manifest), config_->checkpoint_keep,
               [self = self_, attempt = attempt_](absl::StatusOr<checkpoint::Manifest> finished) {
                 if (*self != nullptr && (*self)->attempt_ == attempt) {
                   (*self)->OnFinished(finished);
                 }
               });
}

void Checkpoints::OnFinished(const absl::StatusOr<checkpoint::Manifest>& manifest) {
  if (phase_ != Phase::kFinishing) return;
  if (!manifest.ok()) return Fail(manifest.status());
  runtime::LogInfo("checkpoint ", opened_.path, " of clock ", manifest->clock,
                   " is saved: ", manifest->bytes(), " bytes");
  Over(Saved{.path = opened_.path, .manifest = *manifest});
}

// ---- how it ends ----

void Checkpoints::TryAgain(const absl::Status& why) {
  disk_.Discard(opened_);
  trouble_ = why;
  phase_ = Phase::kPausing;
  awaited_.clear();
  resend_at_ = Now() + pause_;
  loop_->After(pause_, [self = self_] {
    if (*self != nullptr) (*self)->Tick();
  });
  pause_ = std::min(pause_ * 2, kPauseMax);
}

// The error of a full disk, with the bytes that a checkpoint needs.
absl::Status Checkpoints::WithBytesNeeded(const absl::Status& why) const {
  if (!absl::IsResourceExhausted(why) || facts_.model_bytes == 0) return why;
  constexpr std::uint64_t kMegabyte = 1'000'000;
  return absl::Status(why.code(),
                      absl::StrCat(why.message(), "; a full checkpoint takes about ",
                                   (facts_.model_bytes + kMegabyte - 1) / kMegabyte, " MB in all"));
}

void Checkpoints::Fail(const absl::Status& reason) {
  const absl::Status why = WithBytesNeeded(reason);
  if (!opened_.path.empty() && phase_ != Phase::kPausing) disk_.Discard(opened_);
  runtime::LogWarning("no checkpoint in ", wishes_.front().wish.directory, ": ", why.message());
  Over(why);
}

void Checkpoints::Over(const absl::StatusOr<Saved>& result) {
  phase_ = Phase::kIdle;
  if (result.ok()) {
    history_.last_good = {.path = result->path,
                          .clock = result->manifest.clock,
                          .bytes = result->manifest.bytes(),
                          .at = Now()};
  } else {
    history_.last_failure = {.reason = std::string(result.status().message()), .at = Now()};
  }
  opened_ = {};
  awaited_.clear();
  ++attempt_;  // answers still on their way do not count
  const Done done = std::move(wishes_.front().done);
  wishes_.pop_front();
  if (!wishes_.empty() && !stopped_) NextWish();
  done(result);
}

absl::Status Checkpoints::TimedOut() const {
  const auto name = [this](std::string* text, std::uint32_t node) {
    absl::StrAppend(text, members_->DescribeServer(node), " (", members_->LastHeard(node, Now()),
                    ")");
  };
  std::string what = "no attempt succeeded";
  if (phase_ == Phase::kPreparing) {
    what = absl::StrCat("not heard from ", absl::StrJoin(awaited_, ", ", name));
  } else if (phase_ == Phase::kCutting) {
    what = absl::StrCat("not written by ", absl::StrJoin(awaited_, ", ", name),
                        ", which wait until all workers have reached clock ", clock_,
                        " (`leeway status` shows where each is), and for their disks");
    const std::string worker = members_->MostSilentWorker(Now());
    if (!worker.empty()) absl::StrAppend(&what, "; of the workers the most silent is ", worker);
  } else if (phase_ == Phase::kOpening || phase_ == Phase::kFinishing) {
    what = "the scheduler waits for its disk";
  }
  return absl::DeadlineExceededError(absl::StrCat(
      what, "; LEEWAY_CHECKPOINT_TIMEOUT_MS=",
      absl::ToInt64Milliseconds(config_->checkpoint_timeout), " says how long it may take",
      trouble_.ok() ? "" : absl::StrCat(" (before that: ", trouble_.message(), ")")));
}

// ---- time passes ----

bool Checkpoints::ServersHaveChanged() const {
  const Facts now = get_facts_();
  return !now.ready.ok() || now.epoch != facts_.epoch || now.servers != facts_.servers;
}

void Checkpoints::Tick() {
  if (stopped_) return;
  const absl::Time now = Now();
  if (phase_ == Phase::kIdle) return LookWhetherDue();
  if (now >= wishes_.front().deadline) return Fail(TimedOut());
  switch (phase_) {
    case Phase::kPausing:
      if (now >= resend_at_) Open();
      break;
    case Phase::kPreparing:
    case Phase::kCutting:
      if (ServersHaveChanged()) {
        TryAgain(absl::AbortedError("servers have come or gone, or shards have moved"));
      } else if (now >= resend_at_) {
        SayAgain();
      }
      break;
    case Phase::kIdle:
    case Phase::kOpening:
    case Phase::kFinishing:
      break;
  }
}

void Checkpoints::LookWhetherDue() {
  const absl::Time now = Now();
  const bool by_time = config_->checkpoint_every_s > 0;
  if (config_->checkpoint_dir.empty() || (!by_time && config_->checkpoint_every_clocks == 0))
    return;
  facts_ = get_facts_();
  if (!facts_.ready.ok()) return;
  if (by_time) {
    if (due_at_ == absl::InfiniteFuture())
      due_at_ = now + absl::Seconds(config_->checkpoint_every_s);
    if (now >= due_at_) return SavePeriodically();
  }
  if (config_->checkpoint_every_clocks == 0 || now < ask_at_) return;
  ask_at_ = now + kAskClocksInterval;
  // A server that is asked to prepare reports the workers' clock.
  asking_clocks_ = true;
  ++attempt_;
  newest_clock_ = 0;
  awaited_ = {facts_.servers.begin(), facts_.servers.end()};
  SayAgain();
}

void Checkpoints::LookAtClocks(std::uint64_t newest_clock) {
  if (phase_ == Phase::kIdle && newest_clock >= due_clock_) SavePeriodically();
}

void Checkpoints::SavePeriodically() {
  const bool full =
      saved_periodically_++ % std::max<std::uint64_t>(config_->checkpoint_full_every, 1) == 0;
  Save({.directory = "", .incremental = !full, .at = std::nullopt},
       [this](const absl::StatusOr<Saved>& saved) {
         // A failed one is due again after as long.
         if (config_->checkpoint_every_s > 0) {
           due_at_ = Now() + absl::Seconds(config_->checkpoint_every_s);
         }
         const std::uint64_t clock = saved.ok() ? saved->manifest.clock : newest_clock_;
         due_clock_ = std::max(due_clock_, clock) + config_->checkpoint_every_clocks;
         if (!saved.ok()) saved_periodically_ = 0;  // the next one is full
       });
}

std::optional<Checkpoints::View> Checkpoints::view() const {
  if (phase_ == Phase::kIdle) return std::nullopt;
  View view{.path = opened_.path,
            .phase = "waiting",
            .clock = clock_,
            .servers = facts_.servers.size(),
            .servers_done = 0};
  if (phase_ == Phase::kOpening) view.phase = "opening";
  if (phase_ == Phase::kPreparing) view.phase = "asking for clocks";
  if (phase_ == Phase::kCutting) view.phase = "writing";
  if (phase_ == Phase::kFinishing) view.phase = "finishing";
  if (phase_ == Phase::kCutting) view.servers_done = view.servers - awaited_.size();
  if (phase_ == Phase::kFinishing) view.servers_done = view.servers;
  return view;
}

}  // namespace leeway::scheduler
