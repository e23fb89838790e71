#include <cmath>

#include "proto/encoding/decode_parts.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

absl::Status ReadUpdater(const wire::TableSpec& from, Input& in, UpdaterSpec* to) {
  LEEWAY_RETURN_IF_ERROR(ReadName("updater.name", from.updater(), in, &to->name));
  return ReadParameters(from.parameters(), in, &to->parameters);
}

// Enums are cast without a check: Validate checks them with everything else.
absl::Status ReadSpec(const wire::TableSpec* from, Input& in, TableSpec* to) {
  if (from == nullptr) return Wrong("spec is missing");
  LEEWAY_RETURN_IF_ERROR(ReadName("spec.name", from->name(), in, &to->name));
  to->kind = static_cast<TableKind>(from->kind());
  to->dtype = static_cast<DType>(from->dtype());
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("number of dimensions", SizeOrZero(from->shape()), 0, kDimensionsMax));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("dimensions", from->shape(), sizeof(std::uint64_t)));
  for (std::size_t i = 0; i < SizeOrZero(from->shape()); ++i) {
    to->shape.push_back(from->shape()->Get(static_cast<std::uint32_t>(i)));
  }
  to->row_width = from->row_width();
  LEEWAY_RETURN_IF_ERROR(ReadUpdater(*from, in, &to->updater));
  to->initializer = {static_cast<Initializer::Kind>(from->init_kind()), from->init_a(),
                     from->init_b(), from->init_seed()};
  std::string consistency;
  LEEWAY_RETURN_IF_ERROR(
      ReadText("spec.consistency", from->consistency(), 1, kConsistencyBytesMax, in, &consistency));
  const absl::StatusOr<Consistency> read = Consistency::Parse(consistency);
  if (!read.ok()) return Wrong("spec of table ", Quoted(to->name), ": ", read.status().message());
  to->consistency = *read;
  to->aggregate = static_cast<Aggregate>(from->aggregate());
  to->nonfinite = static_cast<NonFinite>(from->nonfinite());
  LEEWAY_RETURN_IF_ERROR(ReadName("spec.codec", from->codec(), in, &to->codec));
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("number of codecs", SizeOrZero(from->codecs()), 0, kTableCodecsMax));
  for (std::size_t i = 0; i < SizeOrZero(from->codecs()); ++i) {
    LEEWAY_RETURN_IF_ERROR(ReadName("spec.codecs",
                                    from->codecs()->Get(static_cast<std::uint32_t>(i)), in,
                                    &to->codecs.emplace_back()));
  }
  to->error_feedback = static_cast<ErrorFeedback>(from->error_feedback());
  if (const absl::Status valid = to->Validate(); !valid.ok()) {
    return Wrong("spec of table ", Quoted(to->name), ": ", valid.message());
  }
  return absl::OkStatus();
}

absl::Status ReadTable(std::uint32_t table, std::uint32_t* to) {
  *to = table;
  return CheckRange("table", table, 1, kAny);
}

absl::Status ReadCombine(std::uint8_t combine, Updater::Combine* to) {
  return ReadEnum("combine", combine, Updater::Combine::kSum, Updater::Combine::kLast, to);
}

absl::Status ReadOneOf(const wire::TableSettings& from, Input& in, TableSettings* to) {
  to->table = from.table();
  LEEWAY_RETURN_IF_ERROR(CheckRange("settings' table", to->table, 1, kAny));
  to->number = from.number();
  LEEWAY_RETURN_IF_ERROR(CheckRange("settings' number", to->number, 1, kTableSettingsMax));
  to->since = from.since();
  LEEWAY_RETURN_IF_ERROR(CheckRange("settings' clock", to->since, 0, kStartClockMax));
  to->decided = from.decided();
  LEEWAY_RETURN_IF_ERROR(ReadParameters(from.parameters(), in, &to->parameters));
  for (const auto& [name, value] : to->parameters) {
    if (!std::isfinite(value)) return Wrong("parameter ", Quoted(name), " is no number");
  }
  to->staleness = from.staleness();
  return ReadEnum("nonfinite", from.nonfinite(), NonFinite::kCount, NonFinite::kRefuse,
                  &to->nonfinite);
}

}  // namespace

// For each table some decided settings, and at most one announced one behind them.
absl::Status ReadTableSettings(
    const flatbuffers::Vector<flatbuffers::Offset<wire::TableSettings>>* from, Input& in,
    std::vector<TableSettings>* to) {
  const std::size_t size = SizeOrZero(from);
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("number of settings", size, 0, (kTableSettingsToldMax + 1) * kTablesMax));
  to->reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::TableSettings* const entry = from->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(ReadOneOf(*entry, in, &to->emplace_back()));
    if (i == 0) continue;
    const TableSettings& before = (*to)[i - 1];
    const TableSettings& last = (*to)[i];
    const bool follows = before.table == last.table && before.number < last.number &&
                         before.since <= last.since && before.decided;
    if (before.table >= last.table && !follows) {
      return Wrong("settings of table ", last.table, " are not in order");
    }
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::CreateTable& from, Input& in, CreateTable* to) {
  to->request = from.request();
  return ReadSpec(from.spec(), in, &to->spec);
}

absl::Status Read(const wire::OpenTable& from, Input& in, OpenTable* to) {
  to->request = from.request();
  return ReadName("name", from.name(), in, &to->name);
}

absl::Status Read(const wire::TableReply& from, Input& in, TableReply* to) {
  to->request = from.request();
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  if (!to->result.ok()) return absl::OkStatus();
  LEEWAY_RETURN_IF_ERROR(ReadTable(from.table(), &to->table));
  LEEWAY_RETURN_IF_ERROR(ReadCombine(from.combine(), &to->combine));
  LEEWAY_RETURN_IF_ERROR(ReadTableSettings(from.table_settings(), in, &to->table_settings));
  for (const TableSettings& settings : to->table_settings) {
    if (settings.table != to->table) return Wrong("settings are of table ", settings.table);
  }
  return ReadSpec(from.spec(), in, &to->spec);
}

absl::Status Read(const wire::InstallTable& from, Input& in, InstallTable* to) {
  LEEWAY_RETURN_IF_ERROR(ReadTable(from.table(), &to->table));
  to->of = from.of();
  return ReadSpec(from.spec(), in, &to->spec);
}

absl::Status Read(const wire::InstallTableReply& from, Input& in, InstallTableReply* to) {
  LEEWAY_RETURN_IF_ERROR(ReadTable(from.table(), &to->table));
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  return ReadCombine(from.combine(), &to->combine);
}

}  // namespace leeway::proto::decode
