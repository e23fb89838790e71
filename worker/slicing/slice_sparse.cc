// Slicing of sparse tables: keys are grouped by shard, repeated ones combined, and every shard gets
// one request, or more where a frame would become too large.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "runtime/memory/copy_row.h"
#include "runtime/memory/prefetch.h"
#include "worker/slicing/arena.h"
#include "worker/slicing/combine_rows.h"
#include "worker/slicing/group_keys.h"
#include "worker/slicing/slice.h"
#include "worker/slicing/table_coding.h"

namespace leeway::worker {
namespace {

// Prefetches a row of the user's that is read or written soon. Has to be inlined: the compiler
// drops calls of functions that only prefetch.
template <int kWrite>
[[gnu::always_inline]] inline void PrefetchRow(const std::byte* rows, std::uint64_t row_bytes,
                                               std::uint64_t place) {
  const std::byte* row = rows + place * row_bytes;
  __builtin_prefetch(row, kWrite);
  if (row_bytes > runtime::kCacheLine / 2) __builtin_prefetch(row + row_bytes - 1, kWrite);
}

// How many rows ahead to prefetch: a hash spreads keys over shards, so their places lie far apart.
constexpr std::size_t kRowsAhead = 16;

// The keys of all pieces, and the range of each piece.
struct PiecedKeys {
  GroupedKeys keys;
  std::vector<GroupedKeys::Range> pieces;  // of keys.keys
};

class SparseSource final : public PushSource {
 public:
  // `to` has room for a row of each key; the rows of a piece are its values frame.
  SparseSource(const Access& access, std::shared_ptr<const PiecedKeys> pieces, Arena to,
               std::vector<std::size_t> begin)
      : table_(access.table),
        rows_(static_cast<const std::byte*>(access.values)),
        row_bytes_(table_->spec.row_width * SizeOf(table_->spec.dtype)),
        pieces_(std::move(pieces)),
        to_(std::move(to)),
        begin_(std::move(begin)) {
    if (!access.copy) return;
    for (std::size_t i = 0; i < pieces_->pieces.size(); ++i) Gather(i);
    gathered_ = true;
  }

  void Fill(std::size_t index, const PushTerms& terms, Piece* piece) override {
    if (!gathered_) Gather(index);
    if (table_->coding == nullptr) return;
    const std::optional<std::uint32_t> choice = table_->coding->ChoiceAt(terms.clock);
    if (choice.has_value()) Encode(index, *choice, terms.learning_rate, piece);
  }

 private:
  // Copies the rows of a piece into its values frame.
  void Gather(std::size_t index) {
    const GroupedKeys& keys = pieces_->keys;
    const auto [begin, end] = pieces_->pieces[index];
    std::byte* to = to_.data() + begin_[index] * row_bytes_;
    if (keys.repeats()) {
      for (std::size_t i = begin; i < end; ++i, to += row_bytes_) {
        if (i + kRowsAhead < end)
          PrefetchRow<0>(rows_, row_bytes_, keys.places(i + kRowsAhead).front());
        FillFrom(keys.places(i), to);
      }
      return;
    }
    for (std::size_t i = begin; i < end; ++i, to += row_bytes_) {
      if (i + kRowsAhead < end) {
        PrefetchRow<0>(rows_, row_bytes_, keys.order[i + kRowsAhead]);
        PrefetchRow<1>(to, row_bytes_, kRowsAhead);
      }
      runtime::CopyRow(rows_ + keys.order[i] * row_bytes_, row_bytes_, to);
    }
  }

  // Encodes a piece. Residual rows that have to make room are added to it, with their keys.
  void Encode(std::size_t index, std::uint32_t choice, std::optional<double> learning_rate,
              Piece* piece) {
    const auto keys = piece->payload[0].as<std::uint64_t>();
    std::byte* const values = to_.data() + begin_[index] * row_bytes_;
    table_->coding->TakeSample(values, keys.size() * table_->spec.row_width);
    EncodedRows rows = table_->coding->pushes.EncodeRows(
        choice, piece->shard, keys, to_.data() + begin_[index] * row_bytes_, learning_rate);
    if (rows.values.traces.has_value()) {
      piece->refundable.reset(new Refundable{.traces = *rows.values.traces,
                                             .given = std::move(rows.given),
                                             .learning_rate = learning_rate});
    }
    if (rows.values.bytes.empty()) return;
    piece->codec = rows.values.codec;
    piece->payload[1] = std::move(rows.values.bytes);
    if (rows.flushed.empty()) return;
    std::vector<std::uint64_t> all(keys.begin(), keys.end());
    all.insert(all.end(), rows.flushed.begin(), rows.flushed.end());
    piece->payload[0] = runtime::Buffer::CopyOf(all.data(), all.size() * sizeof(std::uint64_t));
    piece->keys = all.size();
    piece->elements = all.size() * table_->spec.row_width;
    // A push-pull is answered with these rows, too; they are last, and are ignored.
    piece->reply_elements = piece->elements;
  }

  void FillFrom(std::span<const KeyPlace> places, std::byte* to) const {
    if (places.size() == 1) {
      runtime::CopyRow(rows_ + places.front() * row_bytes_, row_bytes_, to);
    } else {
      CombineRows(table_->combine, table_->spec.dtype, rows_, table_->spec.row_width, places, to);
    }
  }

