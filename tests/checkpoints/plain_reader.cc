#include "tests/checkpoints/plain_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace leeway::tests {

PlainFile ReadPlainly(const std::string& contents) {
  static const std::map<std::string, std::uint64_t> kSizes = {{"F64", 8},  {"F32", 4}, {"F16", 2},
                                                              {"BF16", 2}, {"I64", 8}, {"I32", 4},
                                                              {"U64", 8},  {"U32", 4}};
  PlainFile file;
  std::uint64_t length = 0;
  if (contents.size() < 8) {
    ADD_FAILURE() << "a file of " << contents.size() << " bytes";
    return file;
  }
  for (int byte = 7; byte >= 0; --byte) {
    length = length << 8 | static_cast<unsigned char>(contents[static_cast<std::size_t>(byte)]);
  }
  EXPECT_LE(length, contents.size() - 8);
  const std::string data = contents.substr(8 + length);
  const auto header = nlohmann::json::parse(contents.substr(8, length));
  std::map<std::uint64_t, std::uint64_t> ends;  // by begin, of those that are not empty
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      file.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    EXPECT_EQ(entry.size(), 3u) << name;
    PlainTensor& tensor = file.tensors[name];
    tensor.type = entry.at("dtype").get<std::string>();
    tensor.shape = entry.at("shape").get<std::vector<std::uint64_t>>();
    const auto offsets = entry.at("data_offsets").get<std::vector<std::uint64_t>>();
    EXPECT_EQ(offsets.size(), 2u) << name;
    std::uint64_t bytes = kSizes.at(tensor.type);
    for (const std::uint64_t size : tensor.shape) bytes *= size;
    EXPECT_EQ(offsets[1] - offsets[0], bytes) << name;
    EXPECT_LE(offsets[1], data.size()) << name;
    if (bytes != 0) {
      EXPECT_TRUE(ends.emplace(offsets[0], offsets[1]).second) << name;
    }
    tensor.bytes = data.substr(offsets[0], bytes);
  }
  std::uint64_t end = 0;
  for (const auto& [begin, next] : ends) {
    EXPECT_EQ(begin, end) << "a gap, or an overlap";
    end = next;
  }
  EXPECT_EQ(end, data.size());
  return file;
}

}  // namespace leeway::tests
