// The operations on whole sets of rows that sparse and ragged stores share: combining the rows of
// several pushes, and loading the rows of a piece.
#ifndef LEEWAY_PS_STORE_SPARSE_ROW_PIECES_H_
#define LEEWAY_PS_STORE_SPARSE_ROW_PIECES_H_

#include <algorithm>
#include <cstdint>

#include "ps/store/checks.h"
#include "ps/store/key_groups.h"
#include "ps/store/sparse/rows.h"
#include "ps/store/update_run.h"

namespace leeway::ps {

// All rows of the groups, each combined into one. `row_width` as of the table.
template <class Stored>
AggregatedPush CombineRows(const Updater& updater, const KeyGroups<Stored>& groups,
                           std::uint64_t row_width, const UpdateTerms& terms) {
  using Compute = ComputeOf<Stored>;
  std::uint64_t elements = groups.size() * row_width;
  if (row_width == 0) {
    for (std::size_t i = 0; i < groups.size(); ++i) elements += groups.widths(i).back();
  }
  AggregatedPush aggregate;
  std::byte* data = nullptr;
  aggregate.keys = runtime::Buffer::Allocate(groups.size() * sizeof(std::uint64_t), &data);
  auto* keys = reinterpret_cast<std::uint64_t*>(data);
  std::uint32_t* widths = nullptr;
  if (row_width == 0) {
    aggregate.widths = runtime::Buffer::Allocate(groups.size() * sizeof(std::uint32_t), &data);
    widths = reinterpret_cast<std::uint32_t*>(data);
  }
  aggregate.values = runtime::Buffer::Allocate(elements * sizeof(Compute), &data);
  auto* values = reinterpret_cast<Compute*>(data);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::uint64_t width = row_width != 0 ? row_width : groups.widths(i).back();
    keys[i] = groups.key(i);
    if (widths != nullptr) widths[i] = static_cast<std::uint32_t>(width);
    CombineRun<Stored>(updater, groups.rows(i), width, terms, values);
    values += width;
  }
  return aggregate;
}

// Before so many more rows may come into being.
template <class Stored>
absl::Status CheckRoom(const TableSpec& spec, const StoreContext& context, const Rows<Stored>& rows,
                       std::uint64_t more) {
  if (rows.HasRoomFor(more)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("table '", spec.name, "': shard ", context.shard, " of ", context.num_shards,
                   " has ", rows.size(), " rows, and a shard may have ", Rows<Stored>::kRowsMax,
                   " at most; use more servers or raise LEEWAY_NUM_SHARDS"));
}

template <class Stored>
void PutRow(Rows<Stored>& rows, const FrozenRow& from) {
  const auto to = rows.Overwrite(from.key, from.width);
  std::copy(from.values.begin(), from.values.end(), reinterpret_cast<std::byte*>(to.values));
  std::copy(from.state.begin(), from.state.end(), reinterpret_cast<std::byte*>(to.state));
  *to.steps = from.steps;
}

// Puts in those rows of a checked piece that belong to the shard. Returns their number.
template <class Stored>
std::uint64_t PutRows(Rows<Stored>& rows, const StoreContext& context, const FrozenPiece& piece) {
  std::uint64_t taken = 0;
  ForEachRow(piece, [&](const FrozenRow& row) {
    if (!BelongsHere(context, row.key)) return;
    PutRow(rows, row);
    ++taken;
  });
  return taken;
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_ROW_PIECES_H_
