// The conversion between pieces of a snapshot and tensors of a file. docs/checkpoint-format.md has
// the names and shapes of the tensors.
#ifndef LEEWAY_PS_CHECKPOINT_PIECE_TENSORS_H_
#define LEEWAY_PS_CHECKPOINT_PIECE_TENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/safetensors.h"
#include "leeway/table_spec.h"
#include "ps/store/frozen_piece.h"
#include "runtime/memory/buffer.h"

namespace leeway::ps {

struct PieceTensor {
  checkpoint::TensorInfo info;
  runtime::Buffer bytes;
};

// `index` tells apart the pieces with rows of one table in one file.
std::vector<PieceTensor> ToTensors(const TableSpec& spec, std::uint64_t index,
                                   const FrozenPiece& piece);

// The table and piece that a tensor belongs to.
struct PieceTensorName {
  std::string table;
  bool dense = false;
  bool collected = false;   // of pushes that are not applied yet
  std::uint64_t index = 0;  // of the block, or of the piece with rows
  std::string part;         // "keys", "widths", "values", "state", "steps", "version" or "pushes"
};
// INVALID_ARGUMENT if it is none of ours.
absl::StatusOr<PieceTensorName> ParseTensorName(const std::string& name);

// The piece that the tensors of one (table, index) make, by part. INVALID_ARGUMENT unless each is
// there with the type and shape that the table asks for.
absl::StatusOr<FrozenPiece> ToPiece(const TableSpec& spec, std::uint32_t state_slots,
                                    std::uint64_t index,
                                    const std::map<std::string, PieceTensor>& parts);
// Likewise of collected pushes.
absl::StatusOr<FrozenPiece> ToCollectedPiece(const TableSpec& spec, std::uint64_t index,
                                             std::map<std::string, PieceTensor> parts);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_PIECE_TENSORS_H_
