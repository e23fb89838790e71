#include <cmath>
#include <utility>

#include "proto/messages/limits.h"
#include "proto/testing/wrong.h"

namespace leeway::proto {
namespace {

// A valid batch of two pushes, of one and three elements, after `change`.
Sample Batch(void (*change)(PushBatch&),
             std::vector<runtime::Buffer> payload = {FrameOf<float>({1, 2, 3, 4})}) {
  PushBatch batch{.pushes = {{.sequence = 1, .elements = 1, .table = 1},
                             {.sequence = 2, .after = 1, .elements = 3, .table = 1}}};
  return {With(std::move(batch), change), std::move(payload)};
}

Sample Acks(void (*change)(PushAcks&)) {
  return {With(PushAcks{.acks = {{.sequence = 1}, {.sequence = 2}}}, change)};
}

}  // namespace

std::vector<Wrong> WrongBatches() {
  return {
      {"Worker", Batch([](PushBatch& m) { m.worker = kWorkersMax; }),
       "malformed PushBatch: worker is 65536, may be 0 to 65535"},
      {"DType", Batch([](PushBatch& m) { m.dtype = static_cast<DType>(6); }),
       "malformed PushBatch: dtype is 6, may be 0 to 5"},
      {"Timeout", Batch([](PushBatch& m) { m.timeout_ms = 1ull << 63; }),
       "malformed PushBatch: timeout_ms is 9223372036854775808, may be 0 to 9223372036854775807"},
      {"Rate", Batch([](PushBatch& m) { m.has_learning_rate = true, m.learning_rate = NAN; }),
       "malformed PushBatch: learning_rate is nan, may be finite"},
      {"NoPushes", Batch([](PushBatch& m) { m.pushes.clear(); }),
       "malformed PushBatch: number of pushes is 0, may be 1 to 256"},
      {"TooManyPushes",
       Batch([](PushBatch& m) { m.pushes.resize(kPushesPerBatchMax + 1, m.pushes[0]); }),
       "malformed PushBatch: number of pushes is 257, may be 1 to 256"},
      {"Sequence0", Batch([](PushBatch& m) { m.pushes[1].sequence = 0; }),
       "malformed PushBatch: sequence is 0, may be at least 1"},
      {"AfterItself", Batch([](PushBatch& m) { m.pushes[1].after = 2; }),
       "malformed PushBatch: after is 2, may be 0 to 1"},
      {"Shard", Batch([](PushBatch& m) { m.pushes[1].shard = kShardsMax; }),
       "malformed PushBatch: shard is 1048576, may be 0 to 1048575"},
      {"Table0", Batch([](PushBatch& m) { m.pushes[1].table = 0; }),
       "malformed PushBatch: table is 0, may be at least 1"},
      {"Block", Batch([](PushBatch& m) { m.pushes[1].block = kTableElementsMax; }),
       "malformed PushBatch: block is 281474976710656, may be 0 to 281474976710655"},
      {"PushOfNothing", Batch([](PushBatch& m) { m.pushes[1].elements = 0; }),
       "malformed PushBatch: elements is 0, may be 1 to 67108864"},
      {"ElementsAbove", Batch([](PushBatch& m) { m.pushes[1].elements = (64 << 20) + 1; }),
       "malformed PushBatch: elements is 67108865, may be 1 to 67108864"},
      {"PushTooLarge", Batch([](PushBatch& m) { m.pushes[1].elements = 513; }),
       "malformed PushBatch: bytes of a push is 2052, may be 1 to 2048"},
      {"TooLarge", Batch([](PushBatch& m) {
         m.pushes[1].elements = 512;
         m.pushes.resize(34, m.pushes[1]);
       }),
       "malformed PushBatch: bytes of all pushes is 67588, may be 1 to 65536"},
      {"WithoutValues", Batch([](PushBatch&) {}, {}),
       "malformed PushBatch: number of payload frames is 0, may be 1"},
      {"Short", Batch([](PushBatch& m) { m.pushes[0].elements = 2; }),
       "malformed PushBatch: values are 16 bytes of payload, may be 20 (5 of 4 bytes)"},
      {"Long", Batch([](PushBatch& m) { m.pushes.pop_back(); }),
       "malformed PushBatch: values are 16 bytes of payload, may be 4 (1 of 4 bytes)"},
      {"AcksWorker", Acks([](PushAcks& m) { m.worker = kWorkersMax; }),
       "malformed PushAcks: worker is 65536, may be 0 to 65535"},
      {"NoAcks", Acks([](PushAcks& m) { m.acks.clear(); }),
       "malformed PushAcks: number of acks is 0, may be 1 to 256"},
      {"TooManyAcks", Acks([](PushAcks& m) { m.acks.resize(kPushesPerBatchMax + 1, m.acks[0]); }),
       "malformed PushAcks: number of acks is 257, may be 1 to 256"},
      {"AckOfSequence0", Acks([](PushAcks& m) { m.acks[1].sequence = 0; }),
       "malformed PushAcks: sequence is 0, may be at least 1"},
      {"AckOfShard", Acks([](PushAcks& m) { m.acks[1].shard = kShardsMax; }),
       "malformed PushAcks: shard is 1048576, may be 0 to 1048575"},
  };
}

}  // namespace leeway::proto
