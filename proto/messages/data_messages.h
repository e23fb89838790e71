// The messages between a worker and the data threads of servers: requests, clocks and calls.
#ifndef LEEWAY_PROTO_MESSAGES_DATA_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_DATA_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"
#include "proto/messages/batch_messages.h"
#include "proto/messages/fields.h"

namespace leeway::proto {

struct RequestId {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  std::uint32_t worker = 0;  // rank
  std::uint32_t shard = 0;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("incarnation", m.incarnation) && v("sequence", m.sequence, AtLeast(1)) &&
           v("worker", m.worker, kWorkerRank) && v("shard", m.shard, kShard);
  }
  friend bool operator==(const RequestId&, const RequestId&) = default;
};
// The token of the receive that a worker posts for the answer (van/posted_receive.h): different for
// each open request of a connection, and not 0.
constexpr std::uint64_t ReceiveTokenOf(const RequestId& id) {
  return (id.sequence & ((std::uint64_t{1} << 40) - 1)) | std::uint64_t{id.shard} << 40;
}
enum class Op : std::uint8_t { kPush = 1, kPull = 2, kPushPull = 3, kCall = 4 };
inline constexpr Range kOps = FromTo(Op::kPush, Op::kCall).Unsaid(1);
// A call of a shard handler (leeway/shard_handler.h) may change tables, as a push does. Its answer
// has bytes, and no values of the table.
constexpr bool HasPush(Op op) { return op != Op::kPull; }
constexpr bool HasPull(Op op) { return op == Op::kPull || op == Op::kPushPull; }

