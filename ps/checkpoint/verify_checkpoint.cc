#include "ps/checkpoint/verify_checkpoint.h"

#include "ps/checkpoint/shard_file.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

absl::StatusOr<std::vector<checkpoint::Manifest>> VerifyCheckpoint(runtime::FileSystem* files,
                                                                   const std::string& path,
                                                                   VerifyProgress progress) {
  LEEWAY_ASSIGN_OR_RETURN(std::vector<checkpoint::Manifest> chain, ReadModelChain(files, path));
  const std::string directory = checkpoint::SplitPath(path).first;
  std::uint64_t done = 0, all = 0;
  for (const checkpoint::Manifest& manifest : chain) all += manifest.bytes();
  const auto advance = [&](std::uint64_t bytes) { progress(done += bytes, all); };
  for (std::uint32_t shard = 0; shard < chain.front().num_shards; ++shard) {
    // Files of older checkpoints that a shard does not build on are read as well: they were
    // promised to be there.
    for (const checkpoint::Manifest& manifest : chain) {
      LEEWAY_RETURN_IF_ERROR(ReadShardFile(files, checkpoint::JoinPath(directory, manifest.name),
                                           manifest, shard, advance)
                                 .status());
    }
  }
  return chain;
}

}  // namespace leeway::ps
