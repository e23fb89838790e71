#include "worker/core/tables.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/tables/table_difference.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "worker/slicing/updates_read.h"

namespace leeway::worker {

void Tables::Follow(std::shared_ptr<const proto::ClusterMap> map) {
  map_ = std::move(map);
  FollowSettings();
  FollowCodecs();
}

absl::StatusOr<std::shared_ptr<const TableInfo>> Tables::Open(const proto::TableReply& reply) {
  auto info = std::make_shared<TableInfo>();
  info->id = reply.table;
  TakeSettings(reply, info.get());
  info->combine = reply.combine;
  info->num_shards = static_cast<std::uint32_t>(map_->owners.size());
  info->block_bytes = welcome_.block_bytes;
  info->message_bytes_max = config_.message_bytes_max;
  if (info->spec.consistency.is_weighted()) {
    std::shared_ptr<UpdatesRead>& read = updates_read_[info->id];
    if (read == nullptr) read = std::make_shared<UpdatesRead>(info->spec.kind == TableKind::kDense);
    info->updates_read = read;
  }
  LEEWAY_RETURN_IF_ERROR(SetCoding(info.get()));
  return info;
}

void Tables::FollowCodecs() {
  bool news = false;
  for (const proto::CodecSwitch& change : map_->codecs) {
    const auto coding = codings_.find(change.table);
    news = (coding != codings_.end() && coding->second->Follow(change)) || news;
  }
  if (news) requests_->SendUndecided();
}

void Tables::FollowSettings() {
  if (map_->table_settings.empty() || settings_.empty()) return;
  for (const auto& [table, settings] : settings_) {
    settings->Follow(proto::TableSettingsOf(map_->table_settings, table));
  }
  requests_->SendUndecided();
}

// Sets the description with the newest settings, and the settings of each clock.
void Tables::TakeSettings(const proto::TableReply& reply, TableInfo* info) {
  info->spec = reply.spec;
  for (const proto::TableSettings& settings : reply.table_settings) {
    if (settings.decided) info->spec = proto::WithTableSettings(info->spec, settings);
  }
  // A reader has no clock, and gets no map that only changes tables.
  if (config_.read_only) return;
  std::shared_ptr<LiveTableSettings>& settings = settings_[reply.table];
  if (settings == nullptr) {
    settings = std::make_shared<LiveTableSettings>(reply.spec.consistency);
    settings->Follow(proto::TableSettingsOf(map_->table_settings, reply.table));
  }
  settings->Hear(reply.table_settings);
  info->settings = settings;
}

// A table that is opened again keeps its coding: residuals belong to the worker.
absl::Status Tables::SetCoding(TableInfo* info) {
  absl::StatusOr<compress::TableCodecs> made = compress::TableCodecsOf(info->spec);
  if (!made.ok()) return runtime::OfArgument(made.status());
  compress::TableCodecs codecs = *std::move(made);
  if (!codecs.encodes() || config_.read_only) return absl::OkStatus();  // readers get plain values
  std::shared_ptr<TableCoding>& coding = codings_[info->id];
  if (coding == nullptr) {
    coding = std::make_shared<TableCoding>(
        info->spec, std::move(codecs),
        PushContext{.table = info->id,
                    .rank = welcome_.rank,
                    .num_shards = info->num_shards,
                    .block_bytes = info->block_bytes,
                    .residual_bytes_max = config_.residual_bytes_max});
    FollowCodecs();
  }
  info->coding = coding;
  if (info->spec.codec == compress::kAutomaticCodec) meter_->Watch(coding);
  return absl::OkStatus();
}

SavedResiduals Tables::Residuals() {
  const bool any =
      std::ranges::any_of(codings_, [](const auto& entry) { return entry.second->keeps_state(); });
  if (any) requests_->FillOpen();
  SavedResiduals residuals;
  for (const auto& [table, coding] : codings_) {
    if (!coding->keeps_state()) continue;
    residuals[coding->pushes.table_name()] = coding->pushes.Save();
  }
  return residuals;
}

absl::Status Tables::TakeResiduals(const SavedResiduals& saved) {
  std::vector<std::pair<PushEncoder*, const SavedTable*>> taken;
  for (const auto& [table, coding] : codings_) {
    const auto found = saved.find(coding->pushes.table_name());
    if (found == saved.end() || !coding->keeps_state()) continue;
    LEEWAY_RETURN_IF_ERROR(coding->pushes.CheckSaved(found->second));
    taken.emplace_back(&coding->pushes, &found->second);
  }
  for (const auto& [pushes, residuals] : taken) pushes->Take(*residuals);
  return absl::OkStatus();
}

std::map<std::string, double> Tables::ResidualNorms() const {
  std::map<std::string, double> norms;
  for (const auto& [table, coding] : codings_) {
    if (!coding->keeps_residuals()) continue;
    norms[coding->pushes.table_name()] = coding->pushes.ResidualNorm();
  }
  return norms;
}

}  // namespace leeway::worker
