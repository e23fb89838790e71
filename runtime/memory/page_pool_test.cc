#include "runtime/memory/page_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/memory/sanitized.h"

namespace leeway::runtime {
namespace {

constexpr std::size_t kPage = PagePool::kPageBytes;

TEST(PagePool, PiecesAreAlignedAndApart) {
  PagePool pool;
  std::map<std::byte*, std::size_t> pieces;
  for (std::size_t bytes = PagePool::kPieceBytesMin; bytes < PagePool::kPieceBytesMax;
       bytes += bytes / 3 + 1) {
    std::byte* const piece = pool.Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % PagePool::kAlignment, 0u);
    std::memset(piece, 1, bytes);
    pieces[piece] = bytes;
  }
  const std::byte* end = nullptr;
  for (const auto& [piece, bytes] : pieces) {
    EXPECT_GE(piece, end);
    end = piece + bytes;
  }
  for (const auto& [piece, bytes] : pieces) pool.Free(piece, bytes);
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

TEST(PagePool, APageIsFilled) {
  PagePool pool;
  constexpr std::size_t kPiece = kPage / 8;
  for (int i = 0; i < 80; ++i) pool.Allocate(kPiece);
  EXPECT_EQ(pool.in_use_bytes(), 10 * kPage);
  EXPECT_EQ(pool.held_bytes(), 10 * kPage);
}

TEST(PagePool, HalvesFillAPage) {
  EXPECT_EQ(PagePool::Takes(PagePool::kHalfBytes), PagePool::Takes(PagePool::kPieceBytesMax));
  EXPECT_FALSE(PagePool::Takes(PagePool::kHalfBytes - 64));
  EXPECT_FALSE(PagePool::Takes(PagePool::kHalfBytes + 64));
  PagePool pool;
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 6; ++i) pieces.push_back(pool.Allocate(PagePool::kHalfBytes));
  EXPECT_EQ(pool.held_bytes(), 3 * kPage);
  pool.Free(pieces[1], PagePool::kHalfBytes);
  EXPECT_EQ(pool.Allocate(PagePool::kHalfBytes), pieces[1]);
}

TEST(PagePool, TheRestOfAPageGoesToSmallerPieces) {
  PagePool pool;
  for (int i = 0; i < 3; ++i) pool.Allocate(kPage / 4 - 1000);
  pool.Allocate(kPage / 4);
  pool.Allocate(kPage / 4);  // this needs another page
  pool.Allocate(2048);
  EXPECT_EQ(pool.held_bytes(), 2 * kPage);
}

TEST(PagePool, AFreePieceIsGivenToTheNextOfItsSize) {
  PagePool pool;
  std::byte* const first = pool.Allocate(5000);
  pool.Allocate(5000);
  pool.Free(first, 5000);
  EXPECT_NE(pool.Allocate(6000), first);
  EXPECT_EQ(pool.Allocate(5000), first);
}

TEST(PagePool, AnEmptyPageIsSharedOutAnew) {
  PagePool pool;
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 4; ++i) pieces.push_back(pool.Allocate(kPage / 4));
  for (std::byte* piece : pieces) pool.Free(piece, kPage / 4);
  for (int i = 0; i < 8; ++i) pool.Allocate(kPage / 8);
  EXPECT_EQ(pool.held_bytes(), kPage);
}

TEST(PagePool, MemoryOfManyEmptyPagesIsGivenBack) {
  PagePool pool;
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 400; ++i) {
    pieces.push_back(pool.Allocate(kPage / 4));
    std::memset(pieces.back(), 7, kPage / 4);
  }
  EXPECT_EQ(pool.held_bytes(), 100 * kPage);
  for (std::byte* piece : pieces) pool.Free(piece, kPage / 4);
  EXPECT_EQ(pool.held_bytes(), 64 * kPage);
  // Their addresses are used again, and the memory reads as zeros.
  bool anew = false;
  for (int i = 0; i < 400; ++i) {
    std::byte* const piece = pool.Allocate(kPage / 4);
    anew = anew || *piece == std::byte{0};
    EXPECT_NE(std::find(pieces.begin(), pieces.end(), piece), pieces.end());
  }
  EXPECT_TRUE(anew);
}

