// Between what a shard works with and the items in which its replicas hear of it.
#ifndef LEEWAY_PS_SHARD_LOG_ENTRIES_H_
#define LEEWAY_PS_SHARD_LOG_ENTRIES_H_

#include "ps/replication/log/log_entry.h"
#include "ps/store/shard_store.h"
#include "ps/table/contributions.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"

namespace leeway::ps {

// A push that was applied at once.
Item PushItem(const Inbound& inbound);
// The aggregate of what one clock brought to one target, and how workers are told of the result.
Item UpdateItem(const Table& table, const AggregatedPush& aggregate, const VersionBy& by);
// A push that is held for clock `clock`.
Item HeldItem(const Table& table, std::uint64_t clock, const Contribution& contribution);
// A version of a dense block is made for workers.
Item VersionItem(const Table& table, std::uint64_t block, const VersionBy& by);
// A push was refused.
Item RefusalItem(proto::Refusal refusal);
Item PieceItem(const Table& table, const FrozenPiece& piece);

// The other way, of items of the kinds that the functions above make. Share the buffers.
PushView ToPush(const Item& item);
AggregatedPush ToAggregate(const Item& item);
FrozenPiece ToPiece(const Item& item);
// Of an update or a version: how workers are told of it.
VersionBy ToVersionBy(const Item& item);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_LOG_ENTRIES_H_
