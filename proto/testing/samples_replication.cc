#include "proto/messages/limits.h"
#include "proto/testing/samples.h"

namespace leeway::proto {
namespace {

const std::vector<ClientSession>& Windows() {
  static const auto& sessions = *new std::vector<ClientSession>{
      {.rank = 0, .incarnation = 5, .clock = 7, .since = 0, .admitted = 90, .admitted_held = 88},
      {.rank = 0, .incarnation = 6, .clock = 6, .since = 4, .admitted = 3},
      {.rank = kWorkersMax - 1,
       .incarnation = 1,
       .clock = 8,
       .since = 2,
       .admitted = 2,
       .admitted_held = ~0ull}};
  return sessions;
}

Replicate NewEntry(LogEntryKind kind) {
  return {.shard = kShardsMax - 1,
          .epoch = 3,
          .stream = 0xfedcba9876543210,
          .entry = 12,
          .kind = kind,
          .index = 4,
          .clock = 6};
}

Replicate NewEntry(LogEntryKind kind, TableKind table_kind, DType dtype) {
  Replicate entry = NewEntry(kind);
  entry.table = 2;
  entry.table_kind = table_kind;
  entry.dtype = dtype;
  return entry;
}

Replicate OfWorker(Replicate entry) {
  entry.worker = 3;
  entry.incarnation = 0x1122334455667788;
  entry.sequence = 41;
  return entry;
}

void AddPushes(std::vector<Sample>* all) {
  Replicate dense = OfWorker(NewEntry(LogEntryKind::kPush, TableKind::kDense, DType::kFloat16));
  dense.block = 5;
  dense.elements = 3;
  dense.has_learning_rate = true;
  dense.learning_rate = 0.5;
  all->push_back({dense, {FrameOf<std::uint16_t>({1, 2, 3})}});
  dense.codec = 9;
  all->push_back({dense, {FrameOf<char>({'x', 'y'})}});

  Replicate sparse = OfWorker(NewEntry(LogEntryKind::kHeld, TableKind::kSparse, DType::kInt64));
  sparse.keys = 2;
  sparse.elements = 2;
  all->push_back({sparse, {FrameOf<std::uint64_t>({8, 9}), FrameOf<std::int64_t>({-1, 1})}});

  Replicate ragged = OfWorker(NewEntry(LogEntryKind::kPush, TableKind::kRagged, DType::kFloat32));
  ragged.keys = 2;
  ragged.elements = 3;
  ragged.weight = 0.25;
  ragged.collected = true;
  all->push_back({ragged,
                  {FrameOf<std::uint64_t>({8, 9}), FrameOf<std::uint32_t>({0, 3}),
                   FrameOf<float>({1, 2, 3})}});
}

void AddShardCalls(std::vector<Sample>* all) {
  Replicate effect = NewEntry(LogEntryKind::kEffect, TableKind::kSparse, DType::kInt64);
  effect.keys = 1;
  effect.elements = 1;
  effect.table_settings = 3;
  all->push_back({effect, {FrameOf<std::uint64_t>({8}), FrameOf<std::int64_t>({-1})}});
  Replicate call = OfWorker(NewEntry(LogEntryKind::kCall));
  call.settled = 40;
  all->push_back({call, {FrameOf<char>({'x'})}});
  all->push_back({OfWorker(NewEntry(LogEntryKind::kAnswer)), {runtime::Buffer()}});
}

// Aggregates have the type that they are computed in: float for 16-bit tables.
void AddUpdates(std::vector<Sample>* all) {
  Replicate dense = NewEntry(LogEntryKind::kUpdate, TableKind::kDense, DType::kBFloat16);
  dense.elements = 3;
  dense.table_settings = 2;
  all->push_back({dense, {FrameOf<float>({1, 2, 3})}});

  Replicate sparse = NewEntry(LogEntryKind::kUpdate, TableKind::kSparse, DType::kFloat16);
  sparse.keys = 1;
  sparse.elements = 2;
  all->push_back({sparse, {FrameOf<std::uint64_t>({7}), FrameOf<float>({1, 2})}});

  Replicate ragged = NewEntry(LogEntryKind::kUpdate, TableKind::kRagged, DType::kFloat64);
  ragged.keys = 2;
  ragged.elements = 1;
  all->push_back(
      {ragged,
       {FrameOf<std::uint64_t>({7, 8}), FrameOf<std::uint32_t>({1, 0}), FrameOf<double>({1})}});
}

void AddTransfers(std::vector<Sample>* all) {
  Replicate version = NewEntry(LogEntryKind::kVersion);
  version.table = 2;
  version.block = kTableElementsMax - 1;
  version.codec = 7;
  all->push_back({version});
  version.codec = 0;
  version.whole = true;
  all->push_back({version});

  Replicate publish = NewEntry(LogEntryKind::kPublish);
  publish.table = 2;
  publish.version = 1ull << 40;
  all->push_back({publish});
  Replicate published = NewEntry(LogEntryKind::kPublishedBlock, TableKind::kDense, DType::kFloat16);
  published.version = 1ull << 40;
  published.elements = 2;
  all->push_back({published, {FrameOf<std::uint16_t>({1, 2})}});
  Replicate as_is = NewEntry(LogEntryKind::kPublishedAsIs);
  as_is.version = 1ull << 40;
  as_is.table = 2;
  as_is.block = 7;
  as_is.whole = true;
  all->push_back({as_is});

  Replicate dense = NewEntry(LogEntryKind::kTransferPiece, TableKind::kDense, DType::kFloat16);
  dense.elements = 2;
  dense.state_slots = 2;
  dense.version = ~0ull;
  all->push_back({dense,
                  {FrameOf<std::uint16_t>({1, 2}), FrameOf<float>({1, 2, 3, 4}),
                   FrameOf<std::uint64_t>({17})}});

  Replicate sparse = NewEntry(LogEntryKind::kTransferPiece, TableKind::kSparse, DType::kFloat64);
  sparse.keys = 2;
  sparse.elements = 2;
  sparse.state_slots = 1;
  sparse.pushes = 3;
  all->push_back({sparse,
                  {FrameOf<std::uint64_t>({7, 8}), FrameOf<double>({1, 2}), FrameOf<double>({3, 4}),
                   FrameOf<std::uint64_t>({17, 18})}});

  Replicate ragged = NewEntry(LogEntryKind::kTransferPiece, TableKind::kRagged, DType::kInt32);
  ragged.keys = 2;
  ragged.elements = 3;
  all->push_back(
      {ragged,
       {FrameOf<std::uint64_t>({7, 8}), FrameOf<std::uint32_t>({1, 2}),
        FrameOf<std::int32_t>({1, 2, 3}), runtime::Buffer(), FrameOf<std::uint64_t>({17, 18})}});

  Replicate nothing = NewEntry(LogEntryKind::kTransferPiece, TableKind::kSparse, DType::kFloat32);
  nothing.state_slots = kStateSlotsMax;
  all->push_back(
      {nothing, {runtime::Buffer(), runtime::Buffer(), runtime::Buffer(), runtime::Buffer()}});
}

}  // namespace

void AddReplication(std::vector<Sample>* all) {
  AddPushes(all);
  AddShardCalls(all);
  AddUpdates(all);
  AddTransfers(all);
  for (const LogEntryKind kind :
       {LogEntryKind::kClose, LogEntryKind::kTransferBegin, LogEntryKind::kHandoverEnd}) {
    all->push_back({NewEntry(kind)});
    all->push_back({NewEntry(kind)});
    std::get<Replicate>(all->back().message).workers = Windows();
  }
  Replicate enter = NewEntry(LogEntryKind::kEnter);
  enter.workers = {Windows()[1]};
  all->push_back({enter});
  Replicate refusal = NewEntry(LogEntryKind::kRefusal);
  refusal.refusals = {{.worker = 3,
                       .incarnation = ~0ull,
                       .sequence = 8,
                       .held = true,
                       .status = absl::ResourceExhaustedError("LEEWAY_HELD_BYTES_MAX")}};
  all->push_back({refusal});
  all->push_back({NewEntry(LogEntryKind::kConfirm)});
  Replicate collected = NewEntry(LogEntryKind::kCollected);
  collected.table = 3;
  collected.mean_of = 4;
  all->push_back({collected});
  collected.mean_of = 0;
  all->push_back({collected});
  Replicate remembered = NewEntry(LogEntryKind::kTransferBegin);
  remembered.refusals = refusal.refusals;
  remembered.closed_of = {{1, 7}, {kTableIdMax, ~0ull}};
  remembered.refusals.push_back(
      {.worker = 1, .sequence = 1, .with_earlier = true, .status = absl::UnknownError("")});
  all->push_back({remembered});
  all->push_back({NewEntry(LogEntryKind::kTransferEnd)});
  Replicate first = NewEntry(LogEntryKind::kTransferBegin);
  first.index = 0;  // nothing has been logged yet
  all->push_back({first});
  first.index = 9;
  first.pushed_until = 12;
  first.map_version = ~0ull;
  all->push_back({first});
}

}  // namespace leeway::proto
