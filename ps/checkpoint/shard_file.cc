#include "ps/checkpoint/shard_file.h"

#include <algorithm>
#include <utility>

#include "checkpoint/safetensors_writer.h"
#include "ps/checkpoint/piece_tensors.h"
#include "ps/checkpoint/shard_metadata.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

absl::StatusOr<proto::CheckpointFile> WriteShardFile(runtime::FileSystem* files,
                                                     const std::string& folder,
                                                     ShardContent content) {
  checkpoint::TensorHeader header;
  header.metadata = ToMetadata(content);
  std::vector<PieceTensor> tensors;
  for (ShardContent::Table& table : content.tables) {
    std::uint64_t index = 0;
    for (auto* const pieces : {&table.pieces, &table.collected}) {
      for (const FrozenPiece& piece : std::exchange(*pieces, {})) {
        for (PieceTensor& tensor : ToTensors(table.spec, index, piece)) {
          tensors.push_back(std::move(tensor));
        }
        ++index;
      }
    }
  }
  // Tensors of wide types come first: so each lies at a multiple of its type's size.
  std::stable_sort(tensors.begin(), tensors.end(), [](const PieceTensor& a, const PieceTensor& b) {
    return checkpoint::SizeOf(a.info.type) > checkpoint::SizeOf(b.info.type);
  });
  for (const PieceTensor& tensor : tensors) header.tensors.push_back(tensor.info);

  const std::string name = checkpoint::ShardFileName(content.shard);
  LEEWAY_ASSIGN_OR_RETURN(const auto writer,
                          checkpoint::SafetensorsWriter::Create(
                              files, checkpoint::JoinPath(folder, name), std::move(header)));
  for (PieceTensor& tensor : tensors) {
    LEEWAY_RETURN_IF_ERROR(writer->Append(std::exchange(tensor.bytes, {}).bytes()));
  }
  LEEWAY_ASSIGN_OR_RETURN(const checkpoint::WrittenFile written, writer->Finish());
  LEEWAY_RETURN_IF_ERROR(files->SyncDirectory(folder));
  return proto::CheckpointFile{.name = name, .bytes = written.bytes, .checksum = written.checksum};
}

}  // namespace leeway::ps
