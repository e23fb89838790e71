// Replays the fuzzer's seeds, and inputs that it found and that were put beside them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "compress/fuzz/codec_input.h"
#include "compress/testing/codec_samples.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace {

std::vector<std::filesystem::path> FilesOf(const std::string& codec) {
  const std::filesystem::path folder = std::filesystem::path(LEEWAY_FUZZ_CORPUS) / codec;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  return files;
}

class FuzzCorpus : public testing::TestWithParam<CodecSample> {
 protected:
  void SetUp() override { setenv(kFuzzCodecVariable, GetParam().text.c_str(), /*overwrite=*/1); }
  void TearDown() override { unsetenv(kFuzzCodecVariable); }
};

// If a property does not hold, the process ends and names it.
TEST_P(FuzzCorpus, IsDecodedOrRefused) {
  const auto files = FilesOf(GetParam().text.substr(0, GetParam().text.find(':')));
  EXPECT_FALSE(files.empty()) << "write its seeds: codec_fuzz_corpus " << LEEWAY_FUZZ_CORPUS;
  for (const auto& path : files) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_FALSE(file.bad());
    const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    EXPECT_EQ(LLVMFuzzerTestOneInput(data, bytes.size()), 0);
    // Each prefix of it is refused, or is another message.
    for (std::size_t size = 0; size < bytes.size(); ++size) LLVMFuzzerTestOneInput(data, size);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzCorpus, testing::ValuesIn(CodecSamples()),
                         [](const testing::TestParamInfo<CodecSample>& sample) {
                           std::string name = sample.param.text;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace leeway::compress
