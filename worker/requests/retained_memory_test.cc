#include "worker/requests/retained_memory.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace leeway::worker {
namespace {

using runtime::Buffer;

TEST(RetainedMemoryTest, CopiesIntoFreedMemory) {
  RetainedMemory memory;
  std::string text = "some data";
  Buffer copy = memory.CopyOf(Buffer::CopyOf(text));
  EXPECT_EQ(copy.text(), "some data");
  const std::byte* place = copy.data();
  const Buffer share = copy;
  copy = {};
  EXPECT_EQ(memory.free_bytes(), 0u);  // the part is in use
  EXPECT_EQ(share.text(), "some data");
  const Buffer other = memory.CopyOf(Buffer::CopyOf("more data"));
  EXPECT_NE(other.data(), place);
}

TEST(RetainedMemoryTest, UsesTheSameBlockForTheSameSize) {
  RetainedMemory memory;
  const std::byte* place = nullptr;
  {
    const Buffer copy = memory.CopyOf(Buffer::CopyOf("12345678"));
    place = copy.data();
  }
  EXPECT_EQ(memory.free_bytes(), 8u);
  const Buffer again = memory.CopyOf(Buffer::CopyOf("abcdefgh"));
  EXPECT_EQ(again.data(), place);
  EXPECT_EQ(again.text(), "abcdefgh");
  EXPECT_EQ(memory.free_bytes(), 0u);
}

TEST(RetainedMemoryTest, NeverKeepsMoreThanWasInUseAtOnce) {
  RetainedMemory memory;
  {
    std::vector<Buffer> copies;
    for (int i = 0; i < 4; ++i)
      copies.push_back(memory.CopyOf(Buffer::CopyOf(std::string(100, 'x'))));
  }
  EXPECT_EQ(memory.free_bytes(), 400u);
  const Buffer other = memory.CopyOf(Buffer::CopyOf(std::string(150, 'y')));
  EXPECT_LE(memory.free_bytes() + other.size(), 400u);
  EXPECT_TRUE(memory.CopyOf(Buffer()).empty());
}

TEST(RetainedMemoryTest, CopiesOutliveIt) {
  std::optional<RetainedMemory> memory(std::in_place);
  const Buffer copy = memory->CopyOf(Buffer::CopyOf("still here"));
  memory.reset();
  EXPECT_EQ(copy.text(), "still here");
}

}  // namespace
}  // namespace leeway::worker