// Payload: keys (sparse, ragged: keys × 8 bytes), widths (ragged push: keys × 4 bytes),
// values (push: elements × width of dtype). Of a call: the handler's name, its request.
struct Request {
  RequestId id = {};
  std::uint64_t epoch = 0;
  std::uint32_t table = 0;
  TableKind kind = TableKind::kDense;
  Op op = Op::kPush;
  DType dtype = DType::kFloat32;
  std::uint64_t clock = 0;
  std::uint64_t block = 0;
  std::uint64_t keys = 0;
  std::uint64_t elements = 0;    // dense pull: elements expected in the reply
  std::uint64_t timeout_ms = 0;  // a waiting request is answered within it; 0: waits without end
  double learning_rate = 0;
  bool has_learning_rate = false;
  // The number of this worker's last request to this shard before this one, of the same request
  // class (BSP tables, or the others), that is still open or that the worker retains; 0: none.
  // Requests between the two are settled and will not be sent again.
  std::uint64_t after = 0;
  std::int32_t priority = 0;  // of replies that wait to be sent to a worker, higher goes first
  // Push: the codec of the values frame (compress::CodecId), which then has fewer bytes than the
  // values; 0: the values as they are.
  std::uint32_t codec = 0;
  std::uint64_t have = 0;  // dense pull: the version of the block that the worker holds; 0: none
  std::uint64_t read_updates = 0;  // push: Reply::updates of the pull that it was computed from
  // Push of rows of integers: the worker has added up several of one key, and they wrapped around.
  bool rows_wrapped = false;
  // Call: the first number of its request class whose answer the worker still waits for. Answers to
  // earlier calls need not be kept any more.
  std::uint64_t settled = 0;
  // Pull: of the values that were frozen for that publication; 0: as they are now. `have` is the
  // publication whose values of the block its sender holds.
  std::uint64_t publication = 0;
  static bool Fields(auto& v, auto& m) {
    return v("id", m.id) && v("epoch", m.epoch) && v("table", m.table, AtLeast(1)) &&
           v("kind", m.kind, kTableKinds) && v("op", m.op, kOps) && v("dtype", m.dtype, kDTypes) &&
           v("clock", m.clock) && v("block", m.block) &&
           v("keys", m.keys, UpTo(kKeysPerRequestMax)) &&
           v("elements", m.elements, UpTo(kTableElementsMax)) &&
           v("timeout_ms", m.timeout_ms, UpTo(kTimeoutMsMax)) && RateFields(v, m, 11, 12) &&
           v.At(13) && v("after", m.after, Below(m.id.sequence, "below id.sequence")) &&
           v("priority", m.priority) &&
           v("codec", m.codec, Range{}.When(HasPush(m.op), "of a push")) &&
           v("have", m.have,
             Range{}.When(m.kind == TableKind::kDense && HasPull(m.op),
                          "of a pull of a dense block")) &&
           v("read_updates", m.read_updates, Range{}.When(HasPush(m.op), "of a push")) &&
           v("rows_wrapped", m.rows_wrapped) &&
           v("settled", m.settled,
             UpTo(m.id.sequence, "up to id.sequence").When(m.op == Op::kCall, "of a call")) &&
           v("publication", m.publication, Range{}.When(m.op == Op::kPull, "of a pull"));
  }
};
// One message of a codec in the values frame of a reply.
struct ReplyPart {
  std::uint64_t version = 0;  // of the block after this part
  std::uint64_t bytes = 0;
  std::uint32_t codec = 0;  // 0: values as they are, of ComputeType
  bool whole = false;       // the block itself; otherwise a difference to add to the worker's copy
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("version", m.version) && v("bytes", m.bytes, UpTo(kTableElementsMax)) &&
           v("codec", m.codec) && v("whole", m.whole);
  }
  friend bool operator==(const ReplyPart&, const ReplyPart&) = default;
};
// The codec of a part that is a difference between two publications
// (compress/differences/difference.h): no codec of a table.
inline constexpr std::uint32_t kDifferenceCodec = ~0u;
// The Request that `push` of `batch` stands for.
inline Request RequestOf(const PushBatch& batch, const BatchedPush& push) {
  return {.id = {.incarnation = batch.incarnation,
                 .sequence = push.sequence,
                 .worker = batch.worker,
                 .shard = push.shard},
          .epoch = batch.epoch,
          .table = push.table,
          .kind = TableKind::kDense,
          .op = Op::kPush,
          .dtype = batch.dtype,
          .clock = batch.clock,
          .block = push.block,
          .elements = push.elements,
          .timeout_ms = batch.timeout_ms,
          .learning_rate = batch.learning_rate,
          .has_learning_rate = batch.has_learning_rate,
          .after = push.after,
          .priority = batch.priority};
}
// Payload, if the result is OK: of a pull widths (ragged) and values; of a call the answer.
struct Reply {
  RequestId id = {};
  absl::Status result = {};
  Op op = Op::kPush;
  TableKind kind = TableKind::kDense;
  std::uint64_t clock = 0;
  std::uint64_t slowest_clock = 0;
  std::uint64_t staleness = 0;
  DType dtype = DType::kFloat32;
  std::uint64_t keys = 0;
  std::uint64_t elements = 0;
  // The push waits for its clock to close and is replicated only then: the worker keeps it until
  // ClockAck::stable has passed its clock.
  bool provisional = false;
  // Dense: the values frame holds `parts`, one after the other (perhaps none).
  bool coded = false;
  std::vector<ReplyPart> parts = {};
  std::uint64_t version = 0;  // of the shard, with values: the number of changes it has taken
  // Of tables with weights by staleness, with values: how often the block, or the sparse table's
  // part of the shard, has been updated.
  std::uint64_t updates = 0;
  // Of a publication, a dense block: compress::DigestOfBlock of its values.
  std::uint64_t digest = 0;
  // The request's priority, for the sender of this reply. It is not on the wire.
  std::int32_t priority = 0;

