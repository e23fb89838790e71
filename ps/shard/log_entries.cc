#include "ps/shard/log_entries.h"

#include <cmath>
#include <limits>
#include <utility>

namespace leeway::ps {
namespace {

double RateOf(const proto::Replicate& header) {
  return header.has_learning_rate ? header.learning_rate : std::numeric_limits<double>::quiet_NaN();
}

Item ItemFor(proto::ReplicaItem kind, const Table& table) {
  Item item;
  item.header.kind = kind;
  item.header.table = table.id();
  item.header.table_kind = table.spec().kind;
  item.header.dtype = table.spec().dtype;
  return item;
}

// The payload of a push, an aggregate or a piece, as far as they are alike: keys, widths, values.
template <class Rows>
void PutRows(const Rows& rows, DType values, Item* item) {
  item->header.block = rows.block;
  item->header.keys = rows.keys.size() / sizeof(std::uint64_t);
  item->header.elements = rows.values.size() / SizeOf(values);
  if (item->header.table_kind != TableKind::kDense) item->payload.push_back(rows.keys);
  if (item->header.table_kind == TableKind::kRagged) item->payload.push_back(rows.widths);
  item->payload.push_back(rows.values);
}

template <class Rows>
std::size_t TakeRows(const Item& item, Rows* rows) {
  std::size_t next = 0;
  rows->block = item.header.block;
  if (item.header.table_kind != TableKind::kDense) rows->keys = item.payload[next++];
  if (item.header.table_kind == TableKind::kRagged) rows->widths = item.payload[next++];
  rows->values = item.payload[next++];
  return next;
}

void PutRate(double rate, Item* item) {
  item->header.has_learning_rate = !std::isnan(rate);
  if (item->header.has_learning_rate) item->header.learning_rate = rate;
}

}  // namespace

Item PushItem(const Inbound& inbound) {
  const proto::Request& request = inbound.request;
  Item item;
  item.header.kind = proto::ReplicaItem::kPush;
  item.header.worker = request.id.worker;
  item.header.incarnation = request.id.incarnation;
  item.header.sequence = request.id.sequence;
  item.header.table = request.table;
  item.header.table_kind = request.kind;
  item.header.dtype = request.dtype;
  item.header.clock = request.clock;
  item.header.block = request.block;
  item.header.keys = request.keys;
  item.header.has_learning_rate = request.has_learning_rate;
  item.header.learning_rate = request.learning_rate;
  item.header.elements = request.elements;
  item.header.codec = request.codec;
  item.payload = inbound.payload;
  KeepApart(&item.payload);
  return item;
}

Item UpdateItem(const Table& table, const AggregatedPush& aggregate, const VersionBy& by) {
  Item item = ItemFor(proto::ReplicaItem::kUpdate, table);
  PutRows(aggregate, ComputeDType(table.spec().dtype), &item);
  PutRate(aggregate.learning_rate, &item);
  item.header.codec = by.codec;
  item.header.whole = by.whole;
  return item;
}

Item HeldItem(const Table& table, std::uint64_t clock, const Contribution& contribution) {
  Item item = ItemFor(proto::ReplicaItem::kHeld, table);
  item.header.worker = contribution.rank;
  item.header.incarnation = contribution.incarnation;
  item.header.sequence = contribution.sequence;
  item.header.clock = clock;
  PutRows(contribution.push, table.spec().dtype, &item);
  if (contribution.push.codec != 0) {
    item.header.codec = contribution.push.codec;
    item.header.elements = contribution.elements;
  }
  PutRate(contribution.push.learning_rate, &item);
  return item;
}

Item PieceItem(const Table& table, const FrozenPiece& piece) {
  Item item = ItemFor(proto::ReplicaItem::kFillPiece, table);
  PutRows(piece, piece.dtype, &item);
  item.header.state_slots = piece.state_slots;
  item.header.version = piece.version;
  item.payload.push_back(piece.state);
  item.payload.push_back(piece.steps);
  return item;
}

Item VersionItem(const Table& table, std::uint64_t block, const VersionBy& by) {
  Item item;
  item.header.kind = proto::ReplicaItem::kVersion;
  item.header.table = table.id();
  item.header.block = block;
  item.header.codec = by.codec;
  item.header.whole = by.whole;
  return item;
}

Item RefusalItem(proto::Refusal refusal) {
  Item item;
  item.header.kind = proto::ReplicaItem::kRefusal;
  item.header.refusals = {std::move(refusal)};
  return item;
}

VersionBy ToVersionBy(const Item& item) {
  return {.codec = item.header.codec, .whole = item.header.whole};
}

PushView ToPush(const Item& item) {
  PushView push;
  TakeRows(item, &push);
  push.learning_rate = RateOf(item.header);
  push.codec = item.header.codec;
  return push;
}

AggregatedPush ToAggregate(const Item& item) {
  AggregatedPush aggregate;
  TakeRows(item, &aggregate);
  aggregate.learning_rate = RateOf(item.header);
  return aggregate;
}

FrozenPiece ToPiece(const Item& item) {
  FrozenPiece piece;
  std::size_t next = TakeRows(item, &piece);
  piece.kind = item.header.table_kind;
  piece.dtype = item.header.dtype;
  piece.elements = item.header.elements;
  piece.state_slots = item.header.state_slots;
  piece.version = item.header.version;
  piece.state = item.payload[next++];
  piece.steps = item.payload[next];
  return piece;
}

}  // namespace leeway::ps
