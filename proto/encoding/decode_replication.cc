#include <cmath>
#include <tuple>

#include "proto/encoding/decode_parts.h"
#include "proto/encoding/decode_payload.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

// The fields of each kind of entry; fields that a kind does not have are 0.
struct Traits {
  bool push = false;         // the push: worker, incarnation, sequence
  bool target = false;       // table, block or rows, and their payload
  bool state = false;        // the state and steps of the target as well
  bool rate = false;         // a learning rate, optionally
  bool index = false;        // an index in the log, which counts from 1
  bool sessions = false;     // `workers`
  bool one_session = false;  // exactly one of them
  bool block_alone = false;  // table and dense block, without a payload
  bool settings = false;     // the settings that it is applied with
  bool encodes = false;      // the message to workers, optionally: codec, or whole
  std::size_t refusals_min = 0, refusals_max = 0;
};

constexpr Traits TraitsOf(LogEntryKind kind) {
  switch (kind) {
    case LogEntryKind::kPush:
      return {.push = true, .target = true, .rate = true, .index = true, .settings = true};
    case LogEntryKind::kUpdate:
      return {.target = true, .rate = true, .index = true, .settings = true, .encodes = true};
    case LogEntryKind::kClose:
      return {.index = true, .sessions = true};
    case LogEntryKind::kEnter:
      return {.index = true, .sessions = true, .one_session = true};
    case LogEntryKind::kTransferBegin:
      return {.sessions = true, .refusals_max = kRefusalsMax};
    case LogEntryKind::kHandoverEnd:
      return {.sessions = true};
    case LogEntryKind::kTransferPiece:
      return {.target = true, .state = true};
    case LogEntryKind::kTransferEnd:
      return {};
    case LogEntryKind::kHeld:
      return {.push = true, .target = true, .rate = true};
    case LogEntryKind::kVersion:
      return {.index = true, .block_alone = true, .encodes = true};
    case LogEntryKind::kRefusal:
      return {.index = true, .refusals_min = 1, .refusals_max = 1};
    case LogEntryKind::kConfirm:
      return {.index = true};
    case LogEntryKind::kCollected:
      return {.index = true, .block_alone = true, .settings = true};
  }
  return {};
}

absl::Status ReadPlace(const wire::Replicate& from, Replicate* to) {
  to->shard = from.shard();
  LEEWAY_RETURN_IF_ERROR(CheckRange("shard", to->shard, 0, kShardsMax - 1));
  to->epoch = from.epoch();
  LEEWAY_RETURN_IF_ERROR(CheckRange("epoch", to->epoch, 1, kAny));
  to->stream = from.stream();
  to->entry = from.entry();
  LEEWAY_RETURN_IF_ERROR(CheckRange("entry", to->entry, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(
      ReadEnum("kind", from.kind(), LogEntryKind::kPush, LogEntryKind::kCollected, &to->kind));
  to->index = from.index();
  to->clock = from.clock();
  const Traits has = TraitsOf(to->kind);
  to->map_version = from.map_version();
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("map_version", to->map_version, 0, has.index || has.sessions ? kAny : 0));
  to->pushed_until = from.pushed_until();
  const bool transfer = to->kind == LogEntryKind::kTransferBegin;
  LEEWAY_RETURN_IF_ERROR(CheckRange("pushed_until", to->pushed_until, 0, transfer ? kAny : 0));
  return CheckRange("index", to->index, TraitsOf(to->kind).index ? 1 : 0, kAny);
}

absl::Status ReadPush(const wire::Replicate& from, Replicate* to) {
  const bool push = TraitsOf(to->kind).push;
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, push ? kWorkersMax - 1 : 0));
  to->incarnation = from.incarnation();
  LEEWAY_RETURN_IF_ERROR(CheckRange("incarnation", to->incarnation, 0, push ? kAny : 0));
  to->sequence = from.sequence();
  return CheckRange("sequence", to->sequence, push ? 1 : 0, push ? kAny : 0);
}

