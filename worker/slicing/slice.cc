#include "worker/slicing/slice.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "worker/slicing/group_keys.h"

namespace leeway::worker {
namespace {

absl::string_view Kind(TableKind kind) {
  switch (kind) {
    case TableKind::kDense:
      return "dense";
    case TableKind::kSparse:
      return "sparse";
    case TableKind::kRagged:
      return "ragged";
  }
  return "unknown";
}

absl::string_view CallsFor(TableKind kind) {
  switch (kind) {
    case TableKind::kDense:
      return "Push, Pull and PushPull without keys";
    case TableKind::kSparse:
      return "Push, Pull and PushPull with keys";
    case TableKind::kRagged:
      return "PushRagged and PullRagged";
  }
  return "calls this library does not know";
}

template <class... Args>
absl::Status Invalid(const TableInfo& table, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("table '", table.spec.name, "': ", args...));
}

absl::Status CheckLength(const TableInfo& table, absl::string_view which, std::size_t given,
                         std::uint64_t wanted, absl::string_view because) {
  if (given == wanted) return absl::OkStatus();
  return Invalid(table, which, " has ", given, " elements where ", wanted, " are needed (", because,
                 ")");
}

absl::Status CheckDense(const Access& access) {
  const TableInfo& table = *access.table;
  const std::uint64_t wanted = table.spec.NumElements();
  if (proto::HasPush(access.op)) {
    LEEWAY_RETURN_IF_ERROR(
        CheckLength(table, "the span to push", access.size, wanted, "the table's shape"));
  }
  if (proto::HasPull(access.op)) {
    LEEWAY_RETURN_IF_ERROR(CheckLength(table, "the span to pull into", access.result_size, wanted,
                                       "the table's shape"));
  }
  return absl::OkStatus();
}

// Places of keys have 32 bits (group_keys.h).
absl::Status CheckKeyCount(const Access& access) {
  if (access.keys.size() <= kKeysMax) return absl::OkStatus();
  return Invalid(*access.table, access.keys.size(), " keys were given at once, at most ", kKeysMax,
                 " may be");
}

absl::Status CheckSparse(const Access& access) {
  const TableInfo& table = *access.table;
  LEEWAY_RETURN_IF_ERROR(CheckKeyCount(access));
  const std::uint64_t wanted = access.keys.size() * table.spec.row_width;
  const std::string because =
      absl::StrCat(access.keys.size(), " keys × ", table.spec.row_width, " a row");
  if (proto::HasPush(access.op)) {
    LEEWAY_RETURN_IF_ERROR(CheckLength(table, "the span to push", access.size, wanted, because));
  }
  if (proto::HasPull(access.op)) {
    LEEWAY_RETURN_IF_ERROR(
        CheckLength(table, "the span to pull into", access.result_size, wanted, because));
  }
  return absl::OkStatus();
}

absl::Status CheckRagged(const Access& access) {
  const TableInfo& table = *access.table;
  LEEWAY_RETURN_IF_ERROR(CheckKeyCount(access));
  if (!proto::HasPush(access.op)) return absl::OkStatus();
  if (access.widths.size() != access.keys.size()) {
    return Invalid(table, access.keys.size(), " keys were given with ", access.widths.size(),
                   " widths");
  }
  std::uint64_t wanted = 0;
  for (const std::uint32_t width : access.widths) wanted += width;
  return CheckLength(table, "the span to push", access.size, wanted, "the sum of the widths");
}

}  // namespace

void Sliced::Fill() {
  if (source == nullptr) return;
  for (std::size_t i = 0; i < pieces.size(); ++i) source->Fill(i, {}, &pieces[i]);
  source.reset();
}

absl::StatusOr<Sliced> Slice(const Access& access, const std::shared_ptr<Poster>& poster) {
  const TableInfo& table = *access.table;
  if (access.dtype != table.spec.dtype) {
    return Invalid(table, "holds ", Name(table.spec.dtype), ", not ", Name(access.dtype));
  }
  if (access.kind != table.spec.kind) {
    return Invalid(table, "is ", Kind(table.spec.kind), " and takes ", CallsFor(table.spec.kind));
  }
  switch (table.spec.kind) {
    case TableKind::kDense:
      LEEWAY_RETURN_IF_ERROR(CheckDense(access));
      return SliceDense(access, poster);
    case TableKind::kSparse:
      LEEWAY_RETURN_IF_ERROR(CheckSparse(access));
      return SliceSparse(access);
    case TableKind::kRagged:
      LEEWAY_RETURN_IF_ERROR(CheckRagged(access));
      return SliceRagged(access);
  }
  return Invalid(table, "is of a kind this library does not know");
}

}  // namespace leeway::worker
