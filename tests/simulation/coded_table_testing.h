// A table for tests of the oracles of coded tables, and bytes of its messages.
#ifndef LEEWAY_TESTS_SIMULATION_CODED_TABLE_TESTING_H_
#define LEEWAY_TESTS_SIMULATION_CODED_TABLE_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/memory/buffer.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation::coded_table_testing {

inline constexpr std::uint32_t kElements = 40;

// One block, or one row of key `kKey`.
inline constexpr std::uint64_t kKey = 1000;

inline SimTable TableOf(TableSpec spec, const std::string& updater, const std::string& codec,
                        std::vector<std::string> more) {
  SimTable table;
  table.coded = table.one_writer = true;
  table.width = table.stride = kElements;
  if (spec.kind != TableKind::kDense) table.keys = {kKey};
  table.spec = std::move(spec);
  table.spec.updater = {updater, {}};
  table.spec.codec = codec;
  table.spec.codecs = std::move(more);
  table.codecs = compress::TableCodecsOf(table.spec).value();
  return table;
}

inline SimTable DenseTable(const std::string& codec, std::vector<std::string> more,
                           const std::string& updater = "add") {
  return TableOf(TableSpec::Dense("t", {kElements}), updater, codec, std::move(more));
}

inline runtime::Buffer AsItIs(const std::vector<float>& values) {
  return runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float));
}

// The message of one of a dense table's codecs for its block.
inline runtime::Buffer Encoded(const SimTable& table, std::uint32_t choice,
                               const std::vector<float>& values) {
  const compress::TableCodec& codec = table.codecs.choices[choice];
  EncodeTerms terms;
  terms.shape = compress::BlockShape(table.spec, codec, values.size());
  std::vector<std::byte> message(codec.codec->EncodedBytesMax(terms.shape));
  const auto bytes = codec.codec->Encode(values.data(), terms, message);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return runtime::Buffer::CopyOf(message.data(), bytes.value_or(0));
}

}  // namespace leeway::simulation::coded_table_testing

#endif  // LEEWAY_TESTS_SIMULATION_CODED_TABLE_TESTING_H_
