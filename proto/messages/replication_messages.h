// The messages of servers that keep the replicas of a shard equal and hand shards over.
// docs/fault-tolerance.md has the protocol.
#ifndef LEEWAY_PROTO_MESSAGES_REPLICATION_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_REPLICATION_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"
#include "proto/messages/fields.h"

namespace leeway::proto {

// A shard's record of one incarnation of a worker.
struct ClientSession {
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t clock = 0;  // iterations ended
  std::uint64_t since = 0;  // the clock it entered at; 0: it was there from the beginning
  // The highest number of a push that is part of the shard's state: of pushes applied at once (SSP,
  // ASP), and of pushes of closed clocks (BSP). With one number for both, a held push would count
  // as a repetition once a later one was applied at once.
  std::uint64_t admitted = 0;
  std::uint64_t admitted_held = 0;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("incarnation", m.incarnation) && v("clock", m.clock) && v("since", m.since) &&
           v("admitted", m.admitted) && v("admitted_held", m.admitted_held) &&
           v("rank", m.rank, kWorkerRank);
  }
  friend bool operator==(const ClientSession&, const ClientSession&) = default;
};

// Payload frames of rows: keys (sparse, ragged), widths (ragged), values. The values of a push have
// the table's type, those of an aggregate the type that it is computed in (ComputeType).
enum class LogEntryKind : std::uint8_t {
  kPush = 1,           // a push, applied at once; as a Request's push
  kUpdate = 2,         // BSP: the aggregate of one target, part of the Close that follows
  kClose = 3,          // BSP: a clock has closed; `workers`
  kEnter = 4,          // a worker has entered late; `workers` has that one
  kTransferBegin = 5,  // the state at `index` follows; `clock` is the first not closed; `workers`
  kTransferPiece = 6,  // rows, their state (ComputeType) and steps (uint64: of each, or the block)
  kTransferEnd = 7,    // the end of the state
  kHeld = 8,           // handover: a push of a clock that has not closed; as kPush
  kHandoverEnd = 9,    // handover: its end; `workers`
  kVersion = 10,  // a new version of a dense block is made for workers (ps/store/dense/versions.h)
  kRefusal = 11,  // a push was refused; `refusals` has that one
  kConfirm = 12,  // no change; a replica that takes it followed this head when it was logged
  kCollected = 13,  // what is collected for a target is applied, in `clock`
  kEffect = 14,     // a handler's update of one target, part of the Call that follows; as kPush
  kCall = 15,       // a handler was called and has answered; payload: the answer
  kAnswer = 16,     // state transfer: an answer that is kept; payload: the answer
  kPublish = 17,    // a table is frozen for a publication, whose number is `version`
  kPublishedBlock = 18,  // state transfer: a dense block, as it is frozen for that publication
  kPublishedAsIs =
      19,  // likewise, as it is in the state; not `whole`: none, but the publication is
};

// Whether an entry is a part of the one that follows it, has its index and takes effect with it.
constexpr bool IsPartOfNext(LogEntryKind kind) {
  return kind == LogEntryKind::kUpdate || kind == LogEntryKind::kEffect;
}

// The fields of each kind of entry; fields that a kind does not have are 0.
struct LogEntryTraits {
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
  bool publication = false;  // its number
  std::size_t refusals_min = 0, refusals_max = 0;
};

constexpr LogEntryTraits TraitsOf(LogEntryKind kind) {
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
    case LogEntryKind::kEffect:
      return {.target = true, .rate = true, .index = true, .settings = true};
    case LogEntryKind::kCall:
      return {.push = true, .index = true};
    case LogEntryKind::kAnswer:
      return {.push = true};
    case LogEntryKind::kPublish:
      return {.index = true, .block_alone = true, .publication = true};
    case LogEntryKind::kPublishedBlock:
      return {.target = true, .publication = true};
    case LogEntryKind::kPublishedAsIs:
      return {.block_alone = true, .encodes = true, .publication = true};
  }
  return {};
}

