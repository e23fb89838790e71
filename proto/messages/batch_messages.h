// A PushBatch carries many small pushes in one message, and PushAcks carries their answers. Each
// push and answer means the same as by itself (a Request, a Reply); common fields are sent once.
#ifndef LEEWAY_PROTO_MESSAGES_BATCH_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_BATCH_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "leeway/dtype.h"
#include "proto/messages/fields.h"

namespace leeway::proto {

// One push of a block of a dense table; the fields are a Request's.
struct BatchedPush {
  std::uint64_t sequence = 0;
  std::uint64_t after = 0;
  std::uint64_t block = 0;
  std::uint32_t elements = 0;
  std::uint32_t shard = 0;
  std::uint32_t table = 0;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("sequence", m.sequence, AtLeast(1)) &&
           v("after", m.after, Below(m.sequence, "below `sequence`")) &&
           v("block", m.block, Below(kTableElementsMax)) && v("elements", m.elements, AtLeast(1)) &&
           v("shard", m.shard, kShard) && v("table", m.table, AtLeast(1));
  }
  friend bool operator==(const BatchedPush&, const BatchedPush&) = default;
};

// Payload: the values of all pushes, one after the other. The shards admit them in this order.
struct PushBatch {
  std::uint64_t incarnation = 0;
  std::uint32_t worker = 0;  // rank
  std::uint64_t epoch = 0;
  DType dtype = DType::kFloat32;
  std::uint64_t clock = 0;
  std::uint64_t timeout_ms = 0;
  double learning_rate = 0;
  bool has_learning_rate = false;
  std::int32_t priority = 0;
  std::vector<BatchedPush> pushes = {};
  static bool Fields(auto& v, auto& m) {
    return v("incarnation", m.incarnation) && v("worker", m.worker, kWorkerRank) &&
           v("epoch", m.epoch) && v("dtype", m.dtype, kDTypes) && v("clock", m.clock) &&
           v("timeout_ms", m.timeout_ms, UpTo(kTimeoutMsMax)) && RateFields(v, m, 6, 7) &&
           v.At(8) && v("priority", m.priority) && v("pushes", m.pushes, kBatchCount);
  }
};

struct PushAck {
  std::uint64_t sequence = 0;
  std::uint32_t shard = 0;
  bool provisional = false;  // as in a Reply
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("sequence", m.sequence, AtLeast(1)) && v("shard", m.shard, kShard) &&
           v("provisional", m.provisional);
  }
  friend bool operator==(const PushAck&, const PushAck&) = default;
};

// Acknowledgements of pushes, which may have come alone or in batches.
struct PushAcks {
  std::uint64_t incarnation = 0;
  std::uint32_t worker = 0;  // rank
  std::vector<PushAck> acks = {};
  static bool Fields(auto& v, auto& m) {
    return v("incarnation", m.incarnation) && v("worker", m.worker, kWorkerRank) &&
           v("acks", m.acks, kBatchCount);
  }
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_BATCH_MESSAGES_H_
