#include "scheduler/checkpoints/restoration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "proto/messages/limits.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {
namespace {

absl::StatusOr<checkpoint::Manifest> ReadNewest(runtime::FileSystem* files,
                                                const std::string& wanted, std::string* path) {
  LEEWAY_ASSIGN_OR_RETURN(*path, checkpoint::FindCheckpoint(files, wanted));
  LEEWAY_ASSIGN_OR_RETURN(std::vector<checkpoint::Manifest> chain,
                          checkpoint::ReadChain(files, *path));
  if (path->size() > proto::kPathBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path is ", path->size(), " bytes long, may be ", proto::kPathBytesMax));
  }
  return std::move(chain.front());
}

}  // namespace

absl::Status Restoration::Open(runtime::FileSystem* files, const std::string& wanted) {
  absl::StatusOr<checkpoint::Manifest> manifest = ReadNewest(files, wanted, &state_.path);
  if (!manifest.ok()) {
    return absl::Status(manifest.status().code(),
                        absl::StrCat("LEEWAY_RESTORE=", wanted, ": ", manifest.status().message()));
  }
  state_.checksum = manifest->checksum;
  state_.clock = manifest->clock;
  block_bytes_ = manifest->block_bytes;
  for (const checkpoint::TableEntry& table : manifest->tables) {
    tables_.push_back(
        {.id = table.id, .spec = table.spec, .combine = table.combine, .installed = true});
    next_table_ = std::max(next_table_, table.id + 1);
  }
  runtime::LogInfo("the cluster will start from ", state_.path, ": clock ", state_.clock, ", ",
                   tables_.size(), " tables, ", manifest->bytes(), " bytes",
                   manifest->base.has_value() ? " and what it builds on" : "");
  return absl::OkStatus();
}

void Restoration::Begin(const std::vector<std::uint32_t>& servers, std::uint64_t request,
                        absl::Time now) {
  loading_ = true;
  request_ = request;
  servers_ = servers.size();
  preparing_ = waiting_ = {servers.begin(), servers.end()};
  deadline_ = now + timeout_;
  resend_at_ = absl::InfiniteFuture();
}

void Restoration::Prepared(std::uint32_t server) { preparing_.erase(server); }

void Restoration::Load(absl::Time now) {
  if (!loading_ || !preparing_.empty() || resend_at_ != absl::InfiniteFuture()) return;
  Ask(now);
}

void Restoration::Ask(absl::Time now) {
  resend_at_ = now + resend_interval_;
  for (const std::uint32_t server : waiting_) {
    tell_(server, proto::RestoreShards{
                      .request = request_, .directory = state_.path, .checksum = state_.checksum});
  }
}

absl::Status Restoration::OnReply(std::uint32_t server, const proto::RestoreShardsReply& reply) {
  if (!loading_ || reply.request != request_ || waiting_.erase(server) == 0) {
    return absl::OkStatus();
  }
  if (!reply.result.ok()) {
    loading_ = false;
    return absl::Status(reply.result.code(),
                        absl::StrCat("the cluster cannot start from ", state_.path, ": ",
                                     describe_(server), ": ", reply.result.message()));
  }
  if (!waiting_.empty()) return absl::OkStatus();
  loading_ = false;
  state_.loaded = true;
  runtime::LogInfo("the cluster starts from ", state_.path, " at clock ", state_.clock);
  return absl::OkStatus();
}

absl::Status Restoration::Tick(absl::Time now) {
  if (!loading_) return absl::OkStatus();
  if (now >= deadline_) {
    loading_ = false;
    std::vector<std::string> names;
    for (const std::uint32_t server : waiting_) {
      if (names.size() < kNamedMax) names.push_back(describe_(server));
    }
    return absl::DeadlineExceededError(absl::StrCat(
        "the cluster cannot start from ", state_.path, ": not loaded within ",
        runtime::FormatDuration(timeout_), " (LEEWAY_CHECKPOINT_TIMEOUT_MS) by ",
        absl::StrJoin(names, ", "),
        waiting_.size() > kNamedMax ? absl::StrCat(" and ", waiting_.size() - kNamedMax, " more")
                                    : ""));
  }
  if (now >= resend_at_) Ask(now);
  return absl::OkStatus();
}

std::string Restoration::Progress() const {
  return absl::StrCat("loading ", state_.path, ": ", servers_ - waiting_.size(), " of ", servers_,
                      " servers have");
}

}  // namespace leeway::scheduler
