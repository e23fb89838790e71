// The file of a worker's residuals beside a checkpoint: a safetensors file of what lossy codecs
// have dropped of its pushes and the worker still carries.
//
// Tensors, of each table by its name:
//     dense/TABLE/BLOCK/residual   F32 [elements]      the residual
//     dense/TABLE/BLOCK/state      F32 [n]             the codec's own state, where it has one; the
//                                                      codec is in the metadata, as
//                                                      codec/TABLE/BLOCK
//     dense/TABLE/BLOCK/last       F64 [2]             messages so far; learning rate of the last
//     sparse/TABLE/keys            U64 [rows]          from the one used longest ago to the latest
//     sparse/TABLE/rows            F32 [rows, width]   the residuals, times the learning rate
//     sparse/TABLE/steps           U64 [shards]        messages so far, by shard
#ifndef LEEWAY_WORKER_ENCODING_RESIDUAL_FILE_H_
#define LEEWAY_WORKER_ENCODING_RESIDUAL_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/files/file_system.h"

namespace leeway::worker {

struct SavedBlock {
  std::vector<float> residual = {};
  std::vector<float> codec_state = {};
  std::string codec = {};  // the one whose state that is, as the table's description has it
  std::uint64_t step = 0;
  double rate = 1;
};
struct SavedTable {
  std::map<std::uint64_t, SavedBlock> blocks;  // dense
  std::vector<std::uint64_t> keys;             // sparse
  std::vector<float> rows;
  std::vector<std::uint64_t> steps;  // by shard; shards after the last one have sent none
};
using SavedResiduals = std::map<std::string, SavedTable>;  // by table

// Replaces the file: after a crash it is the old one or the new one, whole.
absl::Status WriteResiduals(runtime::FileSystem* files, const std::string& folder,
                            std::uint32_t rank, const SavedResiduals& residuals);
// NOT_FOUND: there is no file. DATA_LOSS names the file and says what is wrong with it.
absl::StatusOr<SavedResiduals> ReadResiduals(runtime::FileSystem* files, const std::string& folder,
                                             std::uint32_t rank);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_RESIDUAL_FILE_H_
