#include "ps/shard/state/log_entry_conversion.h"

#include <cmath>
#include <limits>
#include <utility>

namespace leeway::ps {
namespace {

double RateOf(const proto::Replicate& header) {
  return header.has_learning_rate ? header.learning_rate : std::numeric_limits<double>::quiet_NaN();
}

LogEntry EntryFor(proto::LogEntryKind kind, const Table& table) {
  LogEntry entry;
  entry.header.kind = kind;
  entry.header.table = table.id();
  entry.header.table_kind = table.spec().kind;
  entry.header.dtype = table.spec().dtype;
  return entry;
}

// The payload of a push, an aggregate or a piece, as far as they are alike: keys, widths, values.
template <class Rows>
void PutRows(const Rows& rows, DType values, LogEntry* entry) {
  entry->header.block = rows.block;
  entry->header.keys = rows.keys.size() / sizeof(std::uint64_t);
  entry->header.elements = rows.values.size() / SizeOf(values);
  if (entry->header.table_kind != TableKind::kDense) entry->payload.push_back(rows.keys);
  if (entry->header.table_kind == TableKind::kRagged) entry->payload.push_back(rows.widths);
  entry->payload.push_back(rows.values);
}

template <class Rows>
std::size_t TakeRows(const LogEntry& entry, Rows* rows) {
  std::size_t next = 0;
  rows->block = entry.header.block;
  if (entry.header.table_kind != TableKind::kDense) rows->keys = entry.payload[next++];
  if (entry.header.table_kind == TableKind::kRagged) rows->widths = entry.payload[next++];
  rows->values = entry.payload[next++];
  return next;
}

void PutRate(double rate, LogEntry* entry) {
  entry->header.has_learning_rate = !std::isnan(rate);
  if (entry->header.has_learning_rate) entry->header.learning_rate = rate;
}

}  // namespace

LogEntry PushEntry(const Inbound& inbound) {
  const proto::Request& request = inbound.request;
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kPush;
  entry.header.worker = request.id.worker;
  entry.header.incarnation = request.id.incarnation;
  entry.header.sequence = request.id.sequence;
  entry.header.table = request.table;
  entry.header.table_kind = request.kind;
  entry.header.dtype = request.dtype;
  entry.header.clock = request.clock;
  entry.header.block = request.block;
  entry.header.keys = request.keys;
  entry.header.has_learning_rate = request.has_learning_rate;
  entry.header.learning_rate = request.learning_rate;
  entry.header.elements = request.elements;
  entry.header.codec = request.codec;
  entry.payload = inbound.payload;
  EnsureOwned(&entry.payload);
  return entry;
}

LogEntry UpdateEntry(const Table& table, const AggregatedPush& aggregate, const VersionBy& by) {
  LogEntry entry = EntryFor(proto::LogEntryKind::kUpdate, table);
  PutRows(aggregate, ComputeDType(table.spec().dtype), &entry);
  PutRate(aggregate.learning_rate, &entry);
  entry.header.codec = by.codec;
  entry.header.whole = by.whole;
  return entry;
}

LogEntry HeldEntry(const Table& table, std::uint64_t clock, const Contribution& contribution) {
  LogEntry entry = EntryFor(proto::LogEntryKind::kHeld, table);
  entry.header.worker = contribution.rank;
  entry.header.incarnation = contribution.incarnation;
  entry.header.sequence = contribution.sequence;
  entry.header.clock = clock;
  PutRows(contribution.push, table.spec().dtype, &entry);
  if (contribution.push.codec != 0) {
    entry.header.codec = contribution.push.codec;
    entry.header.elements = contribution.elements;
  }
  PutRate(contribution.push.learning_rate, &entry);
  return entry;
}

LogEntry CollectedEntry(const Table& table, std::uint64_t block, std::uint64_t clock,
                        std::uint32_t mean_of, std::uint32_t settings) {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kCollected;
  entry.header.table = table.id();
  entry.header.block = block;
  entry.header.clock = clock;
  entry.header.mean_of = mean_of;
  entry.header.table_settings = settings;
  return entry;
}

LogEntry PieceEntry(const Table& table, const FrozenPiece& piece) {
  LogEntry entry = EntryFor(proto::LogEntryKind::kTransferPiece, table);
  PutRows(piece, piece.dtype, &entry);
  entry.header.dtype = piece.dtype;
  entry.header.pushes = piece.collected;
  PutRate(piece.learning_rate, &entry);
  entry.header.state_slots = piece.state_slots;
  entry.header.version = piece.version;
  entry.payload.push_back(piece.state);
  entry.payload.push_back(piece.steps);
  return entry;
}

LogEntry VersionEntry(const Table& table, std::uint64_t block, const VersionBy& by) {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kVersion;
  entry.header.table = table.id();
  entry.header.block = block;
  entry.header.codec = by.codec;
  entry.header.whole = by.whole;
  return entry;
}

LogEntry PublishEntry(const Table& table, std::uint64_t publication) {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kPublish;
  entry.header.table = table.id();
  entry.header.version = publication;
  return entry;
}

LogEntry EffectEntry(const Inbound& update, std::uint32_t settings) {
  LogEntry entry = PushEntry(update);
  entry.header.kind = proto::LogEntryKind::kEffect;
  entry.header.worker = 0;
  entry.header.incarnation = entry.header.sequence = 0;
  entry.header.table_settings = settings;
  return entry;
}

LogEntry AnswerEntry(std::uint32_t worker, std::uint64_t incarnation, std::uint64_t sequence,
                     const runtime::Buffer& answer) {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kAnswer;
  entry.header.worker = worker;
  entry.header.incarnation = incarnation;
  entry.header.sequence = sequence;
  entry.payload.push_back(answer);
  return entry;
}

LogEntry CallEntry(const proto::Request& call, const runtime::Buffer& answer) {
  LogEntry entry = AnswerEntry(call.id.worker, call.id.incarnation, call.id.sequence, answer);
  entry.header.kind = proto::LogEntryKind::kCall;
  entry.header.clock = call.clock;
  entry.header.settled = call.settled;
  return entry;
}

LogEntry RefusalEntry(proto::Refusal refusal) {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kRefusal;
  entry.header.refusals = {std::move(refusal)};
  return entry;
}

VersionBy ToVersionBy(const LogEntry& entry) {
  return {.codec = entry.header.codec, .whole = entry.header.whole};
}

PushView ToPush(const LogEntry& entry) {
  PushView push;
  TakeRows(entry, &push);
  push.learning_rate = RateOf(entry.header);
  push.codec = entry.header.codec;
  return push;
}

AggregatedPush ToAggregate(const LogEntry& entry) {
  AggregatedPush aggregate;
  TakeRows(entry, &aggregate);
  aggregate.learning_rate = RateOf(entry.header);
  return aggregate;
}

FrozenPiece ToPiece(const LogEntry& entry) {
  FrozenPiece piece;
  std::size_t next = TakeRows(entry, &piece);
  piece.kind = entry.header.table_kind;
  piece.dtype = entry.header.dtype;
  piece.elements = entry.header.elements;
  piece.state_slots = entry.header.state_slots;
  piece.version = entry.header.version;
  piece.collected = entry.header.pushes;
  piece.learning_rate = RateOf(entry.header);
  piece.state = entry.payload[next++];
  piece.steps = entry.payload[next];
  return piece;
}

}  // namespace leeway::ps
