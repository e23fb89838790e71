// The command `leeway checkpoint export`: writes the model of a checkpoint into one plain file.
#ifndef LEEWAY_PS_CHECKPOINT_EXPORT_H_
#define LEEWAY_PS_CHECKPOINT_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors_writer.h"
#include "ps/checkpoint/verify_checkpoint.h"
#include "runtime/files/file_system.h"

namespace leeway::ps {

// Writes the values of all tables to the file `to` (safetensors), without optimiser state: a dense
// table as one tensor of its name, shape and type; a sparse one as NAME.keys, sorted, and
// NAME.values, a row a key; a ragged one as NAME.keys, NAME.widths and NAME.values. The file is
// there once it is whole; what has the name `to` and is no file is an error. Believes the
// checkpoint no more than VerifyCheckpoint does. Takes as much memory as one shard, and the values
// of the sparse and ragged tables.
absl::StatusOr<checkpoint::WrittenFile> Export(runtime::FileSystem* files, const std::string& path,
                                               const std::string& to, VerifyProgress progress);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_EXPORT_H_
