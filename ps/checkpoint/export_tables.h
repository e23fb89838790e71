// The tables of an export: gathered from the shards of a checkpoint, then written.
#ifndef LEEWAY_PS_CHECKPOINT_EXPORT_TABLES_H_
#define LEEWAY_PS_CHECKPOINT_EXPORT_TABLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "leeway/table_spec.h"
#include "ps/store/frozen_piece.h"
#include "runtime/files/file_system.h"

namespace leeway::ps {

class ExportTable {
 public:
  virtual ~ExportTable() = default;
  // A piece, and where its values lie. Later pieces take the place of earlier ones. `file` stays.
  virtual void Take(const FrozenPiece& piece, const std::string& file, std::uint64_t values_at) = 0;
  // Once all have been taken.
  virtual std::vector<checkpoint::TensorInfo> Tensors() = 0;
  virtual absl::Status Write(runtime::FileSystem* files,
                             checkpoint::SafetensorsWriter* writer) const = 0;
};

// A dense table's blocks are left where they are and read again when they are written, one at a
// time: what its shape says is never believed to be there. Of the others the values are kept.
std::unique_ptr<ExportTable> NewExportTable(const TableSpec& spec, std::uint64_t block_bytes);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_EXPORT_TABLES_H_
