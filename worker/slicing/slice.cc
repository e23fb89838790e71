#include "worker/slicing/slice.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "proto/messages/limits.h"
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

// ---- calls of shard handlers ----

namespace {

absl::Status CheckCall(const TableInfo& table, std::optional<std::uint64_t> key,
                       absl::string_view handler, absl::string_view request) {
  if (handler.empty() || handler.size() > proto::kNameBytesMax) {
    return Invalid(table, "a shard handler's name has 1 to ", proto::kNameBytesMax,
                   " bytes; this one has ", handler.size());
  }
  if (request.size() > table.message_bytes_max) {
    return Invalid(table, "a call's request has ", request.size(), " bytes, more than ",
                   table.message_bytes_max, " (LEEWAY_MESSAGE_BYTES_MAX)");
  }
  const bool dense = table.spec.kind == TableKind::kDense;
  if (!dense || !key.has_value() || *key < table.spec.NumElements()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("table '", table.spec.name, "': element ", *key,
                                            " is called, and it has ", table.spec.NumElements()));
}

}  // namespace

absl::StatusOr<Sliced> SliceCall(std::shared_ptr<const TableInfo> table,
                                 std::optional<std::uint64_t> key, absl::string_view handler,
                                 absl::string_view request, std::unique_ptr<PullSink> sink) {
  LEEWAY_RETURN_IF_ERROR(CheckCall(*table, key, handler, request));
  Sliced sliced{.table = std::move(table), .op = proto::Op::kCall};
  sliced.sink = std::move(sink);
  const TableInfo& info = *sliced.table;
  const runtime::Buffer frames[] = {runtime::Buffer::CopyOf(handler),
                                    runtime::Buffer::CopyOf(request)};
  const auto add = [&](std::uint32_t shard) {
    Piece piece{.shard = shard};
    piece.payload.assign(std::begin(frames), std::end(frames));
    sliced.pieces.push_back(std::move(piece));
  };
  const bool dense = info.spec.kind == TableKind::kDense;
  const std::uint64_t block_elements = proto::BlockElements(info.spec.dtype, info.block_bytes);
  if (key.has_value()) {
    add(dense ? proto::ShardOfBlock(info.id, *key / block_elements, info.num_shards)
              : proto::ShardOfKey(*key, info.num_shards));
    return sliced;
  }
  const std::uint64_t blocks =
      dense ? proto::NumBlocks(info.spec, info.block_bytes) : info.num_shards;
  const std::uint32_t first = dense ? proto::ShardOfBlock(info.id, 0, info.num_shards) : 0;
  for (std::uint32_t shard = 0; shard < info.num_shards; ++shard) {
    if ((shard + info.num_shards - first) % info.num_shards < blocks) add(shard);
  }
  return sliced;
}

}  // namespace leeway::worker
