#include "ps/store/frozen_piece.h"

#include "proto/messages/limits.h"
#include "ps/store/checks.h"
#include "ps/store/feedback.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// A whole number of `size` bytes each, where they can be read as such.
absl::Status CheckArray(const TableSpec& spec, const runtime::Buffer& buffer, std::size_t size,
                        absl::string_view what) {
  if (buffer.size() % size != 0) {
    return Invalid(spec, "a piece with ", buffer.size(), " bytes of ", what, ", which have ", size,
                   " bytes each");
  }
  if (!buffer.aligned_to(size)) {
    return Invalid(spec, "a piece whose ", what, " do not lie at a multiple of ", size, " bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckRows(const TableSpec& spec, const FrozenPiece& piece) {
  LEEWAY_RETURN_IF_ERROR(CheckArray(spec, piece.keys, sizeof(std::uint64_t), "keys"));
  if (piece.keys.size() != piece.steps.size()) {
    return Invalid(spec, "a piece of ", Count(piece.rows(), "row"), " with ",
                   Count(piece.keys.size() / sizeof(std::uint64_t), "key"));
  }
  if (spec.kind == TableKind::kSparse) {
    if (!piece.widths.empty()) return Invalid(spec, "it is sparse, but the piece has widths");
    if (piece.elements % spec.row_width == 0 && piece.elements / spec.row_width == piece.rows()) {
      return absl::OkStatus();
    }
    return Invalid(spec, "a piece of ", Count(piece.elements, "element"), " for ",
                   Count(piece.rows(), "row"), " of ", spec.row_width);
  }
  LEEWAY_RETURN_IF_ERROR(CheckArray(spec, piece.widths, sizeof(std::uint32_t), "widths"));
  const auto widths = piece.widths.as<std::uint32_t>();
  if (widths.size() != piece.rows()) {
    return Invalid(spec, "a piece of ", Count(piece.rows(), "row"), " with ",
                   Count(widths.size(), "width"));
  }
  std::uint64_t elements = 0;
  for (const std::uint32_t width : widths) {
    if (width > proto::kRowWidthMax) {
      return Invalid(spec, "a row of ", width, " elements, but it may have ", proto::kRowWidthMax,
                     " at most");
    }
    elements += width;
  }
  if (elements == piece.elements) return absl::OkStatus();
  return Invalid(spec, "a piece of ", Count(piece.elements, "element"),
                 ", but its widths add up to ", elements);
}

absl::Status CheckBlock(const TableSpec& spec, const FrozenPiece& piece) {
  if (!piece.keys.empty() || !piece.widths.empty()) {
    return Invalid(spec, "it is dense, but the piece has keys or widths");
  }
  if (piece.rows() == 1) return absl::OkStatus();
  return Invalid(spec, "a piece of one block with ", Count(piece.rows(), "number"), " of steps");
}

// One number for a row or block. No two of a snapshot have the same key, so that equal sums over
// different content would be chance.
std::uint64_t DigestOf(const FrozenRow& row) {
  const auto text = [](std::span<const std::byte> bytes) {
    return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::uint64_t hash = runtime::StableHash(row.key);
  for (const std::uint64_t part : {row.width, row.steps, runtime::StableHash(text(row.values)),
                                   runtime::StableHash(text(row.state))}) {
    hash = runtime::StableHash(hash ^ part);
  }
  return hash;
}

}  // namespace

DType ComputeDType(DType dtype) {
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  return half ? DType::kFloat32 : dtype;
}

TableSpec SpecOfSums(const TableSpec& spec) {
  TableSpec sums = spec;
  sums.dtype = ComputeDType(spec.dtype);
  sums.updater = {"add", {}};
  sums.initializer = {};
  sums.consistency = Consistency::Asp();
  sums.aggregate = Aggregate::kSum;
  sums.codec = "none";
  sums.codecs = {};
  sums.error_feedback = ErrorFeedback::kOff;
  return sums;
}

absl::Status CheckPiece(const TableSpec& spec, const Updater& updater, const FrozenPiece& piece) {
  const std::uint32_t state_slots = StateSlots(spec, updater);
  if (piece.kind != spec.kind) return Invalid(spec, "a piece of a table of another kind");
  if (piece.dtype != spec.dtype) {
    return Invalid(spec, "a piece of ", Name(piece.dtype), ", but it holds ", Name(spec.dtype));
  }
  if (piece.state_slots != state_slots) {
    return Invalid(spec, "a piece with ", Count(piece.state_slots, "state value"),
                   " an element, but its updater ", spec.updater.name, " has ", state_slots);
  }
  const std::size_t stored = SizeOf(spec.dtype);
  const std::size_t computed = SizeOf(ComputeDType(spec.dtype));
  LEEWAY_RETURN_IF_ERROR(CheckArray(spec, piece.values, stored, "values"));
  LEEWAY_RETURN_IF_ERROR(CheckArray(spec, piece.state, computed, "state"));
  LEEWAY_RETURN_IF_ERROR(CheckArray(spec, piece.steps, sizeof(std::uint64_t), "steps"));
  const std::uint64_t elements = piece.values.size() / stored;
  if (elements != piece.elements || piece.state.size() / computed != elements * state_slots) {
    return Invalid(spec, "a piece of ", Count(piece.elements, "element"), " with ",
                   Count(elements, "value"), " and ",
                   Count(piece.state.size() / computed, "state value"));
  }
  return spec.kind == TableKind::kDense ? CheckBlock(spec, piece) : CheckRows(spec, piece);
}

std::uint64_t Digest(std::span<const FrozenPiece> pieces) {
  std::uint64_t sum = 0;
  for (const FrozenPiece& piece : pieces) {
    ForEachRow(piece, [&](const FrozenRow& row) { sum += DigestOf(row); });
  }
  return sum;
}

}  // namespace leeway::ps
