#include <cmath>
#include <utility>

#include "proto/messages/limits.h"
#include "proto/testing/wrong.h"

namespace leeway::proto {
namespace {

// A valid request or reply of that kind, to be changed by the caller.
Request NewRequest(TableKind kind, Op op) {
  Request m{.id = {.sequence = 1}, .table = 1, .kind = kind, .op = op};
  m.keys = kind == TableKind::kDense ? 0 : 2;
  m.elements = kind == TableKind::kDense || HasPush(op) ? 4 : 0;
  return m;
}

Reply NewReply(TableKind kind) {
  Reply m{.id = {.sequence = 1}, .op = Op::kPull, .kind = kind};
  m.keys = kind == TableKind::kDense ? 0 : 2;
  m.elements = 4;
  return m;
}

const runtime::Buffer& Widths() {
  static const auto& widths = *new runtime::Buffer(FrameOf<std::uint32_t>({1, 3}));
  return widths;
}
const runtime::Buffer& Values() {
  static const auto& values = *new runtime::Buffer(FrameOf<float>({1, 2, 3, 4}));
  return values;
}

using Frames = std::vector<runtime::Buffer>;

Sample DensePush(void (*change)(Request&), Frames payload = {Values()}) {
  return {With(NewRequest(TableKind::kDense, Op::kPush), change), std::move(payload)};
}
Sample SparsePush(void (*change)(Request&), Frames payload = {TwoKeys(), Values()}) {
  return {With(NewRequest(TableKind::kSparse, Op::kPush), change), std::move(payload)};
}
Sample RaggedPush(void (*change)(Request&), Frames payload = {TwoKeys(), Widths(), Values()}) {
  return {With(NewRequest(TableKind::kRagged, Op::kPush), change), std::move(payload)};
}
void NoChange(Request&) {}
void NoReplyChange(Reply&) {}

Sample ReplyWith(TableKind kind, void (*change)(Reply&), Frames payload) {
  return {With(NewReply(kind), change), std::move(payload)};
}

}  // namespace

std::vector<Wrong> WrongRequests() {
  return {
      {"Sequence0", DensePush([](Request& m) { m.id.sequence = 0; }),
       "malformed Request: id.sequence is 0, may be at least 1"},
      {"Worker", DensePush([](Request& m) { m.id.worker = kWorkersMax; }),
       "malformed Request: id.worker is 65536, may be 0 to 65535"},
      {"Shard", DensePush([](Request& m) { m.id.shard = kShardsMax; }),
       "malformed Request: id.shard is 1048576, may be 0 to 1048575"},
      {"Table0", DensePush([](Request& m) { m.table = 0; }),
       "malformed Request: table is 0, may be at least 1"},
      {"Kind", DensePush([](Request& m) { m.kind = static_cast<TableKind>(3); }),
       "malformed Request: kind is 3, may be 0 to 2"},
      {"Op0", DensePush([](Request& m) { m.op = static_cast<Op>(0); }),
       "malformed Request: op is 0, may be 1 to 3"},
      {"Op4", DensePush([](Request& m) { m.op = static_cast<Op>(4); }),
       "malformed Request: op is 4, may be 1 to 3"},
      {"DType", DensePush([](Request& m) { m.dtype = static_cast<DType>(6); }),
       "malformed Request: dtype is 6, may be 0 to 5"},
      {"Timeout", DensePush([](Request& m) { m.timeout_ms = 1ull << 63; }),
       "malformed Request: timeout_ms is 9223372036854775808, may be 0 to 9223372036854775807"},
      {"RateNaN", DensePush([](Request& m) { m.has_learning_rate = true, m.learning_rate = NAN; }),
       "malformed Request: learning_rate is nan, may be finite"},
      {"RateInfinite",
       DensePush([](Request& m) { m.has_learning_rate = true, m.learning_rate = -HUGE_VAL; }),
       "malformed Request: learning_rate is -inf, may be finite"},
      {"AfterItself", DensePush([](Request& m) { m.after = 1; }),
       "malformed Request: after is 1, may be 0"},
      {"AfterALaterOne", DensePush([](Request& m) { m.id.sequence = 7, m.after = ~0ull; }),
       "malformed Request: after is 18446744073709551615, may be 0 to 6"},
      {"DenseBlock", DensePush([](Request& m) { m.block = kTableElementsMax; }),
       "malformed Request: block is 281474976710656, may be 0 to 281474976710655"},
      {"DenseKeys", DensePush([](Request& m) { m.keys = 1; }),
       "malformed Request: keys is 1, may be 0"},
      {"DensePushOfNothing", DensePush([](Request& m) { m.elements = 0; }, {runtime::Buffer()}),
       "malformed Request: elements is 0, may be 1 to 67108864"},
      {"DensePullOfNothing", DensePush([](Request& m) { m.op = Op::kPull, m.elements = 0; }, {}),
       "malformed Request: elements is 0, may be 1 to 67108864"},
      {"DenseElementsAbove", DensePush([](Request& m) { m.elements = (64 << 20) + 1; }),
       "malformed Request: elements is 67108865, may be 1 to 67108864"},
      {"DenseWithoutValues", DensePush(NoChange, {}),
       "malformed Request: number of payload frames is 0, may be 1"},
      {"DenseFrameTooMany", DensePush(NoChange, {Values(), Values()}),
       "malformed Request: number of payload frames is 2, may be 1"},
      {"DensePullWithValues", DensePush([](Request& m) { m.op = Op::kPull; }),
       "malformed Request: number of payload frames is 1, may be 0"},
      {"DenseShort", DensePush([](Request& m) { m.elements = 5; }),
       "malformed Request: values are 16 bytes of payload, may be 20 (5 of 4 bytes)"},
      {"DenseLong", DensePush([](Request& m) { m.elements = 3; }),
       "malformed Request: values are 16 bytes of payload, may be 12 (3 of 4 bytes)"},
      {"DenseOtherWidth", DensePush([](Request& m) { m.dtype = DType::kFloat64; }),
       "malformed Request: values are 16 bytes of payload, may be 32 (4 of 8 bytes)"},
      {"DenseOddBytes", DensePush(NoChange, {FrameOf<char>(std::vector<char>(17))}),
       "malformed Request: values are 17 bytes of payload, may be 16 (4 of 4 bytes)"},
      {"CodedLong", DensePush([](Request& m) { m.codec = 1; }),
       "malformed Request: encoded values are 16 bytes of payload, may be at least 1 and fewer "
       "than "
       "the 16 that they stand for"},
      {"CodedEmpty", DensePush([](Request& m) { m.codec = 1; }, {runtime::Buffer()}),
       "malformed Request: encoded values are 0 bytes of payload, may be at least 1 and fewer than "
       "the 16 that they stand for"},
      {"CodecOfAPull", DensePush([](Request& m) { m.op = Op::kPull, m.codec = 1; }, {}),
       "malformed Request: codec is 1, may be 0"},
      {"HaveOfAPush", DensePush([](Request& m) { m.have = 1; }),
       "malformed Request: have is 1, may be 0"},
      {"HaveOfRows", SparsePush([](Request& m) { m.op = Op::kPushPull, m.have = 1; }),
       "malformed Request: have is 1, may be 0"},
      {"SparseBlock", SparsePush([](Request& m) { m.block = 1; }),
       "malformed Request: block is 1, may be 0"},
      {"SparseKeysAbove", SparsePush([](Request& m) { m.keys = kKeysPerRequestMax + 1; }),
       "malformed Request: keys is 67108865, may be 0 to 67108864"},
      {"ElementsAbove", SparsePush([](Request& m) { m.elements = kTableElementsMax + 1; }),
       "malformed Request: elements is 281474976710657, may be 0 to 281474976710656"},
      {"SparseBytesOverflow", SparsePush([](Request& m) { m.elements = (1ull << 62) + 4; }),
       "malformed Request: elements is 4611686018427387908, may be 0 to 281474976710656"},
      {"SparseUneven", SparsePush([](Request& m) { m.elements = 3; }),
       "malformed Request: elements are 3, may be 1 to 16777216 for each of 2 keys"},
      {"SparseRowsEmpty",
       SparsePush([](Request& m) { m.elements = 0; }, {TwoKeys(), runtime::Buffer()}),
       "malformed Request: elements are 0, may be 1 to 16777216 for each of 2 keys"},
      {"SparseRowAbove", SparsePush([](Request& m) { m.elements = 2 * (kRowWidthMax + 1); }),
       "malformed Request: elements are 33554434, may be 1 to 16777216 for each of 2 keys"},
      {"SparseValuesWithoutKeys",
       SparsePush([](Request& m) { m.keys = 0; }, {runtime::Buffer(), Values()}),
       "malformed Request: elements is 4, may be 0"},
      {"SparsePullElements", SparsePush([](Request& m) { m.op = Op::kPull; }, {TwoKeys()}),
       "malformed Request: elements is 4, may be 0"},
      {"SparseWithoutKeysFrame", SparsePush(NoChange, {Values()}),
       "malformed Request: number of payload frames is 1, may be 2"},
      {"SparseKeysFrame", SparsePush(NoChange, {Widths(), Values()}),
       "malformed Request: keys are 8 bytes of payload, may be 16 (2 of 8 bytes)"},
      {"SparseValuesFrame", SparsePush(NoChange, {TwoKeys(), Widths()}),
       "malformed Request: values are 8 bytes of payload, may be 16 (4 of 4 bytes)"},
      {"RaggedWithoutWidths", RaggedPush(NoChange, {TwoKeys(), Values()}),
       "malformed Request: number of payload frames is 2, may be 3"},
      {"RaggedWidthsFrame", RaggedPush(NoChange, {TwoKeys(), TwoKeys(), Values()}),
       "malformed Request: widths are 16 bytes of payload, may be 8 (2 of 4 bytes)"},
      {"RaggedSum", RaggedPush(NoChange, {TwoKeys(), FrameOf<std::uint32_t>({1, 2}), Values()}),
       "malformed Request: elements are 4, widths add up to 3"},
      {"RaggedWidthAbove",
       RaggedPush(NoChange, {TwoKeys(), FrameOf<std::uint32_t>({5, ~0u}), Values()}),
       "malformed Request: width is 4294967295, may be 0 to 16777216"},
      {"RaggedPullElements", RaggedPush([](Request& m) { m.op = Op::kPull; }, {TwoKeys()}),
       "malformed Request: elements is 4, may be 0"},
      {"RaggedPullWidths",
       RaggedPush([](Request& m) { m.op = Op::kPull, m.elements = 0; }, {TwoKeys(), Widths()}),
       "malformed Request: number of payload frames is 2, may be 1"},
  };
}

std::vector<Wrong> WrongReplies() {
  constexpr TableKind kDense = TableKind::kDense, kSparse = TableKind::kSparse,
                      kRagged = TableKind::kRagged;
  return {
      {"Sequence0", ReplyWith(kDense, [](Reply& m) { m.id.sequence = 0; }, {Values()}),
       "malformed Reply: id.sequence is 0, may be at least 1"},
      {"Op", ReplyWith(kDense, [](Reply& m) { m.op = static_cast<Op>(4); }, {}),
       "malformed Reply: op is 4, may be 1 to 3"},
      {"Kind", ReplyWith(kDense, [](Reply& m) { m.kind = static_cast<TableKind>(9); }, {}),
       "malformed Reply: kind is 9, may be 0 to 2"},
      {"DType", ReplyWith(kDense, [](Reply& m) { m.dtype = static_cast<DType>(6); }, {}),
       "malformed Reply: dtype is 6, may be 0 to 5"},
      {"Keys", ReplyWith(kSparse, [](Reply& m) { m.keys = ~0ull; }, {Values()}),
       "malformed Reply: keys is 18446744073709551615, may be 0 to 67108864"},
      {"Elements", ReplyWith(kSparse, [](Reply& m) { m.elements = ~0ull; }, {Values()}),
       "malformed Reply: elements is 18446744073709551615, may be 0 to 281474976710656"},
      {"PartsOfAPlainReply",
       ReplyWith(kDense, [](Reply& m) { m.parts = {{.bytes = 16}}; }, {Values()}),
       "malformed Reply: number of parts is 1, may be 0"},
      {"CodedRows", ReplyWith(kSparse, [](Reply& m) { m.coded = true; }, {Values()}),
       "malformed Reply: coded is 1, may be 0"},
      {"PartsTooMany",
       ReplyWith(kDense, [](Reply& m) { m.coded = true, m.parts.resize(kReplyPartsMax + 1); },
                 {runtime::Buffer()}),
       "malformed Reply: number of parts is 65, may be 0 to 64"},
      {"PartsShort",
       ReplyWith(kDense,
                 [](Reply& m) {
                   m.coded = true, m.parts = {{.bytes = 9}, {.bytes = 8}};
                 },
                 {Values()}),
       "malformed Reply: parts are 16 bytes of payload, may be 17 (17 of 1 bytes)"},
      {"PartAbove",
       ReplyWith(kDense,
                 [](Reply& m) {
                   m.coded = true, m.parts = {{.bytes = ~0ull}, {.bytes = 17}};
                 },
                 {Values()}),
       "malformed Reply: part's bytes is 18446744073709551615, may be 0 to 281474976710656"},
      {"DenseKeys", ReplyWith(kDense, [](Reply& m) { m.keys = 1; }, {Values()}),
       "malformed Reply: keys is 1, may be 0"},
      {"DenseNothing", ReplyWith(kDense, [](Reply& m) { m.elements = 0; }, {runtime::Buffer()}),
       "malformed Reply: elements is 0, may be 1 to 67108864"},
      {"WithoutValues", ReplyWith(kDense, NoReplyChange, {}),
       "malformed Reply: number of payload frames is 0, may be 1"},
      {"Short", ReplyWith(kDense, NoReplyChange, {Widths()}),
       "malformed Reply: values are 8 bytes of payload, may be 16 (4 of 4 bytes)"},
      {"SparseUneven", ReplyWith(kSparse, [](Reply& m) { m.keys = 3; }, {Values()}),
       "malformed Reply: elements are 4, may be 1 to 16777216 for each of 3 keys"},
      {"RaggedSum",
       ReplyWith(kRagged, [](Reply& m) { m.elements = 2; }, {Widths(), FrameOf<float>({1, 2})}),
       "malformed Reply: elements are 2, widths add up to 4"},
      {"RaggedFrames", ReplyWith(kRagged, NoReplyChange, {Values()}),
       "malformed Reply: number of payload frames is 1, may be 2"},
      {"ErrorWithValues",
       ReplyWith(kDense, [](Reply& m) { m.result = absl::AbortedError("x"); }, {Values()}),
       "malformed Reply: number of payload frames is 1, may be 0"},
      {"ProvisionalPull", ReplyWith(kDense, [](Reply& m) { m.provisional = true; }, {Values()}),
       "malformed Reply: provisional is set, may be set with a push that was accepted"},
      {"ProvisionalError",
       ReplyWith(kDense,
                 [](Reply& m) {
                   m.provisional = true, m.op = Op::kPush, m.result = absl::AbortedError("x");
                 },
                 {}),
       "malformed Reply: provisional is set, may be set with a push that was accepted"},
      {"VersionOfAPush", ReplyWith(kDense, [](Reply& m) { m.op = Op::kPush, m.version = 1; }, {}),
       "malformed Reply: version is 1, may be 0"},
      {"PushWithValues", ReplyWith(kDense, [](Reply& m) { m.op = Op::kPush; }, {Values()}),
       "malformed Reply: number of payload frames is 1, may be 0"},
  };
}

}  // namespace leeway::proto
