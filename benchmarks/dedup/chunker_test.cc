#include "dedup/chunker.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::bench {
namespace chunker_test {
namespace {

constexpr std::size_t kAverage = 256;

std::vector<std::byte> Random(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(runtime::RandomAt(seed, 0, i));
  }
  return bytes;
}

std::vector<std::string> Chunks(std::span<const std::byte> bytes) {
  const Chunker chunker(kAverage);
  std::vector<std::string> chunks;
  while (!bytes.empty()) {
    const std::size_t size = chunker.Next(bytes);
    chunks.emplace_back(reinterpret_cast<const char*>(bytes.data()), size);
    bytes = bytes.subspan(size);
  }
  return chunks;
}

TEST(Chunker, ChunksHaveWholeFloatsAndTheSizesThatWereAskedFor) {
  const auto bytes = Random(1 << 20, 1);
  std::vector<std::string> chunks = Chunks(bytes);
  std::size_t together = 0;
  for (const std::string& chunk : chunks) together += chunk.size();
  EXPECT_EQ(together, bytes.size());
  chunks.pop_back();
  for (const std::string& chunk : chunks) {
    EXPECT_EQ(chunk.size() % 4, 0);
    EXPECT_GE(chunk.size(), kAverage / 4);
    EXPECT_LE(chunk.size(), kAverage * 8);
  }
  const double mean = static_cast<double>(together) / static_cast<double>(chunks.size());
  EXPECT_GT(mean, kAverage * 0.7);
  EXPECT_LT(mean, kAverage * 1.5);
}

TEST(Chunker, AnInsertionMovesOnlyTheCutsBesideIt) {
  const auto before = Random(1 << 16, 1);
  auto after = before;
  const auto more = Random(20, 2);
  after.insert(after.begin() + 30000, more.begin(), more.end());
  const std::vector<std::string> chunks = Chunks(before);
  const std::set<std::string> known(chunks.begin(), chunks.end());
  std::size_t other = 0;
  for (const std::string& chunk : Chunks(after)) other += known.count(chunk) == 0 ? 1 : 0;
  EXPECT_GE(other, 1);
  EXPECT_LE(other, 8);  // of some 250
}

TEST(Chunker, NothingHasNoChunk) { EXPECT_EQ(Chunker(kAverage).Next({}), 0); }

}  // namespace
}  // namespace chunker_test
}  // namespace leeway::bench
