#include "proto/decode_parts.h"
#include "proto/limits.h"
#include "runtime/status_macros.h"

namespace leeway::proto::decode {
namespace {

absl::Status ReadUpdater(const wire::TableSpec& from, Input& in, UpdaterSpec* to) {
  LEEWAY_RETURN_IF_ERROR(ReadName("updater.name", from.updater(), in, &to->name));
  const std::size_t size = SizeOrZero(from.parameters());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of parameters", size, 0, kParametersMax));
  for (std::size_t i = 0; i < size; ++i) {
    const wire::Parameter& parameter = *from.parameters()->Get(static_cast<std::uint32_t>(i));
    std::string name;
    LEEWAY_RETURN_IF_ERROR(ReadName("a parameter's name", parameter.name(), in, &name));
    if (!to->parameters.emplace(name, parameter.value()).second) {
      return Wrong("parameter ", Quoted(name), " is given twice");
    }
  }
  return absl::OkStatus();
}

// The enums are cast as they are: Validate checks them with everything else.
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
  to->consistency = {.staleness = from->staleness(),
                     .quorum = from->quorum(),
                     .late = static_cast<Consistency::Late>(from->late()),
                     .weight = static_cast<Consistency::Weight>(from->weight())};
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

}  // namespace

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
  return ReadSpec(from.spec(), in, &to->spec);
}

absl::Status Read(const wire::InstallTable& from, Input& in, InstallTable* to) {
  LEEWAY_RETURN_IF_ERROR(ReadTable(from.table(), &to->table));
  return ReadSpec(from.spec(), in, &to->spec);
}

absl::Status Read(const wire::InstallTableReply& from, Input& in, InstallTableReply* to) {
  LEEWAY_RETURN_IF_ERROR(ReadTable(from.table(), &to->table));
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  return ReadCombine(from.combine(), &to->combine);
}

}  // namespace leeway::proto::decode