absl::Status ReadCollected(const wire::Replicate& from, Replicate* to) {
  const bool push = to->kind == LogEntryKind::kPush;
  to->weight = from.weight();
  const bool weighs = push && std::isfinite(to->weight) && to->weight >= 0;
  if (!weighs && to->weight != 1) return Wrong("weight is ", to->weight, ", may be 0 or more");
  to->collected = from.collected();
  LEEWAY_RETURN_IF_ERROR(CheckRange("collected", to->collected, 0, push));
  const bool applied = to->kind == LogEntryKind::kCollected;
  to->mean_of = from.mean_of();
  LEEWAY_RETURN_IF_ERROR(CheckRange("mean_of", to->mean_of, applied, applied ? kAny : 0));
  to->pushes = from.pushes();
  return CheckRange("pushes", to->pushes, 0, TraitsOf(to->kind).state ? kAny : 0);
}

absl::Status ReadTarget(const wire::Replicate& from, Replicate* to) {
  const Traits has = TraitsOf(to->kind);
  const bool place = has.target || has.block_alone;
  to->table = from.table();
  LEEWAY_RETURN_IF_ERROR(CheckRange("table", to->table, place, place ? kAny : 0));
  LEEWAY_RETURN_IF_ERROR(ReadEnum("table_kind", from.table_kind(), TableKind::kDense,
                                  has.target ? TableKind::kRagged : TableKind::kDense,
                                  &to->table_kind));
  LEEWAY_RETURN_IF_ERROR(ReadEnum("dtype", from.dtype(), DType::kFloat32,
                                  has.target ? DType::kInt64 : DType::kFloat32, &to->dtype));
  to->block = from.block();
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", to->block, 0, place ? kTableElementsMax - 1 : 0));
  to->keys = from.keys();
  LEEWAY_RETURN_IF_ERROR(CheckRange("keys", to->keys, 0, has.target ? kKeysPerRequestMax : 0));
  to->elements = from.elements();
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("elements", to->elements, 0, has.target ? kTableElementsMax : 0));
  to->state_slots = from.state_slots();
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("state_slots", to->state_slots, 0, has.state ? kStateSlotsMax : 0));
  to->codec = from.codec();
  LEEWAY_RETURN_IF_ERROR(CheckRange("codec", to->codec, 0, has.push || has.encodes ? kAny : 0));
  to->whole = from.whole();
  LEEWAY_RETURN_IF_ERROR(CheckRange("whole", to->whole, 0, has.encodes));
  to->table_settings = from.table_settings();
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("settings", to->table_settings, 0, has.settings ? kTableSettingsMax : 0));
  to->version = from.version();
  LEEWAY_RETURN_IF_ERROR(CheckRange("version", to->version, 0, has.state ? kAny : 0));
  LEEWAY_RETURN_IF_ERROR(ReadCollected(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadLearningRate(from, to));
  const bool rate = has.rate || to->pushes != 0;
  return CheckRange("has_learning_rate", to->has_learning_rate, 0, rate);
}

absl::Status TakePayload(const Replicate& entry, Input& in) {
  const Target target{.kind = entry.table_kind,
                      .dtype = entry.dtype,
                      .block = entry.block,
                      .keys = entry.keys,
                      .elements = entry.elements,
                      .coded = TraitsOf(entry.kind).push && entry.codec != 0};
  const DType compute = ComputeType(entry.dtype);
  switch (entry.kind) {
    case LogEntryKind::kPush:
    case LogEntryKind::kHeld:
      return TakeTarget(target, entry.dtype, {}, in);
    case LogEntryKind::kUpdate:
      return TakeTarget(target, compute, {}, in);
    case LogEntryKind::kTransferPiece: {
      const Frame state{"state", entry.state_slots * entry.elements, SizeOf(compute)};
      const bool dense = entry.table_kind == TableKind::kDense;
      const Frame steps{"steps", dense ? 1 : entry.keys, sizeof(std::uint64_t)};
      return TakeTarget(target, entry.dtype, {state, steps}, in);
    }
    default:
      return CheckFrameCount(in, 0);
  }
}