  const std::shared_ptr<const TableInfo> table_;
  const std::byte* const rows_;
  const std::uint64_t row_bytes_;
  const std::shared_ptr<const PiecedKeys> pieces_;
  const Arena to_;
  const std::vector<std::size_t> begin_;  // [pieces]: their first rows in `to_`
  bool gathered_ = false;
};

class SparseSink final : public PullSink {
 public:
  SparseSink(void* result, std::uint64_t row_bytes, std::shared_ptr<const PiecedKeys> pieces)
      : result_(static_cast<std::byte*>(result)),
        row_bytes_(row_bytes),
        pieces_(std::move(pieces)) {}

  absl::Status Take(std::size_t index, const proto::Reply&,
                    std::span<const runtime::Buffer> payload) override {
    const GroupedKeys& keys = pieces_->keys;
    const std::byte* row = payload[0].data();
    const auto [begin, end] = pieces_->pieces[index];
    if (keys.repeats()) {
      for (std::size_t i = begin; i < end; ++i, row += row_bytes_) {
        if (i + kRowsAhead < end)
          PrefetchRow<1>(result_, row_bytes_, keys.places(i + kRowsAhead).front());
        for (const KeyPlace place : keys.places(i)) {
          runtime::CopyRow(row, row_bytes_, result_ + place * row_bytes_);
        }
      }
      return absl::OkStatus();
    }
    for (std::size_t i = begin; i < end; ++i, row += row_bytes_) {
      if (i + kRowsAhead < end) {
        PrefetchRow<0>(row, row_bytes_, kRowsAhead);
        PrefetchRow<1>(result_, row_bytes_, keys.order[i + kRowsAhead]);
      }
      runtime::CopyRow(row, row_bytes_, result_ + keys.order[i] * row_bytes_);
    }
    return absl::OkStatus();
  }

 private:
  std::byte* const result_;
  const std::uint64_t row_bytes_;
  const std::shared_ptr<const PiecedKeys> pieces_;
};

// The first of a piece's keys whose rows' sum wraps around.
std::optional<std::uint64_t> WrappedKey(const Access& access, const GroupedKeys& grouped,
                                        GroupedKeys::Range piece) {
  const TableInfo& table = *access.table;
  if (!grouped.repeats() || table.combine == Updater::Combine::kLast) return std::nullopt;
  if (!IsInteger(table.spec.dtype)) return std::nullopt;
  const auto* rows = static_cast<const std::byte*>(access.values);
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    if (SumsWrap(table.spec.dtype, rows, table.spec.row_width, grouped.places(i))) {
      return grouped.keys[i];
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Sliced> SliceSparse(const Access& access) {
  const TableInfo& table = *access.table;
  const std::uint64_t row_bytes = table.spec.row_width * SizeOf(table.spec.dtype);
  // A push may get as many rows again from the residuals (PushEncoder::EncodeRows).
  const std::uint64_t times = table.coding != nullptr && proto::HasPush(access.op) ? 2 : 1;
  const std::uint64_t rows_max =
      std::min<std::uint64_t>(
          proto::kKeysPerRequestMax,
          table.message_bytes_max / std::max<std::uint64_t>(row_bytes, sizeof(std::uint64_t))) /
      times;
  if (rows_max == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table.spec.name, "': a row of ", row_bytes, " bytes is more than ",
        times == 1 ? "" : "half of ", "LEEWAY_MESSAGE_BYTES_MAX, ", table.message_bytes_max));
  }

  const auto pieces = std::make_shared<PiecedKeys>();
  pieces->keys = GroupKeys(access.keys, table.num_shards);
  const GroupedKeys& grouped = pieces->keys;
  const bool push = proto::HasPush(access.op);
  Arena values;
  if (push) values = Arena(grouped.size * row_bytes);
  std::vector<std::size_t> first_rows;  // of each piece, in `values`

  Sliced sliced{.table = access.table, .op = access.op};
  std::size_t row = 0;
  for (std::uint32_t shard = 0; shard < table.num_shards; ++shard) {
    const auto [first, end] = grouped.shards[shard];
    for (std::size_t begin = first; begin < end;) {
      const std::size_t size = std::min<std::size_t>(end - begin, rows_max);
      Piece piece;
      piece.shard = shard;
      piece.keys = size;
      piece.elements = push ? size * table.spec.row_width : 0;
      piece.reply_elements = size * table.spec.row_width;
      piece.payload.push_back(grouped.Frame({begin, begin + size}));
      if (push) {
        piece.payload.push_back(values.Part(row * row_bytes, size * row_bytes));
        first_rows.push_back(row);
        const auto wrapped = WrappedKey(access, grouped, {begin, begin + size});
        piece.rows_wrapped = wrapped.has_value();
        if (!sliced.wrapped_key.has_value()) sliced.wrapped_key = wrapped;
      }
      pieces->pieces.push_back({begin, begin + size});
      sliced.pieces.push_back(std::move(piece));
      begin += size;
      row += size;
    }
  }
  if (push) {
    sliced.source =
        std::make_unique<SparseSource>(access, pieces, std::move(values), std::move(first_rows));
    if (access.copy && table.coding == nullptr) sliced.source.reset();  // all is gathered
  }
  if (proto::HasPull(access.op)) {
    sliced.sink = std::make_unique<SparseSink>(access.result, row_bytes, pieces);
  }
  return sliced;
}

}  // namespace leeway::worker
