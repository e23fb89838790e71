#include "ps/store/memory/block_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace leeway::ps {
namespace {

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kSlab = 256 << 10;
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

std::vector<SharedBytes> Several(BlockPool* pool, int number, std::size_t bytes = kBlock) {
  std::vector<SharedBytes> several;
  for (int i = 0; i < number; ++i) several.push_back(pool->New(bytes));
  return several;
}

TEST(BlockPool, ReleasedBlocksAreUsedAgain) {
  BlockPool pool;
  SharedBytes first = pool.New(kBlock);
  const std::byte* const place = first.data();
  std::optional<runtime::Buffer> view = first.View();
  first = SharedBytes();
  EXPECT_EQ(pool.ready_bytes(), 0u);  // somebody looks at it still
  std::thread([&] { view.reset(); }).join();
  EXPECT_EQ(pool.ready_bytes(), kBlock);
  const SharedBytes again = pool.New(kBlock);
  EXPECT_EQ(again.data(), place);
  EXPECT_TRUE(again.Writable());
  EXPECT_EQ(pool.ready_bytes(), 0u);
  EXPECT_EQ(pool.in_use_bytes(), kBlock);
}

TEST(BlockPool, OnlyForItsSizeAndNotForSmallOnes) {
  BlockPool pool;
  pool.New(kBlock);
  const SharedBytes slab = pool.New(kSlab);
  EXPECT_EQ(slab.size(), kSlab);
  EXPECT_EQ(pool.ready_bytes(), kBlock);
  pool.New(BlockPool::kBytesMin - 1);
  EXPECT_EQ(pool.ready_bytes(), kBlock);
}

TEST(BlockPool, FewAreKeptWhereNobodyMakesCopies) {
  BlockPool pool;
  Several(&pool, 100);
  EXPECT_LE(pool.ready_bytes(), 8 * kBlock);
}

TEST(BlockPool, AsMuchAsTheCopiesTookIsKeptForTheNext) {
  BlockPool pool;
  const std::vector<SharedBytes> model = Several(&pool, 50);
  pool.BeginCopies();
  Several(&pool, 30);  // at a time
  EXPECT_FALSE(pool.copies_known());
  for (int i = 0; i < 100; ++i) Several(&pool, 1);
  EXPECT_EQ(pool.ready_bytes(), 30 * kBlock);
  pool.EndCopies();
  EXPECT_TRUE(pool.copies_known());
  EXPECT_TRUE(pool.TakeExcess().empty());
  EXPECT_EQ(pool.ready_bytes(), 30 * kBlock);

  pool.BeginCopies();
  Several(&pool, 20);
  pool.EndCopies();
  EXPECT_EQ(pool.ready_bytes(), 30 * kBlock);
  BlockPool::Excess excess = pool.TakeExcess();
  EXPECT_EQ(excess.size(), 10u);
  EXPECT_EQ(pool.ready_bytes(), 20 * kBlock);
  std::thread([taken = std::move(excess)]() mutable { taken.clear(); }).join();
  EXPECT_EQ(pool.in_use_bytes(), 50 * kBlock);
}

TEST(BlockPool, IsMadeReadyByPart) {
  BlockPool pool;
  const std::vector<SharedBytes> blocks = Several(&pool, 30), slabs = Several(&pool, 40, kSlab);
  pool.Reserve(20 * kBlock);  // of 40 MiB
  EXPECT_EQ(pool.ready_bytes(), 0u);
  std::thread([refiller = pool.refiller()] {
    EXPECT_EQ(refiller.Refill(2 * kBlock), 2 * kBlock);
    EXPECT_EQ(refiller.Refill(kAll), 18 * kBlock);
    EXPECT_EQ(refiller.Refill(kAll), 0u);
  }).join();
  EXPECT_EQ(pool.ready_bytes(), 20 * kBlock);
  const std::vector<SharedBytes> copies = Several(&pool, 15);
  EXPECT_EQ(pool.ready_bytes(), 5 * kBlock);  // slabs
  pool.Reserve(kAll);                         // not more than there is in use
  pool.refiller().Refill(kAll);
  EXPECT_EQ(pool.ready_bytes(), (30 + 15 + 10) * kBlock);
}

TEST(BlockPool, BlocksInUseOutliveIt) {
  std::optional<BlockPool> pool(std::in_place);
  std::vector<SharedBytes> blocks = Several(&*pool, 3);
  const BlockPool::Refiller refiller = pool->refiller();
  blocks.pop_back();
  const runtime::Buffer view = blocks[0].View();
  pool.reset();
  blocks.clear();
  std::memset(const_cast<std::byte*>(view.data()), 1, view.size());
  EXPECT_EQ(refiller.Refill(kAll), 0u);
}

// Readers let go of what the owner takes again, on several threads at a time.
TEST(BlockPool, AnyThreadLetsGo) {
  BlockPool pool;
  pool.BeginCopies();
  constexpr int kThreads = 3, kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> readers;
    for (int i = 0; i < kThreads; ++i) {
      SharedBytes bytes = pool.New(BlockPool::kBytesMin);
      bytes.data()[0] = static_cast<std::byte>(i);
      readers.emplace_back([view = bytes.View(), i]() mutable {
        EXPECT_EQ(view.data()[0], static_cast<std::byte>(i));
        view = runtime::Buffer();
      });
    }
    const SharedBytes own = pool.New(BlockPool::kBytesMin);
    for (std::thread& reader : readers) reader.join();
  }
  EXPECT_EQ(pool.in_use_bytes(), 0u);
  EXPECT_LE(pool.ready_bytes(), (kThreads + 1) * BlockPool::kBytesMin);
}

}  // namespace
}  // namespace leeway::ps