absl::Status ReadSessions(const wire::Replicate& from, Replicate* to) {
  const Traits has = TraitsOf(to->kind);
  const std::size_t size = SizeOrZero(from.workers());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of workers", size, has.one_session,
                                    has.one_session ? 1
                                    : has.sessions  ? kWorkersMax
                                                    : 0));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("workers", from.workers(), alignof(wire::ClientSession)));
  to->workers.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ClientSession& window = *from.workers()->Get(static_cast<std::uint32_t>(i));
    ClientSession& worker = to->workers[i];
    worker = {window.rank(),  window.incarnation(), window.clock(),
              window.since(), window.admitted(),    window.admitted_held()};
    LEEWAY_RETURN_IF_ERROR(CheckRange("worker's rank", worker.rank, 0, kWorkersMax - 1));
    if (i == 0) continue;
    const ClientSession& before = to->workers[i - 1];
    if (std::tie(before.rank, before.incarnation) >= std::tie(worker.rank, worker.incarnation)) {
      return Wrong("worker ", worker.rank, " of incarnation ", worker.incarnation,
                   " comes after worker ", before.rank, " of incarnation ", before.incarnation,
                   ", may come in ascending order");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadRefusal(const wire::Refusal& from, Input& in, Refusal* to) {
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("refusal's worker", to->worker, 0, kWorkersMax - 1));
  to->incarnation = from.incarnation();
  to->sequence = from.sequence();
  LEEWAY_RETURN_IF_ERROR(CheckRange("refusal's sequence", to->sequence, 1, kAny));
  to->held = from.held();
  to->with_earlier = from.with_earlier();
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->status));
  if (to->status.ok()) return Wrong("refusal's code is 0, may be 1 to 16");
  return CheckRange("length of refusal's reason", to->status.message().size(), 0,
                    kRefusalReasonBytesMax);
}

absl::Status ReadRefusals(const wire::Replicate& from, Input& in, Replicate* to) {
  const Traits has = TraitsOf(to->kind);
  const std::size_t size = SizeOrZero(from.refusals());
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("number of refusals", size, has.refusals_min, has.refusals_max));
  to->refusals.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::Refusal* const refusal = from.refusals()->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(ReadRefusal(*refusal, in, &to->refusals[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Read(const wire::Replicate& from, Input& in, Replicate* to) {
  LEEWAY_RETURN_IF_ERROR(ReadPlace(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadPush(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadTarget(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadSessions(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadRefusals(from, in, to));
  return TakePayload(*to, in);
}

absl::Status Read(const wire::ReplicateAck& from, Input&, ReplicateAck* to) {
  to->shard = from.shard();
  LEEWAY_RETURN_IF_ERROR(CheckRange("shard", to->shard, 0, kShardsMax - 1));
  to->stream = from.stream();
  to->entry = from.entry();
  to->committed = from.committed();
  to->since = from.since();
  return absl::OkStatus();
}

absl::Status Read(const wire::ReplicaReady& from, Input&, ReplicaReady* to) {
  to->epoch = from.epoch();
  LEEWAY_RETURN_IF_ERROR(CheckRange("epoch", to->epoch, 1, kAny));
  to->shard = from.shard();
  return CheckRange("shard", to->shard, 0, kShardsMax - 1);
}

absl::Status Read(const wire::LinkReport& from, Input&, LinkReport* to) {
  to->epoch = from.epoch();
  LEEWAY_RETURN_IF_ERROR(CheckRange("epoch", to->epoch, 1, kAny));
  to->shard = from.shard();
  LEEWAY_RETURN_IF_ERROR(CheckRange("shard", to->shard, 0, kShardsMax - 1));
  to->server = from.server();
  to->handover = from.handover();
  return CheckRange("server", to->server, 0, kServersMax - 1);
}

absl::Status Read(const wire::LeadNow& from, Input&, LeadNow* to) {
  to->epoch = from.epoch();
  LEEWAY_RETURN_IF_ERROR(CheckRange("epoch", to->epoch, 1, kAny));
  to->shard = from.shard();
  LEEWAY_RETURN_IF_ERROR(CheckRange("shard", to->shard, 0, kShardsMax - 1));
  to->from = from.from();
  return CheckRange("from", to->from, 0, kServersMax - 1);
}

absl::Status Read(const wire::LoadReport& from, Input&, LoadReport* to) {
  const std::size_t size = SizeOrZero(from.shards());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of shards", size, 0, kShardsMax));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("shards", from.shards(), alignof(wire::ShardLoad)));
  to->shards.resize(size);
  std::int64_t before = -1;
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ShardLoad& load = *from.shards()->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(
        CheckRange("shard", load.shard(), static_cast<std::uint64_t>(before + 1), kShardsMax - 1));
    before = load.shard();
    to->shards[i] = {load.shard(), load.bytes(), load.requests()};
  }
  return absl::OkStatus();
}

}  // namespace leeway::proto::decode
