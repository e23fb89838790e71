// Slicing of ragged tables, whose rows have widths of their own. It works as for sparse tables, but
// only the replies to a pull say how much room its values need, so they are kept until the last one
// has come.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"
#include "worker/slicing/arena.h"
#include "worker/slicing/group_keys.h"
#include "worker/slicing/slice.h"

namespace leeway::worker {
namespace {

using Range = GroupedKeys::Range;

class RaggedSink final : public PullSink {
 public:
  RaggedSink(const Access& access, GroupedKeys keys, std::vector<Range> ranges)
      : widths_(access.result_widths),
        resize_(access.resize),
        element_bytes_(SizeOf(access.dtype)),
        keys_(std::move(keys)),
        ranges_(std::move(ranges)),
        replies_(ranges_.size()) {}

  absl::Status Take(std::size_t index, const proto::Reply&,
                    std::span<const runtime::Buffer> payload) override {
    replies_[index].widths = payload[0];
    replies_[index].values = payload[1];
    return absl::OkStatus();
  }

  void Finish() override {
    struct Row {
      const std::byte* data = nullptr;
    };
    std::vector<Row> rows(keys_.size);
    widths_->assign(keys_.size, 0);
    std::uint64_t elements = 0;
    for (std::size_t piece = 0; piece < ranges_.size(); ++piece) {
      const std::byte* data = replies_[piece].values.data();
      const std::span<const std::uint32_t> widths = replies_[piece].widths.as<std::uint32_t>();
      for (std::size_t i = ranges_[piece].begin; i < ranges_[piece].end; ++i) {
        const std::uint32_t width = widths[i - ranges_[piece].begin];
        const std::uint64_t place = keys_.order[i];
        (*widths_)[place] = width;
        rows[place].data = data;
        data += width * element_bytes_;
        elements += width;
      }
    }
    auto* out = static_cast<std::byte*>(resize_(elements));
    for (std::size_t place = 0; place < rows.size(); ++place) {
      const std::uint64_t bytes = (*widths_)[place] * element_bytes_;
      if (bytes == 0) continue;
      std::memcpy(out, rows[place].data, bytes);
      out += bytes;
    }
  }

 private:
  struct Received {
    runtime::Buffer widths, values;
  };
  std::vector<std::uint32_t>* widths_;
  std::function<void*(std::size_t)> resize_;
  std::uint64_t element_bytes_;
  GroupedKeys keys_;
  std::vector<Range> ranges_;  // by piece
  std::vector<Received> replies_;
};

struct Share {
  std::uint32_t shard;
  Range keys;
};

// Cuts every shard's keys where a request would hold too many keys or too many value bytes.
absl::StatusOr<std::vector<Share>> CutByShard(const Access& access, const GroupedKeys& keys) {
  const TableInfo& table = *access.table;
  const std::uint64_t keys_max = std::min<std::uint64_t>(
      proto::kKeysPerRequestMax, table.message_bytes_max / sizeof(std::uint64_t));
  std::vector<Share> shares;
  for (std::uint32_t shard = 0; shard < table.num_shards; ++shard) {
    Range range{keys.shards[shard].begin, keys.shards[shard].begin};
    std::uint64_t bytes = 0;
    for (std::size_t i = range.begin; i < keys.shards[shard].end; ++i) {
      const std::uint64_t row =
          proto::HasPush(access.op) ? access.widths[keys.order[i]] * SizeOf(access.dtype) : 0;
      if (row > table.message_bytes_max) {
        return absl::InvalidArgumentError(absl::StrCat(
            "table '", table.spec.name, "': the row of key ", keys.keys[i], " has ", row,
            " bytes, more than LEEWAY_MESSAGE_BYTES_MAX, ", table.message_bytes_max));
      }
      const bool full =
          range.end - range.begin >= keys_max || bytes + row > table.message_bytes_max;
      if (full && range.end > range.begin) {
        shares.push_back({shard, range});
        range.begin = i;
        bytes = 0;
      }
      range.end = i + 1;
      bytes += row;
    }
    if (range.end > range.begin) shares.push_back({shard, range});
  }
  return shares;
}

// Widths and values in the order of the grouped keys, without gaps.
struct Gathered {
  Arena widths, values;
  std::vector<std::uint64_t> begin;  // [shares + 1], elements
};

Gathered Gather(const Access& access, const GroupedKeys& keys, std::span<const Share> shares) {
  const std::uint64_t element_bytes = SizeOf(access.dtype);
  std::vector<std::uint64_t> from(access.widths.size() + 1, 0);
  for (std::size_t i = 0; i < access.widths.size(); ++i) from[i + 1] = from[i] + access.widths[i];

  Gathered gathered{
      Arena(keys.size * sizeof(std::uint32_t)), Arena(access.size * element_bytes), {0}};
  auto* widths = reinterpret_cast<std::uint32_t*>(gathered.widths.data());
  std::byte* out = gathered.values.data();
  for (const Share& share : shares) {
    std::uint64_t elements = gathered.begin.back();
    for (std::size_t i = share.keys.begin; i < share.keys.end; ++i) {
      const std::uint64_t place = keys.order[i];
      const std::uint64_t bytes = access.widths[place] * element_bytes;
      *widths++ = access.widths[place];
      if (bytes > 0) {
        std::memcpy(out, static_cast<const std::byte*>(access.values) + from[place] * element_bytes,
                    bytes);
      }
      out += bytes;
      elements += access.widths[place];
    }
    gathered.begin.push_back(elements);
  }
  return gathered;
}

}  // namespace

absl::StatusOr<Sliced> SliceRagged(const Access& access) {
  const TableInfo& table = *access.table;
  GroupedKeys grouped = GroupKeys(access.keys, table.num_shards);
  if (grouped.repeats()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table.spec.name, "': keys of a ragged table must not repeat"));
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<Share> shares, CutByShard(access, grouped));

  const bool push = proto::HasPush(access.op);
  const std::uint64_t element_bytes = SizeOf(access.dtype);
  const Gathered rows = push ? Gather(access, grouped, shares) : Gathered{};

  Sliced sliced{.table = access.table, .op = access.op};
  std::vector<Range> ranges;  // by piece
  std::size_t row = 0;
  for (const auto& [shard, range] : shares) {
    const std::size_t size = range.size();
    Piece piece;
    piece.keys = size;
    piece.shard = shard;
    piece.payload.push_back(grouped.Frame(range));
    if (push) {
      const std::uint64_t begin = rows.begin[ranges.size()];
      piece.elements = rows.begin[ranges.size() + 1] - begin;
      piece.payload.push_back(
          rows.widths.Part(row * sizeof(std::uint32_t), size * sizeof(std::uint32_t)));
      piece.payload.push_back(
          rows.values.Part(begin * element_bytes, piece.elements * element_bytes));
    }
    row += size;
    ranges.push_back(range);
    sliced.pieces.push_back(std::move(piece));
  }
  if (proto::HasPull(access.op)) {
    sliced.sink = std::make_unique<RaggedSink>(access, std::move(grouped), std::move(ranges));
  }
  return sliced;
}

}  // namespace leeway::worker
