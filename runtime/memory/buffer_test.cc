#include "runtime/memory/buffer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "leeway/config.h"
#include "runtime/memory/page_pool.h"

namespace leeway::runtime {
namespace {

class CountingOwner final : public BufferOwner {
 public:
  explicit CountingOwner(int* unused) : unused_(unused) {}

 private:
  void OnUnused() override {
    ++*unused_;
    delete this;
  }
  int* const unused_;
};

TEST(BufferTest, CopyOfHasItsOwnBytes) {
  std::string text = "gradient";
  const Buffer buffer = Buffer::CopyOf(text);
  text[0] = 'G';
  EXPECT_EQ(buffer.text(), "gradient");
  EXPECT_EQ(buffer.size(), 8u);
}

TEST(BufferTest, EmptyBuffersAreAllAlike) {
  EXPECT_TRUE(Buffer().empty());
  EXPECT_TRUE(Buffer::CopyOf(nullptr, 0).empty());
  std::byte* data = nullptr;
  EXPECT_TRUE(Buffer::Allocate(0, &data).empty());
}

TEST(BufferTest, AllocatedBytesAreAlignedAndWritable) {
  for (const std::size_t size : {1u, 63u, 64u, 65u, 100'000u, 1u << 20}) {
    std::byte* data = nullptr;
    const Buffer buffer = Buffer::Allocate(size, &data);
    EXPECT_TRUE(buffer.aligned_to(64));
    std::memset(data, 7, size);
    EXPECT_EQ(buffer.bytes()[size - 1], std::byte{7});
  }
}

TEST(BufferTest, CopiesAreAlignedForAnyScalar) {
  for (const std::size_t size : {1u, 63u, 64u, 65u, 100'000u, 1u << 20}) {
    const std::string text(size, 'x');
    const Buffer buffer = Buffer::CopyOf(text);
    EXPECT_TRUE(buffer.aligned_to(alignof(std::max_align_t)));
    EXPECT_EQ(buffer.text(), text);
  }
}

// Pushes of workers lie in such memory until they are added up.
TEST(BufferTest, AsMuchAsABlockLiesInALargePageAndGoesBackThere) {
  if (!PagePool::Takes(PagePool::kHalfBytes)) GTEST_SKIP() << "the sanitizer's heap is used";
  for (const std::size_t size : {Config().block_bytes, std::uint64_t{PagePool::kHalfBytes}}) {
    const std::string text(size, 'x');
    const std::size_t before = PagePool::Shared().in_use_bytes();
    std::byte* data = nullptr;
    Buffer made = Buffer::Allocate(size, &data);
    Buffer copied = Buffer::CopyOf(text);
    EXPECT_EQ(copied.text(), text);
    EXPECT_EQ(PagePool::Shared().in_use_bytes(), before + 2 * size);
    const Buffer shared = made;
    made = copied = {};
    EXPECT_EQ(PagePool::Shared().in_use_bytes(), before + size);
    EXPECT_EQ(shared.data(), data);
  }
}

TEST(BufferTest, MoreThanThereCanBeIsRefused) {
  std::byte* data = nullptr;
  EXPECT_THROW(Buffer::Allocate(SIZE_MAX - 8, &data), std::bad_alloc);
}

TEST(BufferTest, TheOwnerHearsOfItsLastBufferOnly) {
  int unused = 0;
  auto* owner = new CountingOwner(&unused);
  Buffer first("abc", 3, owner);
  EXPECT_TRUE(owner->unique());
  {
    const Buffer second = first;
    EXPECT_FALSE(owner->unique());
    EXPECT_EQ(second.data(), first.data());
  }
  EXPECT_TRUE(owner->unique());
  Buffer third = std::move(first);
  EXPECT_EQ(unused, 0);
  EXPECT_TRUE(owner->unique());
  third = Buffer();
  EXPECT_EQ(unused, 1);
}

TEST(BufferTest, AssigningABufferToItselfKeepsIt) {
  int unused = 0;
  Buffer buffer("abc", 3, new CountingOwner(&unused));
  const Buffer& same = buffer;
  buffer = same;
  EXPECT_EQ(buffer.text(), "abc");
  EXPECT_EQ(unused, 0);
}

TEST(BufferTest, UnownedPointsAtTheCallersBytes) {
  const float values[] = {1, 2, 3};
  const Buffer buffer = Buffer::Unowned(values, sizeof(values));
  EXPECT_EQ(buffer.as<float>().data(), values);
  EXPECT_EQ(buffer.as<float>().size(), 3u);
}

TEST(BufferTest, ManyThreadsMayShareAndDropOne) {
  int unused = 0;
  {
    const Buffer buffer("abc", 3, new CountingOwner(&unused));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([copy = buffer] {
        for (int i = 0; i < 1000; ++i) {
          const Buffer another = copy;
          if (another.size() != 3) std::abort();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(unused, 0);
  }
  EXPECT_EQ(unused, 1);
}

TEST(BufferTest, ASmallPartOfMuchIsKeptByItself) {
  std::byte* data = nullptr;
  const Buffer all = Buffer::Allocate(1 << 20, &data);
  std::memset(data, 'x', 1 << 20);
  const Buffer small = all.Part(5, Buffer::kMayShareBytes - 1).EnsureOwned();
  EXPECT_NE(small.data(), all.data() + 5);
  EXPECT_EQ(small.text(), std::string(Buffer::kMayShareBytes - 1, 'x'));
  const Buffer large = all.Part(5, Buffer::kMayShareBytes).EnsureOwned();
  EXPECT_EQ(large.data(), all.data() + 5);
}

}  // namespace
}  // namespace leeway::runtime
