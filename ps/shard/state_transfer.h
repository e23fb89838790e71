// The transfer of a shard's whole state: out of one replica, into one that is joining, and from a
// checkpoint.
//
// A transfer is a TransferBegin, which has all that is not in stores, and a TransferPiece for each
// frozen piece of each store; the log goes on after it.
#ifndef LEEWAY_PS_SHARD_STATE_TRANSFER_H_
#define LEEWAY_PS_SHARD_STATE_TRANSFER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/shard/state/shard_state.h"

namespace leeway::ps {

LogEntry ExportBegin(const ShardState& state);
// The pieces share memory with the stores, which copy what they write to from now on.
std::vector<LogEntry> ExportPieces(ShardState* state);

// Forgets what is here, and takes the beginning of a transfer.
void ImportBegin(const LogEntry& begin, ShardState* state);
// FAILED_PRECONDITION: its table is not here yet.
absl::Status ImportPiece(const LogEntry& piece, ShardState* state);

// Takes what belongs to this shard from a checkpoint's shard, which may be one of another number of
// shards. Before anything has come from workers. Returns how many rows and blocks that were.
absl::StatusOr<std::uint64_t> Restore(const ShardContent& content, ShardState* state);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_TRANSFER_H_
