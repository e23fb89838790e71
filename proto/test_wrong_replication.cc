#include <cmath>
#include <utility>

#include "proto/limits.h"
#include "proto/test_wrong.h"

namespace leeway::proto {
namespace {

using Frames = std::vector<runtime::Buffer>;

// The payload of 4 elements of a float16 table, or 2 rows of them, with 2 state values each.
const runtime::Buffer& HalfValues() {
  static const auto& values = *new runtime::Buffer(FrameOf<std::uint16_t>({1, 2, 3, 4}));
  return values;
}
const runtime::Buffer& Sums() {
  static const auto& sums = *new runtime::Buffer(FrameOf<float>({1, 2, 3, 4}));
  return sums;
}
const runtime::Buffer& State() {
  static const auto& state = *new runtime::Buffer(FrameOf<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  return state;
}
const runtime::Buffer& Step() {
  static const auto& step = *new runtime::Buffer(FrameOf<std::uint64_t>({9}));
  return step;
}

// A good item of that kind, to spoil; that of a dense block, if it has a target.
Replicate GoodItem(ReplicaItem kind) {
  Replicate m{.epoch = 1, .item = 1, .kind = kind, .index = 1};
  if (kind == ReplicaItem::kPush || kind == ReplicaItem::kHeld) m.sequence = 1;
  if (kind == ReplicaItem::kEnter || kind == ReplicaItem::kClose) m.workers = {{.rank = 1}};
  if (kind == ReplicaItem::kFillPiece) m.state_slots = 2;
  if (m.sequence == 0 && kind != ReplicaItem::kUpdate && kind != ReplicaItem::kFillPiece) return m;
  m.table = 1;
  m.dtype = DType::kFloat16;
  m.elements = 4;
  return m;
}

Frames GoodFrames(ReplicaItem kind) {
  switch (kind) {
    case ReplicaItem::kPush:
    case ReplicaItem::kHeld:
      return {HalfValues()};
    case ReplicaItem::kUpdate:
      return {Sums()};
    case ReplicaItem::kFillPiece:
      return {HalfValues(), State(), Step()};
    default:
      return {};
  }
}

Sample ItemWith(ReplicaItem kind, void (*change)(Replicate&)) {
  return {With(GoodItem(kind), change), GoodFrames(kind)};
}
Sample ItemWith(ReplicaItem kind, Frames payload) { return {GoodItem(kind), std::move(payload)}; }

Sample RowsWith(ReplicaItem kind, TableKind table_kind, Frames payload, std::uint64_t elements = 4,
                std::uint64_t block = 0) {
  Replicate m = GoodItem(kind);
  m.table_kind = table_kind;
  m.block = block;
  m.keys = 2;
  m.elements = elements;
  return {m, std::move(payload)};
}

}  // namespace

std::vector<Wrong> WrongReplication() {
  return {
      {"ShardAbove", ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.shard = kShardsMax; }),
       "malformed Replicate: shard is 1048576, may be 0 to 1048575"},
      {"Epoch0", ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.epoch = 0; }),
       "malformed Replicate: epoch is 0, may be at least 1"},
      {"Item0", ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.item = 0; }),
       "malformed Replicate: item is 0, may be at least 1"},
      {"Kind0", ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.kind = ReplicaItem{0}; }),
       "malformed Replicate: kind is 0, may be 1 to 10"},
      {"Kind11", ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.kind = ReplicaItem{11}; }),
       "malformed Replicate: kind is 11, may be 1 to 10"},
      {"VersionOfNoTable", ItemWith(ReplicaItem::kVersion, [](Replicate&) {}),
       "malformed Replicate: table is 0, may be at least 1"},
      {"VersionBlock",
       ItemWith(ReplicaItem::kVersion,
                [](Replicate& m) { m.table = 1, m.block = kTableElementsMax; }),
       "malformed Replicate: block is 281474976710656, may be 0 to 281474976710655"},
      {"VersionElements",
       ItemWith(ReplicaItem::kVersion, [](Replicate& m) { m.table = 1, m.elements = 1; }),
       "malformed Replicate: elements is 1, may be 0"},
      {"CloseCodec", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.codec = 1; }),
       "malformed Replicate: codec is 1, may be 0"},
      {"PushWhole", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.whole = true; }),
       "malformed Replicate: whole is 1, may be 0"},
      {"PushVersion", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.version = 1; }),
       "malformed Replicate: version is 1, may be 0"},
      {"PushCodedLong", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.codec = 1; }),
       "malformed Replicate: encoded values are 8 bytes of payload, may be at least 1 and fewer "
       "than the 8 that they stand for"},
      {"PushIndex0", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.index = 0; }),
       "malformed Replicate: index is 0, may be at least 1"},
      {"UpdateIndex0", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.index = 0; }),
       "malformed Replicate: index is 0, may be at least 1"},
      {"CloseIndex0", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.index = 0; }),
       "malformed Replicate: index is 0, may be at least 1"},
      {"EnterIndex0", ItemWith(ReplicaItem::kEnter, [](Replicate& m) { m.index = 0; }),
       "malformed Replicate: index is 0, may be at least 1"},
      {"PushWorker", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.worker = kWorkersMax; }),
       "malformed Replicate: worker is 65536, may be 0 to 65535"},
      {"PushSequence0", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.sequence = 0; }),
       "malformed Replicate: sequence is 0, may be at least 1"},
      {"HeldWorker", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.worker = kWorkersMax; }),
       "malformed Replicate: worker is 65536, may be 0 to 65535"},
      {"HeldSequence0", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.sequence = 0; }),
       "malformed Replicate: sequence is 0, may be at least 1"},
      {"UpdateWithWorker", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.worker = 1; }),
       "malformed Replicate: worker is 1, may be 0"},
      {"UpdateWithIncarnation",
       ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.incarnation = 1; }),
       "malformed Replicate: incarnation is 1, may be 0"},
      {"UpdateWithSequence", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.sequence = 1; }),
       "malformed Replicate: sequence is 1, may be 0"},
      {"FillPieceWithWorker", ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.worker = 1; }),
       "malformed Replicate: worker is 1, may be 0"},
      {"FillPieceWithIncarnation",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.incarnation = 1; }),
       "malformed Replicate: incarnation is 1, may be 0"},
      {"FillPieceWithSequence",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.sequence = 1; }),
       "malformed Replicate: sequence is 1, may be 0"},
      {"CloseWithWorker", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.worker = 1; }),
       "malformed Replicate: worker is 1, may be 0"},
      {"CloseWithIncarnation",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.incarnation = 1; }),
       "malformed Replicate: incarnation is 1, may be 0"},
      {"CloseWithSequence", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.sequence = 1; }),
       "malformed Replicate: sequence is 1, may be 0"},
      {"PushTable0", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.table = 0; }),
       "malformed Replicate: table is 0, may be at least 1"},
      {"PushTableKind",
       ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.table_kind = TableKind{3}; }),
       "malformed Replicate: table_kind is 3, may be 0 to 2"},
      {"PushDType", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.dtype = DType{6}; }),
       "malformed Replicate: dtype is 6, may be 0 to 5"},
      {"PushBlock", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.block = kTableElementsMax; }),
       "malformed Replicate: block is 281474976710656, may be 0 to 281474976710655"},
      {"PushKeys",
       ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.keys = kKeysPerRequestMax + 1; }),
       "malformed Replicate: keys is 67108865, may be 0 to 67108864"},
      {"PushDenseKeys", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.keys = 1; }),
       "malformed Replicate: keys is 1, may be 0"},
      {"PushElements",
       ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.elements = kTableElementsMax + 1; }),
       "malformed Replicate: elements is 281474976710657, may be 0 to 281474976710656"},
      {"PushBlockElements",
       ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.elements = (128 << 20) + 1; }),
       "malformed Replicate: elements is 134217729, may be 1 to 134217728"},
      {"PushOfNothing", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.elements = 0; }),
       "malformed Replicate: elements is 0, may be 1 to 134217728"},
      {"PushShort", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.elements = 5; }),
       "malformed Replicate: values are 8 bytes of payload, may be 10 (5 of 2 bytes)"},
      {"PushWithWorkers", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.workers.resize(1); }),
       "malformed Replicate: number of workers is 1, may be 0"},
      {"PushWithoutPayload", Sample{GoodItem(ReplicaItem::kPush)},
       "malformed Replicate: number of payload frames is 0, may be 1"},
      {"PushState", ItemWith(ReplicaItem::kPush, [](Replicate& m) { m.state_slots = 1; }),
       "malformed Replicate: state_slots is 1, may be 0"},
      {"PushRateNaN",
       ItemWith(ReplicaItem::kPush,
                [](Replicate& m) { m.has_learning_rate = true, m.learning_rate = NAN; }),
       "malformed Replicate: learning_rate is nan, may be finite"},
      {"UpdateTable0", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.table = 0; }),
       "malformed Replicate: table is 0, may be at least 1"},
      {"UpdateTableKind",
       ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.table_kind = TableKind{3}; }),
       "malformed Replicate: table_kind is 3, may be 0 to 2"},
      {"UpdateDType", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.dtype = DType{6}; }),
       "malformed Replicate: dtype is 6, may be 0 to 5"},
      {"UpdateBlock",
       ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.block = kTableElementsMax; }),
       "malformed Replicate: block is 281474976710656, may be 0 to 281474976710655"},
      {"UpdateKeys",
       ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.keys = kKeysPerRequestMax + 1; }),
       "malformed Replicate: keys is 67108865, may be 0 to 67108864"},
      {"UpdateDenseKeys", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.keys = 1; }),
       "malformed Replicate: keys is 1, may be 0"},
      {"UpdateElements",
       ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.elements = kTableElementsMax + 1; }),
       "malformed Replicate: elements is 281474976710657, may be 0 to 281474976710656"},
      {"UpdateBlockElements",
       ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.elements = (128 << 20) + 1; }),
       "malformed Replicate: elements is 134217729, may be 1 to 134217728"},
      {"UpdateOfNothing", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.elements = 0; }),
       "malformed Replicate: elements is 0, may be 1 to 134217728"},
      {"UpdateShort", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.elements = 5; }),
       "malformed Replicate: values are 16 bytes of payload, may be 20 (5 of 4 bytes)"},
      {"UpdateWithWorkers",
       ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.workers.resize(1); }),
       "malformed Replicate: number of workers is 1, may be 0"},
      {"UpdateWithoutPayload", Sample{GoodItem(ReplicaItem::kUpdate)},
       "malformed Replicate: number of payload frames is 0, may be 1"},
      {"UpdateState", ItemWith(ReplicaItem::kUpdate, [](Replicate& m) { m.state_slots = 1; }),
       "malformed Replicate: state_slots is 1, may be 0"},
      {"UpdateRateNaN",
       ItemWith(ReplicaItem::kUpdate,
                [](Replicate& m) { m.has_learning_rate = true, m.learning_rate = NAN; }),
       "malformed Replicate: learning_rate is nan, may be finite"},
      {"FillPieceTable0", ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.table = 0; }),
       "malformed Replicate: table is 0, may be at least 1"},
      {"FillPieceTableKind",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.table_kind = TableKind{3}; }),
       "malformed Replicate: table_kind is 3, may be 0 to 2"},
      {"FillPieceDType",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.dtype = DType{6}; }),
       "malformed Replicate: dtype is 6, may be 0 to 5"},
      {"FillPieceBlock",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.block = kTableElementsMax; }),
       "malformed Replicate: block is 281474976710656, may be 0 to 281474976710655"},
      {"FillPieceKeys",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.keys = kKeysPerRequestMax + 1; }),
       "malformed Replicate: keys is 67108865, may be 0 to 67108864"},
      {"FillPieceDenseKeys", ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.keys = 1; }),
       "malformed Replicate: keys is 1, may be 0"},
      {"FillPieceElements",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.elements = kTableElementsMax + 1; }),
       "malformed Replicate: elements is 281474976710657, may be 0 to 281474976710656"},
      {"FillPieceBlockElements",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.elements = (128 << 20) + 1; }),
       "malformed Replicate: elements is 134217729, may be 1 to 134217728"},
      {"FillPieceOfNothing",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.elements = 0; }),
       "malformed Replicate: elements is 0, may be 1 to 134217728"},
      {"FillPieceShort", ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.elements = 5; }),
       "malformed Replicate: values are 8 bytes of payload, may be 10 (5 of 2 bytes)"},
      {"FillPieceWithWorkers",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.workers.resize(1); }),
       "malformed Replicate: number of workers is 1, may be 0"},
      {"FillPieceWithoutPayload", Sample{GoodItem(ReplicaItem::kFillPiece)},
       "malformed Replicate: number of payload frames is 0, may be 3"},
      {"HeldTable0", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.table = 0; }),
       "malformed Replicate: table is 0, may be at least 1"},
      {"HeldTableKind",
       ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.table_kind = TableKind{3}; }),
       "malformed Replicate: table_kind is 3, may be 0 to 2"},
      {"HeldDType", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.dtype = DType{6}; }),
       "malformed Replicate: dtype is 6, may be 0 to 5"},
      {"HeldBlock", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.block = kTableElementsMax; }),
       "malformed Replicate: block is 281474976710656, may be 0 to 281474976710655"},
      {"HeldKeys",
       ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.keys = kKeysPerRequestMax + 1; }),
       "malformed Replicate: keys is 67108865, may be 0 to 67108864"},
      {"HeldDenseKeys", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.keys = 1; }),
       "malformed Replicate: keys is 1, may be 0"},
      {"HeldElements",
       ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.elements = kTableElementsMax + 1; }),
       "malformed Replicate: elements is 281474976710657, may be 0 to 281474976710656"},
      {"HeldBlockElements",
       ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.elements = (128 << 20) + 1; }),
       "malformed Replicate: elements is 134217729, may be 1 to 134217728"},
      {"HeldOfNothing", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.elements = 0; }),
       "malformed Replicate: elements is 0, may be 1 to 134217728"},
      {"HeldShort", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.elements = 5; }),
       "malformed Replicate: values are 8 bytes of payload, may be 10 (5 of 2 bytes)"},
      {"HeldWithWorkers", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.workers.resize(1); }),
       "malformed Replicate: number of workers is 1, may be 0"},
      {"HeldWithoutPayload", Sample{GoodItem(ReplicaItem::kHeld)},
       "malformed Replicate: number of payload frames is 0, may be 1"},
      {"HeldState", ItemWith(ReplicaItem::kHeld, [](Replicate& m) { m.state_slots = 1; }),
       "malformed Replicate: state_slots is 1, may be 0"},
      {"HeldRateNaN",
       ItemWith(ReplicaItem::kHeld,
                [](Replicate& m) { m.has_learning_rate = true, m.learning_rate = NAN; }),
       "malformed Replicate: learning_rate is nan, may be finite"},
      {"CloseWithTable", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.table = 1; }),
       "malformed Replicate: table is 1, may be 0"},
      {"CloseWithElements", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.elements = 1; }),
       "malformed Replicate: elements is 1, may be 0"},
      {"CloseWithRate",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.has_learning_rate = true; }),
       "malformed Replicate: has_learning_rate is 1, may be 0"},
      {"CloseWithPayload", Sample{GoodItem(ReplicaItem::kClose), {HalfValues()}},
       "malformed Replicate: number of payload frames is 1, may be 0"},
      {"EnterWithTable", ItemWith(ReplicaItem::kEnter, [](Replicate& m) { m.table = 1; }),
       "malformed Replicate: table is 1, may be 0"},
      {"EnterWithElements", ItemWith(ReplicaItem::kEnter, [](Replicate& m) { m.elements = 1; }),
       "malformed Replicate: elements is 1, may be 0"},
      {"EnterWithRate",
       ItemWith(ReplicaItem::kEnter, [](Replicate& m) { m.has_learning_rate = true; }),
       "malformed Replicate: has_learning_rate is 1, may be 0"},
      {"EnterWithPayload", Sample{GoodItem(ReplicaItem::kEnter), {HalfValues()}},
       "malformed Replicate: number of payload frames is 1, may be 0"},
      {"FillBeginWithTable", ItemWith(ReplicaItem::kFillBegin, [](Replicate& m) { m.table = 1; }),
       "malformed Replicate: table is 1, may be 0"},
      {"FillBeginWithElements",
       ItemWith(ReplicaItem::kFillBegin, [](Replicate& m) { m.elements = 1; }),
       "malformed Replicate: elements is 1, may be 0"},
      {"FillBeginWithRate",
       ItemWith(ReplicaItem::kFillBegin, [](Replicate& m) { m.has_learning_rate = true; }),
       "malformed Replicate: has_learning_rate is 1, may be 0"},
      {"FillBeginWithPayload", Sample{GoodItem(ReplicaItem::kFillBegin), {HalfValues()}},
       "malformed Replicate: number of payload frames is 1, may be 0"},
      {"FillEndWithPushes",
       ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.pushed_until = 1; }),
       "malformed Replicate: pushed_until is 1, may be 0"},
      {"FillEndWithTable", ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.table = 1; }),
       "malformed Replicate: table is 1, may be 0"},
      {"FillEndWithElements", ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.elements = 1; }),
       "malformed Replicate: elements is 1, may be 0"},
      {"FillEndWithRate",
       ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.has_learning_rate = true; }),
       "malformed Replicate: has_learning_rate is 1, may be 0"},
      {"FillEndWithPayload", Sample{GoodItem(ReplicaItem::kFillEnd), {HalfValues()}},
       "malformed Replicate: number of payload frames is 1, may be 0"},
      {"HandoverEndWithTable",
       ItemWith(ReplicaItem::kHandoverEnd, [](Replicate& m) { m.table = 1; }),
       "malformed Replicate: table is 1, may be 0"},
      {"HandoverEndWithElements",
       ItemWith(ReplicaItem::kHandoverEnd, [](Replicate& m) { m.elements = 1; }),
       "malformed Replicate: elements is 1, may be 0"},
      {"HandoverEndWithRate",
       ItemWith(ReplicaItem::kHandoverEnd, [](Replicate& m) { m.has_learning_rate = true; }),
       "malformed Replicate: has_learning_rate is 1, may be 0"},
      {"HandoverEndWithPayload", Sample{GoodItem(ReplicaItem::kHandoverEnd), {HalfValues()}},
       "malformed Replicate: number of payload frames is 1, may be 0"},
      {"CloseWithtablekind",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.table_kind = TableKind::kSparse; }),
       "malformed Replicate: table_kind is 1, may be 0"},
      {"CloseWithdtype",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.dtype = DType::kFloat64; }),
       "malformed Replicate: dtype is 1, may be 0"},
      {"CloseWithblock", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.block = 1; }),
       "malformed Replicate: block is 1, may be 0"},
      {"CloseWithkeys", ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.keys = 1; }),
       "malformed Replicate: keys is 1, may be 0"},
      {"CloseWithstateslots",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.state_slots = 1; }),
       "malformed Replicate: state_slots is 1, may be 0"},
      {"FillPieceWithRate",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.has_learning_rate = true; }),
       "malformed Replicate: has_learning_rate is 1, may be 0"},
      {"FillPieceState",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.state_slots = kStateSlotsMax + 1; }),
       "malformed Replicate: state_slots is 17, may be 0 to 16"},
      {"FillPieceShortState",
       ItemWith(ReplicaItem::kFillPiece, [](Replicate& m) { m.state_slots = 3; }),
       "malformed Replicate: state are 32 bytes of payload, may be 48 (12 of 4 bytes)"},
      {"FillPieceSteps", ItemWith(ReplicaItem::kFillPiece, {HalfValues(), State(), TwoKeys()}),
       "malformed Replicate: steps are 16 bytes of payload, may be 8 (1 of 8 bytes)"},
      {"FillPieceWithoutSteps", ItemWith(ReplicaItem::kFillPiece, {HalfValues(), State()}),
       "malformed Replicate: number of payload frames is 2, may be 3"},
      {"FillPieceRowsSteps",
       RowsWith(ReplicaItem::kFillPiece, TableKind::kSparse,
                {TwoKeys(), HalfValues(), State(), Step()}),
       "malformed Replicate: steps are 8 bytes of payload, may be 16 (2 of 8 bytes)"},
      {"FillPieceRaggedFrames",
       RowsWith(ReplicaItem::kFillPiece, TableKind::kRagged,
                {TwoKeys(), HalfValues(), State(), TwoKeys()}),
       "malformed Replicate: number of payload frames is 4, may be 5"},
      {"FillPieceRaggedSum",
       RowsWith(ReplicaItem::kFillPiece, TableKind::kRagged,
                {TwoKeys(), FrameOf<std::uint32_t>({1, 2}), HalfValues(), State(), TwoKeys()}),
       "malformed Replicate: elements are 4, widths add up to 3"},
      {"UpdateNotInComputeType", ItemWith(ReplicaItem::kUpdate, {HalfValues()}),
       "malformed Replicate: values are 8 bytes of payload, may be 16 (4 of 4 bytes)"},
      {"UpdateRowsUneven",
       RowsWith(ReplicaItem::kUpdate, TableKind::kSparse, {TwoKeys(), Sums()}, 3),
       "malformed Replicate: elements are 3, may be 1 to 16777216 for each of 2 keys"},
      {"UpdateRaggedWidth",
       RowsWith(ReplicaItem::kUpdate, TableKind::kRagged,
                {TwoKeys(), FrameOf<std::uint32_t>({5, ~0u}), Sums()}),
       "malformed Replicate: width is 4294967295, may be 0 to 16777216"},
      {"PushRowsKeys", RowsWith(ReplicaItem::kPush, TableKind::kSparse, {Step(), HalfValues()}),
       "malformed Replicate: keys are 8 bytes of payload, may be 16 (2 of 8 bytes)"},
      {"PushRowsBlock",
       RowsWith(ReplicaItem::kPush, TableKind::kSparse, {TwoKeys(), HalfValues()}, 4, 1),
       "malformed Replicate: block is 1, may be 0"},
      {"EnterNobody", ItemWith(ReplicaItem::kEnter, [](Replicate& m) { m.workers.clear(); }),
       "malformed Replicate: number of workers is 0, may be 1"},
      {"EnterTwo", ItemWith(ReplicaItem::kEnter, [](Replicate& m) { m.workers.resize(2); }),
       "malformed Replicate: number of workers is 2, may be 1"},
      {"CloseManyWorkers",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.workers.resize(kWorkersMax + 1); }),
       "malformed Replicate: number of workers is 65537, may be 0 to 65536"},
      {"CloseWorkerRank",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.workers[0].rank = kWorkersMax; }),
       "malformed Replicate: worker's rank is 65536, may be 0 to 65535"},
      {"CloseWorkerTwice",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.workers.push_back(m.workers[0]); }),
       "malformed Replicate: worker 1 of incarnation 0 comes after worker 1 of incarnation 0, may "
       "come in ascending order"},
      {"CloseWorkersOutOfOrder",
       ItemWith(ReplicaItem::kClose, [](Replicate& m) { m.workers.push_back({}); }),
       "malformed Replicate: worker 0 of incarnation 0 comes after worker 1 of incarnation 0"},
      {"FillEndWithWorkers",
       ItemWith(ReplicaItem::kFillEnd, [](Replicate& m) { m.workers.resize(1); }),
       "malformed Replicate: number of workers is 1, may be 0"},
  };
}

}  // namespace leeway::proto
