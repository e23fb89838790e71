// The conversion between pushes, aggregates and pieces of a shard and the log entries that carry
// them.
#ifndef LEEWAY_PS_SHARD_STATE_LOG_ENTRY_CONVERSION_H_
#define LEEWAY_PS_SHARD_STATE_LOG_ENTRY_CONVERSION_H_

#include "ps/replication/log/log_entry.h"
#include "ps/store/shard_store.h"
#include "ps/table/contributions.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"

namespace leeway::ps {

// A push that was applied at once.
LogEntry PushEntry(const Inbound& inbound);
// The aggregate of what one clock brought to one target, and how workers get the new version.
LogEntry UpdateEntry(const Table& table, const AggregatedPush& aggregate, const VersionBy& by);
// A push that is held for clock `clock`.
LogEntry HeldEntry(const Table& table, std::uint64_t clock, const Contribution& contribution);
// A version of a dense block is made for workers.
// The table is frozen for that publication.
LogEntry PublishEntry(const Table& table, std::uint64_t publication);
LogEntry VersionEntry(const Table& table, std::uint64_t block, const VersionBy& by);
// What is collected for a target was applied, in clock `clock`, by those settings; `mean_of` 0:
// nothing was, and the table's clocks up to `clock` have closed.
LogEntry CollectedEntry(const Table& table, std::uint64_t block, std::uint64_t clock,
                        std::uint32_t mean_of, std::uint32_t settings);
// A handler's update, of the form of a push, which is applied by those settings.
LogEntry EffectEntry(const Inbound& update, std::uint32_t settings);
// A call of a handler, which has answered that; and the same answer in a state transfer.
LogEntry CallEntry(const proto::Request& call, const runtime::Buffer& answer);
LogEntry AnswerEntry(std::uint32_t worker, std::uint64_t incarnation, std::uint64_t sequence,
                     const runtime::Buffer& answer);
// A push was refused.
LogEntry RefusalEntry(proto::Refusal refusal);
LogEntry PieceEntry(const Table& table, const FrozenPiece& piece);

// The other way, of entries of the kinds that the functions above make. Share the buffers.
PushView ToPush(const LogEntry& entry);
AggregatedPush ToAggregate(const LogEntry& entry);
FrozenPiece ToPiece(const LogEntry& entry);
// Of an update or a version: how workers get it.
VersionBy ToVersionBy(const LogEntry& entry);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_LOG_ENTRY_CONVERSION_H_