// A push that the head refused. Every later head has to give the same answer, also if later pushes
// of the worker have been applied since.
struct Refusal {
  std::uint32_t worker = 0;  // of the push: rank, incarnation, number
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  bool held = false;          // to a table whose pushes are held (BSP)
  bool with_earlier = false;  // it is no longer known whether earlier pushes were refused
  absl::Status status =
      absl::UnknownError("");  // not OK; its text is cut to kRefusalReasonBytesMax
  static bool Fields(auto& v, auto& m) {
    return v("incarnation", m.incarnation) && v("sequence", m.sequence, AtLeast(1)) &&
           v("worker", m.worker, kWorkerRank) && v("held", m.held) &&
           v("with_earlier", m.with_earlier) &&
           v(m.status, Result{.error = true, .reason_max = kRefusalReasonBytesMax});
  }
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// Of a table whose clocks a count of workers closes: those below `closed` have closed.
struct TableClock {
  std::uint32_t table = 0;
  std::uint64_t closed = 0;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("closed", m.closed) && v("table", m.table, Range{.min = 1, .max = kTableIdMax});
  }
  friend bool operator==(const TableClock&, const TableClock&) = default;
};

// One entry of the stream of a shard between two replicas. The entries of a stream count 1, 2, 3,
// …; log entries (kPush, kClose and the kUpdates before it, kCall and the kEffects before it,
// kEnter, kVersion, kRefusal, kConfirm, kCollected, kPublish) carry their index in the shard's log,
// which counts from 1 as well. Fields that a kind does not have are 0; Decode checks that.
struct Replicate {
  std::uint32_t shard = 0;
  std::uint64_t epoch = 0;   // the sender's
  std::uint64_t stream = 0;  // a new stream replaces an older one
  std::uint64_t entry = 0;
  LogEntryKind kind = LogEntryKind::kPush;
  std::uint64_t index = 0;
  // kPush, kHeld: the push. kCall, kAnswer: the call.
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  // kPush, kUpdate, kEffect, kTransferPiece, kHeld: the target of the change.
  std::uint32_t table = 0;
  TableKind table_kind = TableKind::kDense;
  DType dtype = DType::kFloat32;
  std::uint64_t clock = 0;        // of any kind
  std::uint64_t block = 0;        // dense
  std::uint64_t keys = 0;         // sparse, ragged: rows
  std::uint64_t elements = 0;     // in the values frame
  std::uint32_t state_slots = 0;  // kTransferPiece: the state frame has state_slots × elements
  // kPush, kUpdate, kEffect, kHeld: optional.
  bool has_learning_rate = false;
  double learning_rate = 0;
  // kClose, kEnter, kTransferBegin, kHandoverEnd. By rank, then incarnation; none twice.
  std::vector<ClientSession> workers = {};
  // kRefusal: one. kTransferBegin: the remembered ones of all workers, in the order of sequences.
  std::vector<Refusal> refusals = {};
  // kTransferBegin: pushes that were applied at once are of clocks below it.
  std::uint64_t pushed_until = 0;
  // kPush, kHeld: as in Request. kUpdate, kVersion: of the message to workers that is made then.
  std::uint32_t codec = 0;
  // kTransferPiece of a dense block: the version that workers hold of it. Of a table with weights:
  // the updates that the staleness of its pushes is counted in. kPublish: the publication.
  std::uint64_t version = 0;
  // kUpdate, kVersion: workers get the block itself instead of its difference. kPublishedBlock:
  // above.
  bool whole = false;
  // kPush: what it is multiplied by, and whether it is collected instead of applied.
  double weight = 1;
  bool collected = false;
  // kCollected: what the sum is divided by; 0: nothing is applied, and the table's clocks up to
  // `clock` have closed. kTransferPiece of what is collected: how many pushes.
  std::uint32_t mean_of = 0;
  std::uint32_t pushes = 0;
  // kPush, kUpdate, kCollected, kEffect: the TableSettings::number that it is applied with.
  std::uint32_t table_settings = 0;
  // Log entries, kTransferBegin, kHandoverEnd: the newest map that its maker, or whoever told that
  // of workers, had.
  std::uint64_t map_version = 0;
  // kTransferBegin: by table, none twice.
  std::vector<TableClock> closed_of = {};
  std::uint64_t settled = 0;  // kCall: as in Request

