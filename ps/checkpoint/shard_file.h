// The file of one shard: its part of every table, and its client sessions.
#ifndef LEEWAY_PS_CHECKPOINT_SHARD_FILE_H_
#define LEEWAY_PS_CHECKPOINT_SHARD_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "checkpoint/folder.h"
#include "leeway/table_spec.h"
#include "proto/messages/messages.h"
#include "ps/store/frozen_piece.h"
#include "runtime/files/file_system.h"

namespace leeway::ps {

struct ShardContent {
  struct Table {
    std::uint32_t id = 0;
    TableSpec spec;
    bool codec_changed = false;  // by the newest manifest (checkpoint::TableEntry)
    std::uint32_t state_slots = 0;
    std::vector<FrozenPiece> pieces;
    std::vector<FrozenPiece> collected = {};  // FrozenPiece::collected
    // The offsets of the values of each piece in the file that it was read from.
    std::vector<std::uint64_t> values_at = {};
  };

  std::string checkpoint;  // its name
  std::uint32_t shard = 0;
  std::uint32_t num_shards = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t clock = 0;
  // The checkpoint's base, which these pieces are to be loaded on top of; empty: this is all.
  std::string base;
  // Each worker's, as of the clock.
  std::vector<proto::ClientSession> sessions;
  std::vector<Table> tables;  // by id
};

// Writes and syncs it. Lets go of pieces as they have been written.
absl::StatusOr<proto::CheckpointFile> WriteShardFile(runtime::FileSystem* files,
                                                     const std::string& folder,
                                                     ShardContent content);

// Reads the file of a shard. DATA_LOSS, naming it, unless it is in every bit what the manifest
// speaks of, belongs to that checkpoint and shard, and has nothing in it that does not belong
// there. `progress` is called with the bytes as they are read.
absl::StatusOr<ShardContent> ReadShardFile(runtime::FileSystem* files, const std::string& folder,
                                           const checkpoint::Manifest& manifest,
                                           std::uint32_t shard,
                                           absl::FunctionRef<void(std::uint64_t bytes)> progress);

// checkpoint::ReadChain, and that servers can have tables like these, with the updaters that this
// program knows.
absl::StatusOr<std::vector<checkpoint::Manifest>> ReadModelChain(runtime::FileSystem* files,
                                                                 const std::string& path);

// The whole shard as of the newest of a chain (ReadModelChain): what to load, in this order.
// `directory` is where the checkpoints lie.
absl::StatusOr<std::vector<ShardContent>> ReadShard(
    runtime::FileSystem* files, const std::string& directory,
    const std::vector<checkpoint::Manifest>& chain, std::uint32_t shard,
    absl::FunctionRef<void(std::uint64_t bytes)> progress);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_SHARD_FILE_H_
