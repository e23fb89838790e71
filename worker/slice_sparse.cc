// Rows by key: keys are grouped by shard, repeated ones combined, and every shard gets one
// request (more only where a frame would grow too large).
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/limits.h"
#include "worker/arena.h"
#include "worker/combine_rows.h"
#include "worker/group_keys.h"
#include "worker/slice.h"

namespace leeway::worker {
namespace {

// A row of the user's that will be read or written soon. Has to be inlined: the compiler leaves out
// calls of what does nothing else.
template <int kWrite>
[[gnu::always_inline]] inline void PrefetchRow(const std::byte* rows, std::uint64_t row_bytes,
                                               std::uint64_t place) {
  constexpr std::uint64_t kCacheLine = 64;
  const std::byte* row = rows + place * row_bytes;
  __builtin_prefetch(row, kWrite);
  if (row_bytes > kCacheLine / 2) __builtin_prefetch(row + row_bytes - 1, kWrite);
}

// Most rows are a few cache lines: no call is made for them.
inline void CopyRow(const std::byte* from, std::uint64_t size, std::byte* to) {
  constexpr std::uint64_t kStep = 32;
  for (; size >= kStep; size -= kStep, from += kStep, to += kStep) std::memcpy(to, from, kStep);
  if (size != 0) std::memcpy(to, from, size);
}

// How many rows ahead: their places lie far apart, since keys are spread over shards by a hash.
constexpr std::size_t kAhead = 16;

class SparseSink final : public PullSink {
 public:
  SparseSink(void* result, std::uint64_t row_bytes)
      : result_(static_cast<std::byte*>(result)), row_bytes_(row_bytes) {}

  void Keep(GroupedKeys keys, std::vector<std::size_t> piece_begin) {
    keys_ = std::move(keys);
    piece_begin_ = std::move(piece_begin);
  }

  void Take(std::size_t index, std::span<const runtime::Buffer> payload) override {
    const std::byte* row = payload[0].data();
    const std::size_t end = piece_begin_[index + 1];
    for (std::size_t i = piece_begin_[index]; i < end; ++i, row += row_bytes_) {
      if (i + kAhead < end) {
        PrefetchRow<1>(result_, row_bytes_, keys_.places(i + kAhead).front());
      }
      for (const std::uint64_t place : keys_.places(i)) {
        CopyRow(row, row_bytes_, result_ + place * row_bytes_);
      }
    }
  }

 private:
  std::byte* result_;
  std::uint64_t row_bytes_;
  GroupedKeys keys_;
  std::vector<std::size_t> piece_begin_;  // [pieces + 1], into keys_.keys
};

}  // namespace

absl::StatusOr<Sliced> SliceSparse(const Access& access) {
  const TableInfo& table = *access.table;
  const std::uint64_t row_bytes = table.spec.row_width * SizeOf(table.spec.dtype);
  if (std::max<std::uint64_t>(row_bytes, sizeof(std::uint64_t)) > table.message_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table.spec.name, "': a row of ", row_bytes,
                     " bytes is more than LEEWAY_MESSAGE_BYTES_MAX, ", table.message_bytes_max));
  }
  const std::uint64_t rows_max = std::min<std::uint64_t>(
      proto::kKeysPerRequestMax, table.message_bytes_max / std::max<std::uint64_t>(row_bytes, 8));

  GroupedKeys grouped = GroupKeys(access.keys, table.num_shards);
  const std::size_t count = grouped.keys.size();
  const bool push = proto::HasPush(access.op);
  const Arena keys(count * sizeof(std::uint64_t));
  std::copy(grouped.keys.begin(), grouped.keys.end(),
            reinterpret_cast<std::uint64_t*>(keys.data()));
  Arena values;
  if (push) {
    values = Arena(count * row_bytes);
    const auto* rows = static_cast<const std::byte*>(access.values);
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) PrefetchRow<0>(rows, row_bytes, grouped.places(i + kAhead).front());
      const std::span<const std::uint64_t> places = grouped.places(i);
      std::byte* const to = values.data() + i * row_bytes;
      if (places.size() == 1) {
        CopyRow(rows + places.front() * row_bytes, row_bytes, to);
      } else {
        CombineRows(table.combine, table.spec.dtype, rows, table.spec.row_width, places, to);
      }
    }
  }

  Sliced sliced{.table = access.table, .op = access.op};
  std::vector<std::size_t> piece_begin;
  for (std::uint32_t shard = 0; shard < table.num_shards; ++shard) {
    for (std::size_t begin = grouped.shard_begin[shard]; begin < grouped.shard_begin[shard + 1];) {
      const std::size_t size =
          std::min<std::size_t>(grouped.shard_begin[shard + 1] - begin, rows_max);
      Piece piece;
      piece.shard = shard;
      piece.keys = size;
      piece.elements = push ? size * table.spec.row_width : 0;
      piece.reply_elements = size * table.spec.row_width;
      piece.payload.push_back(
          keys.Part(begin * sizeof(std::uint64_t), size * sizeof(std::uint64_t)));
      if (push) piece.payload.push_back(values.Part(begin * row_bytes, size * row_bytes));
      piece_begin.push_back(begin);
      sliced.pieces.push_back(std::move(piece));
      begin += size;
    }
  }
  piece_begin.push_back(count);
  if (proto::HasPull(access.op)) {
    auto sink = std::make_unique<SparseSink>(access.result, row_bytes);
    sink->Keep(std::move(grouped), std::move(piece_begin));
    sliced.sink = std::move(sink);
  }
  return sliced;
}

}  // namespace leeway::worker