  LogEntryTraits has() const { return TraitsOf(kind); }
  static bool Fields(auto& v, auto& m) {
    if (!(v.InOrder() && v("shard", m.shard, kShard) && v("epoch", m.epoch, AtLeast(1)) &&
          v("stream", m.stream) && v("entry", m.entry, AtLeast(1)) &&
          v("kind", m.kind, FromTo(LogEntryKind::kPush, LogEntryKind::kPublishedAsIs)))) {
      return false;
    }
    return PushFields(v, m, m.has()) && StateFields(v, m, m.has());
  }
  static bool PushFields(auto& v, auto& m, const LogEntryTraits& has) {
    const bool place = has.target || has.block_alone;
    return v("index", m.index, AtLeast(has.index, "at least 1 of an entry of the log")) &&
           v("worker", m.worker, kWorkerRank.When(has.push, "of a push")) &&
           v("incarnation", m.incarnation, Range{}.When(has.push, "of a push")) &&
           v("sequence", m.sequence, AtLeast(1).When(has.push, "of a push")) &&
           v("table", m.table, AtLeast(1).When(place, "with a target")) &&
           v("table_kind", m.table_kind, kTableKinds.When(has.target, "with values")) &&
           v("dtype", m.dtype, kDTypes.When(has.target, "with values")) && v("clock", m.clock) &&
           v("block", m.block, Below(kTableElementsMax).When(place, "with a target")) &&
           v("keys", m.keys, UpTo(kKeysPerRequestMax).When(has.target, "with values")) &&
           v("elements", m.elements, UpTo(kTableElementsMax).When(has.target, "with values")) &&
           v("state_slots", m.state_slots, UpTo(kStateSlotsMax).When(has.state, "of a piece")) &&
           v.At(30) && v("pushes", m.pushes, Range{}.When(has.state, "of a piece")) &&
           RateFields(
               v, m, 18, 17,
               Range{}.When(has.rate || m.pushes != 0, "of a push, an update or collected pushes"));
  }
  static bool StateFields(auto& v, auto& m, const LogEntryTraits& has) {
    const bool push = m.kind == LogEntryKind::kPush;
    return v.At(19) &&
           v("workers", m.workers,
             Count{has.one_session, has.one_session ? 1 : kWorkersMax, "1 or any number"}.When(
                 has.sessions, "with workers")) &&
           v("pushed_until", m.pushed_until,
             Range{}.When(m.kind == LogEntryKind::kTransferBegin, "where a transfer begins")) &&
           v("codec", m.codec,
             Range{}.When(has.push || has.encodes, "of a push, an update or a version")) &&
           v("version", m.version,
             AtLeast(has.publication, "at least 1 of a publication")
                 .When(has.state || has.publication, "of a piece or a publication")) &&
           v("whole", m.whole, Range{}.When(has.encodes, "of an update or a version")) &&
           v("table_settings", m.table_settings,
             UpTo(kTableSettingsMax).When(has.settings, "where it is applied")) &&
           v("refusals", m.refusals,
             Count{.min = has.refusals_min,
                   .max = has.refusals_max,
                   .words = "1 of a refusal, up to 16384 where a transfer begins",
                   .left_out = true}) &&
           v("map_version", m.map_version,
             Range{}.When(has.index || has.sessions, "of an entry of the log, or with workers")) &&
           v("weight", m.weight,
             Fraction{.kind = Fraction::Kind::kNotNegative,
                      .applies = push,
                      .when = "of a push",
                      .unsaid = 1}) &&
           v("collected", m.collected, Range{}.When(push, "of a push")) &&
           v("mean_of", m.mean_of,
             Range{}.When(m.kind == LogEntryKind::kCollected, "of collected pushes")) &&
           v.At(31) &&
           v("closed_of", m.closed_of,
             Count{.max = kTablesMax, .left_out = true}.When(m.kind == LogEntryKind::kTransferBegin,
                                                             "where a transfer begins")) &&
           v("settled", m.settled, Range{}.When(m.kind == LogEntryKind::kCall, "of a call"));
  }
};

struct ReplicateAck {
  std::uint32_t shard = 0;
  std::uint64_t stream = 0;
  std::uint64_t entry = 0;      // this one and all before it have arrived
  std::uint64_t committed = 0;  // log index that the tail has applied
  // With entry 0: the receiver has forgotten all streams that began before that epoch.
  std::uint64_t since = 0;
  static bool Fields(auto& v, auto& m) {
    return v("shard", m.shard, kShard) && v("stream", m.stream) && v("entry", m.entry) &&
           v("committed", m.committed) && v("since", m.since);
  }
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_REPLICATION_MESSAGES_H_
