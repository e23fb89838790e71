#include "proto/decode_parts.h"
#include "proto/decode_payload.h"
#include "proto/limits.h"
#include "runtime/status_macros.h"

namespace leeway::proto::decode {
namespace {

absl::Status ReadPush(const wire::BatchedPush& from, DType dtype, BatchedPush* to) {
  *to = {.sequence = from.sequence(),
         .after = from.after(),
         .block = from.block(),
         .elements = from.elements(),
         .shard = from.shard(),
         .table = from.table()};
  LEEWAY_RETURN_IF_ERROR(CheckRange("sequence", to->sequence, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(CheckRange("after", to->after, 0, to->sequence - 1));
  LEEWAY_RETURN_IF_ERROR(CheckRange("shard", to->shard, 0, kShardsMax - 1));
  LEEWAY_RETURN_IF_ERROR(CheckRange("table", to->table, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(CheckDense(to->block, 0, to->elements, dtype));
  return CheckRange("bytes of a push", to->elements * SizeOf(dtype), 1, kBatchedPushBytesMax);
}

template <class T>
absl::Status CheckVector(absl::string_view number, absl::string_view field,
                         const flatbuffers::Vector<const T*>* vector) {
  LEEWAY_RETURN_IF_ERROR(CheckRange(number, SizeOrZero(vector), 1, kPushesPerBatchMax));
  return CheckAligned(field, vector, alignof(T));
}

}  // namespace

absl::Status Read(const wire::PushBatch& from, Input& in, PushBatch* to) {
  to->incarnation = from.incarnation();
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, kWorkersMax - 1));
  to->epoch = from.epoch();
  LEEWAY_RETURN_IF_ERROR(
      ReadEnum("dtype", from.dtype(), DType::kFloat32, DType::kInt64, &to->dtype));
  to->clock = from.clock();
  to->timeout_ms = from.timeout_ms();
  LEEWAY_RETURN_IF_ERROR(CheckRange("timeout_ms", to->timeout_ms, 0, kTimeoutMsMax));
  LEEWAY_RETURN_IF_ERROR(ReadLearningRate(from, to));
  to->priority = from.priority();
  LEEWAY_RETURN_IF_ERROR(CheckVector("number of pushes", "pushes", from.pushes()));
  to->pushes.resize(from.pushes()->size());
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < to->pushes.size(); ++i) {
    const auto at = static_cast<flatbuffers::uoffset_t>(i);
    LEEWAY_RETURN_IF_ERROR(ReadPush(*from.pushes()->Get(at), to->dtype, &to->pushes[i]));
    elements += to->pushes[i].elements;
  }
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("bytes of all pushes", elements * SizeOf(to->dtype), 1, kBatchBytesMax));
  return TakeFrames(in, {ValuesFrame(elements, to->dtype)});
}

absl::Status Read(const wire::PushAcks& from, Input&, PushAcks* to) {
  to->incarnation = from.incarnation();
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, kWorkersMax - 1));
  LEEWAY_RETURN_IF_ERROR(CheckVector("number of acks", "acks", from.acks()));
  to->acks.resize(from.acks()->size());
  for (std::size_t i = 0; i < to->acks.size(); ++i) {
    const wire::PushAck& ack = *from.acks()->Get(static_cast<flatbuffers::uoffset_t>(i));
    LEEWAY_RETURN_IF_ERROR(CheckRange("sequence", ack.sequence(), 1, kAny));
    LEEWAY_RETURN_IF_ERROR(CheckRange("shard", ack.shard(), 0, kShardsMax - 1));
    to->acks[i] = {ack.sequence(), ack.shard(), ack.provisional()};
  }
  return absl::OkStatus();
}

}  // namespace leeway::proto::decode
