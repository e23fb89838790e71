// Fixtures for tests of encoded pushes: a table, its place, and the values that a server decodes.
#ifndef LEEWAY_WORKER_TESTING_PUSH_ENCODER_TESTING_H_
#define LEEWAY_WORKER_TESTING_PUSH_ENCODER_TESTING_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "compress/table_codec.h"
#include "gtest/gtest.h"
#include "worker/encoding/push_encoder.h"

namespace leeway::worker {

inline constexpr PushContext kTestContext = {
    .table = 1, .block_bytes = 1 << 20, .residual_bytes_max = 1 << 20};

// A table of one block.
inline TableSpec SgdTable(const std::string& codec, std::uint64_t elements) {
  TableSpec spec = TableSpec::Dense("w", {elements});
  spec.updater = {"sgd", {{"learning_rate", 0.1}}};
  spec.codec = codec;
  return spec;
}

// The values that a server decodes of a push of a block of float32; empty where they are sent
// unchanged.
inline std::vector<float> ReceivedOf(const EncodedValues& pushed, const TableSpec& spec,
                                     const compress::TableCodecs& codecs, std::uint64_t elements) {
  std::vector<float> values;
  if (pushed.bytes.empty()) return values;
  values.resize(elements);
  if (pushed.codec == compress::kNoCodec) {
    std::memcpy(values.data(), pushed.bytes.data(), pushed.bytes.size());
    return values;
  }
  const compress::TableCodec& codec = *codecs.Find(pushed.codec);
  const auto shape = compress::BlockShape(spec, codec, elements);
  EXPECT_TRUE(codec.codec->Decode(pushed.bytes.bytes(), shape, values.data()).ok());
  return values;
}

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_TESTING_PUSH_ENCODER_TESTING_H_