TEST(PagePool, APageHasTheSameMemoryUntilItIsGivenBack) {
  PagePool pool;
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 400; ++i) pieces.push_back(pool.Allocate(kPage / 4));
  std::vector<PagePool::Memory> memories;
  for (std::byte* piece : pieces) {
    const auto memory = pool.Find(piece, kPage / 4);
    ASSERT_TRUE(memory.has_value());
    EXPECT_TRUE(piece >= memory->page && piece + kPage / 4 <= memory->page + kPage);
    memories.push_back(*memory);
  }
  EXPECT_EQ(pool.Find(pieces[0], 2 * kPage), std::nullopt);
  int elsewhere = 0;
  EXPECT_EQ(pool.Find(&elsewhere, sizeof(elsewhere)), std::nullopt);
  for (std::byte* piece : pieces) pool.Free(piece, kPage / 4);
  std::size_t kept = 0;
  for (const PagePool::Memory& memory : memories) kept += pool.Has(memory) ? 1 : 0;
  EXPECT_EQ(kept, 4 * 64u);  // the pages that keep their memory
  // The same addresses, with other memory.
  std::size_t again = 0;
  for (int i = 0; i < 400; ++i) {
    const auto memory = pool.Find(pool.Allocate(kPage / 4), kPage / 4);
    ASSERT_TRUE(memory.has_value());
    again += std::count_if(memories.begin(), memories.end(),
                           [&](const auto& one) {
                             return one.page == memory->page && one.number == memory->number;
                           }) > 0
                 ? 1
                 : 0;
  }
  EXPECT_EQ(again, 4 * 64u);
}

// Pieces never overlap: each keeps what was written to it while others are allocated and freed.
TEST(PagePool, RandomPiecesKeepWhatIsInThem) {
  struct Held {
    std::byte* piece;
    std::size_t bytes;
    std::byte mark;
  };
  PagePool pool;
  Random random(1);
  std::vector<Held> held;
  std::size_t in_use = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (held.size() < 200 && random.Below(2) == 0) {
      const std::size_t bytes = 64 * (16 + random.Below(40));
      Held one{pool.Allocate(bytes), bytes, static_cast<std::byte>(random.Next())};
      std::memset(one.piece, static_cast<int>(one.mark), bytes);
      held.push_back(one);
      in_use += bytes;
    } else if (!held.empty()) {
      std::swap(held[random.Below(held.size())], held.back());
      const Held one = held.back();
      held.pop_back();
      ASSERT_EQ(std::count(one.piece, one.piece + one.bytes, one.mark),
                static_cast<std::ptrdiff_t>(one.bytes));
      pool.Free(one.piece, one.bytes);
      in_use -= one.bytes;
    }
    ASSERT_EQ(pool.in_use_bytes(), in_use);
  }
}

TEST(PagePool, AnyThreadMayFree) {
  PagePool pool;
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back(pool.Allocate(4096));
  std::thread other([&] {
    for (std::byte* piece : pieces) pool.Free(piece, 4096);
  });
  for (int i = 0; i < 1000; ++i) pool.Free(pool.Allocate(4096), 4096);
  other.join();
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

// As with the heap, fork() is safe while another thread uses the pool.
TEST(PagePool, AForkedChildMayUseTheProcesss) {
  if (kSanitized) GTEST_SKIP() << "its runtime has locks of its own";
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) PagePool::Shared().Free(PagePool::Shared().Allocate(4096), 4096);
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // so that the test fails instead of hanging
      PagePool::Shared().Free(PagePool::Shared().Allocate(4096), 4096);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
}

}  // namespace
}  // namespace leeway::runtime
