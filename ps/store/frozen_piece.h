// Snapshots of stores: Freeze makes them, checkpoints and state transfers consist of them.
#ifndef LEEWAY_PS_STORE_FROZEN_PIECE_H_
#define LEEWAY_PS_STORE_FROZEN_PIECE_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "runtime/memory/buffer.h"

namespace leeway::ps {

// The type of optimiser state and aggregates of a table of `dtype`: float32 for the 16-bit
// types, otherwise `dtype` itself.
DType ComputeDType(DType dtype);

// The description of the sums of pushes to such a table (FrozenPiece::collected): values of the
// type that the table is computed in, in blocks of as many elements.
TableSpec SpecOfSums(const TableSpec& spec);

// A dense block, or some rows, with everything that the next update depends on. It stands by
// itself: no other piece is needed to read it. Its bytes stay as they are, whatever becomes of the
// store, and may be read on any thread.
//
// A row whose steps are 0 is not there: readers pass it over. (It has moved to another piece
// since its piece was laid out.) Among the other rows of one snapshot no key repeats.
struct FrozenPiece {
  TableKind kind = TableKind::kDense;
  DType dtype = DType::kFloat32;  // of the values
  std::uint64_t block = 0;        // dense
  std::uint64_t elements = 0;     // in values, rows that are not there included
  std::uint32_t state_slots = 0;
  runtime::Buffer keys = {};    // sparse, ragged: [rows] uint64, in no order
  runtime::Buffer widths = {};  // ragged: [rows] uint32
  runtime::Buffer values = {};  // row after row
  // Row after row (a dense block is one row), in each slot after slot; of ComputeDType(dtype).
  runtime::Buffer state = {};
  runtime::Buffer steps = {};  // [rows] uint64 (dense: [1]): how often each was updated
  // Dense, where replies are encoded: the version that the feedback slot is of; 0: not known.
  std::uint64_t version = 0;
  // Above 0: it is no part of the store, but of the pushes that are collected beside it
  // (factory/collected_pushes.h): the sum of so many of its target.
  std::uint32_t collected = 0;
  // Of such: AggregatedPush::learning_rate.
  double learning_rate = std::numeric_limits<double>::quiet_NaN();

  std::uint64_t rows() const { return steps.size() / sizeof(std::uint64_t); }
};

struct StoreSnapshot {
  std::vector<FrozenPiece> pieces;
  std::uint64_t generation = 0;  // for ShardStore::FreezeSince of the same store
};

// Whether a piece from elsewhere is whole and made for a table like this, whose updater is given:
// kind, dtype, sizes, alignment. INVALID_ARGUMENT says what is wrong. Whether its keys or block
// belong to a shard is for the store to say.
absl::Status CheckPiece(const TableSpec& spec, const Updater& updater, const FrozenPiece& piece);

// One row of a piece, or its block.
struct FrozenRow {
  std::uint64_t key = 0;  // dense: the block
  std::uint64_t width = 0;
  std::uint64_t steps = 0;
  std::span<const std::byte> values;
  std::span<const std::byte> state;  // slot after slot
};

// Calls `visitor(const FrozenRow&)` for the rows that are there. The piece is whole (CheckPiece,
// or fresh from Freeze).
template <class Visitor>
void ForEachRow(const FrozenPiece& piece, const Visitor& visitor) {
  const auto keys = piece.keys.as<std::uint64_t>();
  const auto widths = piece.widths.as<std::uint32_t>();
  const auto steps = piece.steps.as<std::uint64_t>();
  const std::uint64_t value_bytes = SizeOf(piece.dtype);
  const std::uint64_t state_bytes = piece.state_slots * SizeOf(ComputeDType(piece.dtype));
  std::uint64_t element = 0;
  for (std::uint64_t i = 0; i < steps.size(); ++i) {
    const std::uint64_t width = widths.empty() ? piece.elements / steps.size() : widths[i];
    if (steps[i] != 0) {
      visitor(FrozenRow{
          .key = keys.empty() ? piece.block : keys[i],
          .width = width,
          .steps = steps[i],
          .values = piece.values.bytes().subspan(element * value_bytes, width * value_bytes),
          .state = piece.state.bytes().subspan(element * state_bytes, width * state_bytes)});
    }
    element += width;
  }
}

// Of all rows and blocks that are there: equal for equal content, in whatever order and pieces.
std::uint64_t Digest(std::span<const FrozenPiece> pieces);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_FROZEN_PIECE_H_
