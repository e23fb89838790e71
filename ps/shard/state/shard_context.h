// ShardContext is the state that all shards of one data thread share: the loop, tables, counters
// and budgets.
#ifndef LEEWAY_PS_SHARD_STATE_SHARD_CONTEXT_H_
#define LEEWAY_PS_SHARD_STATE_SHARD_CONTEXT_H_

#include <cstdint>

#include "absl/time/time.h"
#include "ps/store/memory/block_pool.h"
#include "ps/store/memory/table_memory.h"
#include "ps/table/counters.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

// What DelayCompensation keeps, of one data thread: blocks, and means of squares.
inline constexpr std::uint64_t kPulledBlocksBytesMax = std::uint64_t{1} << 30;

// Outlives the shards.
struct ShardContext {
  runtime::Loop* loop = nullptr;
  Counters* counters = nullptr;
  Tables tables;
  BlockPool pool;
  TableMemory* table_memory = nullptr;  // the server's; null: not counted
  std::uint32_t num_shards = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t message_bytes_max = 0;
  std::uint64_t start_clock = 0;  // where the workers that were there first begin
  // For so long, a shard with a new head takes requests that are sent again without regard to
  // `held`.
  absl::Duration held_grace = absl::ZeroDuration();
  runtime::ByteBudget early{.bytes_max = kEarlyBytesMax};
  runtime::ByteBudget held;                                        // held pushes and pending pulls
  runtime::ByteBudget pulled{.bytes_max = kPulledBlocksBytesMax};  // DelayCompensation
  runtime::ByteBudget trailing;  // trailing pushes, kept until their cut is finished
  // Serves every pull at once, whatever its policy says: a test that the worker's own check of the
  // bound fails then.
  bool test_only_never_hold = false;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_SHARD_CONTEXT_H_
