#include "scheduler/state/state_keeper.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

constexpr char kFile[] = "scheduler-state";
constexpr char kLockFile[] = "lock";

// An error if anything but a file has that name, or if that cannot be told.
absl::StatusOr<bool> IsThere(runtime::FileSystem* files, const std::string& path) {
  const absl::StatusOr<runtime::FileKind> kind = files->KindOf(path);
  if (absl::IsNotFound(kind.status())) return false;
  LEEWAY_RETURN_IF_ERROR(kind.status());
  if (*kind == runtime::FileKind::kFile) return true;
  return absl::FailedPreconditionError(
      absl::StrCat("something else than a file has the name ", path));
}

absl::Status RemoveIfThere(runtime::FileSystem* files, const std::string& path) {
  if (absl::IsNotFound(files->KindOf(path).status())) return absl::OkStatus();
  return files->Remove(path);
}

}  // namespace

StateKeeper::StateKeeper(runtime::Host* host, runtime::Loop* loop, std::string folder, Stamp stamp,
                         Collect collect)
    : folder_(std::move(folder)),
      path_(absl::StrCat(folder_, "/", kFile)),
      loop_(loop),
      files_(host->files()),
      stamp_(std::move(stamp)),
      collect_(std::move(collect)),
      retry_timer_(loop, [this] { StartWrite(); }),
      file_(files_, path_),
      writer_(host->Spawn("scheduler-state")) {}

StateKeeper::~StateKeeper() {
  // Waits for the write under way: another process may have the lock only then.
  writer_.reset();
}

absl::StatusOr<std::optional<State>> StateKeeper::Open() {
  const auto explain = [this](const absl::Status& status, absl::string_view advice) {
    return absl::Status(status.code(), absl::StrCat("LEEWAY_SCHEDULER_STATE=", folder_, ": ",
                                                    status.message(), advice));
  };
  if (absl::Status made = files_->CreateDirectories(folder_); !made.ok()) return explain(made, "");
  absl::StatusOr<std::unique_ptr<runtime::FileLock>> lock =
      files_->Lock(absl::StrCat(folder_, "/", kLockFile));
  if (!lock.ok()) {
    return explain(lock.status(), absl::IsAlreadyExists(lock.status())
                                      ? ": a scheduler runs with it; stop that one or give "
                                        "this one another folder"
                                      : "");
  }
  lock_ = *std::move(lock);
  // The temporary file is written only later, when it would be too late for an error.
  const absl::StatusOr<bool> left = IsThere(files_, runtime::TemporaryName(path_));
  if (!left.ok()) return explain(left.status(), "");
  const absl::StatusOr<bool> there = IsThere(files_, path_);
  if (!there.ok()) return explain(there.status(), "");
  if (!*there) return std::optional<State>();
  const absl::StatusOr<std::string> bytes = files_->Read(path_);
  if (!bytes.ok()) return explain(bytes.status(), "");
  absl::StatusOr<State> state = DecodeState(*bytes);
  if (!state.ok()) {
    return explain(
        absl::Status(state.status().code(),
                     absl::StrCat("cannot go on with ", path_, ": ", state.status().message())),
        "; bring back a copy of it, or remove it and start the whole cluster anew");
  }
  return std::optional<State>(*std::move(state));
}

void StateKeeper::Once(runtime::Task send) {
  const std::uint64_t stamp = stamp_();
  if (forgotten_ || (held_.empty() && stamp == durable_)) {
    send();
    return;
  }
  if (held_.size() >= kSendsHeldMax) return;
  held_.emplace_back(stamp, std::move(send));
  Write();
}

void StateKeeper::Write() {
  if (writing_ || forgotten_ || stamp_() == durable_) return;
  writing_ = true;
  // Later, when the change under way is complete.
  loop_->Post([self = std::weak_ptr<StateKeeper*>(self_)] {
    if (const auto keeper = self.lock()) (*keeper)->StartWrite();
  });
}

void StateKeeper::StartWrite() {
  if (forgotten_) return;
  writer_->loop()->Post([self = std::weak_ptr<StateKeeper*>(self_), loop = loop_, file = &file_,
                         stamp = stamp_(), state = collect_()]() mutable {
    const std::uint64_t version = state.version;
    const absl::Status result = file->Write(std::move(state));
    loop->Post([self, stamp, version, result] {
      if (const auto keeper = self.lock()) (*keeper)->Written(stamp, version, result);
    });
  });
}

void StateKeeper::Written(std::uint64_t stamp, std::uint64_t version, const absl::Status& result) {
  if (forgotten_) return;
  if (!result.ok()) {
    if (trouble_.ok()) {
      trouble_since_ = loop_->Now();
      runtime::LogError("the scheduler cannot keep its state, and says nothing new until it can: ",
                        result.message(), " (LEEWAY_SCHEDULER_STATE)");
    }
    trouble_ = result;
    retry_timer_.SetAfter(kStateRetryInterval);
    return;
  }
  if (!trouble_.ok()) runtime::LogInfo("the scheduler can keep its state again");
  trouble_ = absl::OkStatus();
  writing_ = false;
  durable_ = stamp;
  written_version_ = version;
  while (!held_.empty() && held_.front().first <= durable_) {
    runtime::Task send = std::move(held_.front().second);
    held_.pop_front();
    send();
  }
  Write();
}

void StateKeeper::Forget() {
  if (forgotten_) return;
  forgotten_ = true;
  retry_timer_.Clear();
  // The write under way ends first.
  writer_.reset();
  absl::Status removed = RemoveIfThere(files_, path_);
  if (removed.ok()) removed = files_->SyncDirectory(folder_);
  // Last, and while it is held: no other process has it before the state is gone.
  if (removed.ok() && lock_ != nullptr) {
    removed = RemoveIfThere(files_, absl::StrCat(folder_, "/", kLockFile));
  }
  if (!removed.ok()) runtime::LogWarning("the cluster is over, but ", removed.message());
  for (auto& [stamp, send] : std::exchange(held_, {})) send();
}

}  // namespace leeway::scheduler
