// The state of one shard: what all its replicas have in common, and the index of the log entry
// that it is the result of.
//
// One per shard, owned by Shard; the classes that change it (pushes, pulls, open clocks, …) point
// to it. Lives on the data thread's loop. The head changes it as workers ask, and appends to the
// log what it has done; a follower changes it by what the log says (log_follower.h). The same log
// leads to the same state.
#ifndef LEEWAY_PS_SHARD_STATE_SHARD_STATE_H_
#define LEEWAY_PS_SHARD_STATE_SHARD_STATE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/consistency/worker_clocks.h"
#include "ps/replication/log/answer_sink.h"
#include "ps/replication/log/log_entry.h"
#include "ps/replication/log/shard_effects.h"
#include "ps/shard/state/client_sessions.h"
#include "ps/shard/state/published_tables.h"
#include "ps/shard/state/shard_context.h"
#include "ps/shard/state/shard_stores.h"

namespace leeway::ps {

struct ShardState {
  ShardState(std::uint32_t shard, ShardContext* its_context, ShardEffects* its_effects,
             AnswerSink* its_answers)
      : id(shard),
        context(its_context),
        effects(its_effects),
        answers(its_answers),
        stores(shard, its_context),
        sessions(&clocks, &its_context->early),
        closed(its_context->start_clock) {}
  ShardState(const ShardState&) = delete;
  ShardState& operator=(const ShardState&) = delete;

  // Gives the entry the next index, and sends it to the follower if there is one.
  void AppendToLog(LogEntry entry) {
    entry.header.index = ++index;
    entry.header.map_version = sessions.told();
    if (effects->has_follower()) effects->Log(std::move(entry));
  }
  // The client sessions as followers and checkpoints have them: without what is held.
  std::vector<proto::ClientSession> ExportSessions() const {
    return sessions.Export(closed, /*with_held=*/false);
  }
  // Of a table whose clocks a count of workers closes: those below it have closed.
  std::uint64_t& ClosedOf(const Table& table) {
    const auto found = closed_of.find(table.id());
    if (found != closed_of.end()) return found->second;
    const std::uint64_t reached = table.newest_settings().policy.Closed(clocks);
    return closed_of[table.id()] = std::max(context->start_clock, reached);
  }
  // What a table's policy is told of pushes and pulls: the clocks below it have closed.
  std::uint64_t ClosedFor(const Table& table) {
    return table.closes_by_count() ? ClosedOf(table) : closed;
  }
  // Counts an update that overflowed (ShardStore::TakeOverflow).
  void CountOverflow(ShardStore* store) const {
    if (store->TakeOverflow()) ++context->counters->overflows;
  }
  // Whether so many bytes more may be held until slower workers come. RESOURCE_EXHAUSTED names
  // them.
  absl::Status CheckRoomToHold(std::uint64_t bytes) const;

  const std::uint32_t id;
  ShardContext* const context;
  ShardEffects* const effects;
  AnswerSink* const answers;

  ShardStores stores;
  PublishedTables published;
  WorkerClocks clocks;
  ClientSessions sessions;                           // what waits in them is the head's alone
  std::uint64_t closed;                              // clocks below it have closed, for good
  std::map<std::uint32_t, std::uint64_t> closed_of;  // by table: ClosedOf
  // Of a follower: tables of which all that is collected is of clocks that have closed.
  std::set<std::uint32_t> closing;
  std::uint64_t index = 0;         // of the last log entry that was applied
  std::uint64_t pushed_until = 0;  // pushes that were applied at once are of clocks below it
  // Of a head that took over from another: until then workers send again what that one had held.
  absl::Time grace_until = absl::InfinitePast();
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_SHARD_STATE_H_
