#include "scheduler/checkpoints/restoration.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "checkpoint/folder.h"
#include "proto/messages/limits.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

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

Restoration::Restoration(const Config* config, runtime::Host* host, runtime::Loop* loop,
                         const MembershipTable* members, NodeSender* sender, ClusterMaps* maps,
                         TableService* tables, ClusterLife* life)
    : config_(config),
      host_(host),
      loop_(loop),
      members_(members),
      sender_(sender),
      maps_(maps),
      tables_(tables),
      life_(life) {}

absl::Status Restoration::Open(bool restarted) {
  if (restarted ? !wanted() : config_->restore.empty()) return absl::OkStatus();
  const std::string path = restarted ? state_.path : config_->restore;
  const absl::StatusOr<checkpoint::Manifest> manifest =
      ReadNewest(host_->files(), path, &state_.path);
  if (!manifest.ok()) {
    return absl::Status(manifest.status().code(),
                        absl::StrCat("LEEWAY_RESTORE=", path, ": ", manifest.status().message()));
  }
  state_.checksum = manifest->checksum;
  state_.clock = manifest->clock;
  runtime::LogInfo("the cluster will start from ", state_.path, ": clock ", state_.clock, ", ",
                   manifest->tables.size(), " tables, ", manifest->bytes(), " bytes",
                   manifest->base.has_value() ? " and what it builds on" : "");
  if (restarted) return absl::OkStatus();
  if (manifest->block_bytes != config_->block_bytes) {
    return absl::FailedPreconditionError(absl::StrCat("LEEWAY_BLOCK_BYTES=", config_->block_bytes,
                                                      ", but the blocks of ", state_.path, " have ",
                                                      manifest->block_bytes, ": set it alike"));
  }
  TakeTables(*manifest);
  return absl::OkStatus();
}

void Restoration::TakeTables(const checkpoint::Manifest& manifest) {
  std::vector<TableCatalogue::Entry> tables;
  std::uint32_t next_table = 1;
  for (const checkpoint::TableEntry& table : manifest.tables) {
    tables.push_back({.id = table.id,
                      .spec = table.spec,
                      .combine = table.combine,
                      .installed = true,
                      .untouched = true});
    next_table = std::max(next_table, table.id + 1);
  }
  tables_->catalogue()->Restore(tables, next_table);
}

void Restoration::LoadIfWanted() {
  if (!wanted()) return;
  maps_->publisher()->HoldWorkers(true, Now());
  const std::vector<std::uint32_t> servers = members_->AliveIds(Role::kServer);
  loading_ = true;
  request_ = std::max<std::uint64_t>(1, host_->Random());
  servers_ = servers.size();
  preparing_ = waiting_ = {servers.begin(), servers.end()};
  deadline_ = Now() + config_->checkpoint_timeout;
  resend_at_ = absl::InfiniteFuture();
  for (const std::uint32_t server : servers) tables_->PrepareServer(server);
}

void Restoration::ServerPrepared(std::uint32_t server) {
  preparing_.erase(server);
  LoadIfPrepared();
}

void Restoration::LoadIfPrepared() {
  if (!loading_ || !preparing_.empty() || resend_at_ != absl::InfiniteFuture()) return;
  if (maps_->ServersHaveNewest()) Ask();
}

void Restoration::Ask() {
  resend_at_ = Now() + std::max(config_->resend_interval, absl::Milliseconds(1));
  for (const std::uint32_t server : waiting_) {
    sender_->SendToNode(
        server, proto::RestoreShards{
                    .request = request_, .directory = state_.path, .checksum = state_.checksum});
  }
}

void Restoration::OnLoaded(std::uint32_t server, const proto::RestoreShardsReply& reply) {
  if (!loading_ || reply.request != request_ || waiting_.erase(server) == 0) return;
  if (!reply.result.ok()) {
    loading_ = false;
    return Fail(
        absl::Status(reply.result.code(),
                     absl::StrCat("the cluster cannot start from ", state_.path, ": ",
                                  members_->DescribeServer(server), ": ", reply.result.message())));
  }
  if (!waiting_.empty()) return;
  loading_ = false;
  state_.loaded = true;
  runtime::LogInfo("the cluster starts from ", state_.path, " at clock ", state_.clock);
  maps_->publisher()->HoldWorkers(false, Now());
}

bool Restoration::FailIfLoading(const std::string& why) {
  if (!loading_) return false;
  Fail(absl::UnavailableError(
      absl::StrCat("the cluster cannot start from ", state_.path, ": ", why)));
  return true;
}

void Restoration::Tick() {
  if (!loading_) return;
  if (Now() >= deadline_) {
    loading_ = false;
    return Fail(TimedOut());
  }
  if (Now() >= resend_at_) Ask();
}

absl::Status Restoration::TimedOut() const {
  std::vector<std::string> names;
  for (const std::uint32_t server : waiting_) {
    if (names.size() < kNamedMax) names.push_back(members_->DescribeServer(server));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "the cluster cannot start from ", state_.path, ": not loaded within ",
      runtime::FormatDuration(config_->checkpoint_timeout), " (LEEWAY_CHECKPOINT_TIMEOUT_MS) by ",
      absl::StrJoin(names, ", "),
      waiting_.size() > kNamedMax ? absl::StrCat(" and ", waiting_.size() - kNamedMax, " more")
                                  : ""));
}

void Restoration::Fail(const absl::Status& why) {
  if (!life_->running()) return;
  runtime::LogError(why.message());
  life_->Fail(why);
}

std::string Restoration::Progress() const {
  return absl::StrCat("loading ", state_.path, ": ", servers_ - waiting_.size(), " of ", servers_,
                      " servers have");
}

}  // namespace leeway::scheduler