  // It carries the values that the request pulls.
  bool has_values() const { return result.ok() && HasPull(op); }
  bool has_answer() const { return result.ok() && op == Op::kCall; }
  static bool Fields(auto& v, auto& m) {
    return v("id", m.id) && v(m.result) && v("op", m.op, kOps) && v("kind", m.kind, kTableKinds) &&
           v("clock", m.clock) && v("slowest_clock", m.slowest_clock) &&
           v("staleness", m.staleness) && v("dtype", m.dtype, kDTypes) &&
           v("keys", m.keys, UpTo(kKeysPerRequestMax)) &&
           v("elements", m.elements, UpTo(kTableElementsMax)) &&
           v("provisional", m.provisional,
             Range{}.When(m.result.ok() && HasPush(m.op), "with a push that was accepted")) &&
           v("coded", m.coded,
             Range{}.When(m.has_values() && m.kind == TableKind::kDense,
                          "with values of a dense block")) &&
           v("parts", m.parts,
             Count{.max = kReplyPartsMax,
                   .applies = m.coded,
                   .when = "if `coded`",
                   .left_out = true}) &&
           v("version", m.version, Range{}.When(m.has_values(), "with values")) &&
           v("updates", m.updates, Range{}.When(m.has_values(), "with values")) &&
           v("digest", m.digest, Range{}.When(m.has_values(), "with values"));
  }
};

// The Reply that `ack` of `acks` stands for, as far as it has fields.
inline Reply ReplyOf(const PushAcks& acks, const PushAck& ack) {
  Reply reply;
  reply.id = {.incarnation = acks.incarnation,
              .sequence = ack.sequence,
              .worker = acks.worker,
              .shard = ack.shard};
  reply.provisional = ack.provisional;
  return reply;
}

// The last request of a worker to one shard and request class before a tick.
struct ShardWatermark {
  std::uint64_t sequence = 0;
  std::uint32_t shard = 0;
  bool held = false;  // of the class of BSP tables; each class has its own watermark
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("sequence", m.sequence) && v("shard", m.shard, kShard) && v("held", m.held);
  }
  friend bool operator==(const ShardWatermark&, const ShardWatermark&) = default;
};
struct ClockTick {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;
  std::uint64_t clock = 0;
  std::vector<ShardWatermark> watermarks = {};
  std::uint64_t since = 0;  // the first iteration that it takes part in
  static bool Fields(auto& v, auto& m) {
    return v("worker", m.worker, kWorkerRank) && v("incarnation", m.incarnation) &&
           v("epoch", m.epoch) && v("clock", m.clock) &&
           v("watermarks", m.watermarks, Count{0, 2 * kShardsMax}) &&
           v("since", m.since, UpTo(m.clock, "up to `clock`"));
  }
};
struct ClockAck {
  std::uint64_t clock = 0;
  std::uint64_t stable = 0;  // clocks below it have closed and are on all replicas
  std::uint64_t epoch = 0;   // the thread's; `clock` and `stable` are of the shards it heads in it
  static bool Fields(auto& v, auto& m) {
    return v("clock", m.clock) && v("stable", m.stable) && v("epoch", m.epoch);
  }
};
// A worker that joins late asks the shards of a data thread to wait for it from here on.
struct EnterClock {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;
  static bool Fields(auto& v, auto& m) {
    return v("worker", m.worker, kWorkerRank) && v("incarnation", m.incarnation) &&
           v("epoch", m.epoch);
  }
};
struct EnterClockReply {
  std::uint64_t clock = 0;  // its first clock at this thread
  std::uint64_t epoch = 0;  // the thread's
  static bool Fields(auto& v, auto& m) { return v("clock", m.clock) && v("epoch", m.epoch); }
};

struct Call {
  std::uint64_t request = 0;
  std::string handler = {};
  static bool Fields(auto& v, auto& m) {
    return v("request", m.request) && v("handler", m.handler, kName);
  }
};  // payload: 1 to kCallFramesMax frames, the request
// The handler of every server that answers with nothing, for a worker that measures its link.
inline constexpr char kProbeHandler[] = "leeway.probe";
struct CallReply {
  std::uint64_t request = 0;
  absl::Status result = {};
  static bool Fields(auto& v, auto& m) { return v("request", m.request) && v(m.result); }
};  // payload: 1 to kCallFramesMax frames, the answer
struct StatusRequest {
  std::uint64_t request = 0;
  static bool Fields(auto& v, auto& m) { return v("request", m.request); }
};
struct StatusReply {
  std::uint64_t request = 0;
  static bool Fields(auto& v, auto& m) { return v("request", m.request); }
};  // payload: JSON

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_DATA_MESSAGES_H_
