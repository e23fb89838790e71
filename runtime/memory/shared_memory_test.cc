#include "runtime/memory/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace leeway::runtime {
namespace {

constexpr std::size_t kBytes = 100'000;

TEST(SharedMemoryTest, IsZeroedAlignedAndFoundByAnyOfItsBytes) {
  const auto memory = SharedMemory::New(kBytes).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 4096, 0u);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(memory->data()), kBytes), std::string(kBytes, 0));
  const auto place = SharedMemory::Find(memory->data() + 70, kBytes - 70);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->memory, memory);
  EXPECT_EQ(place->offset, 70u);
}

TEST(SharedMemoryTest, ARangeAcrossTwoSegmentsIsNotFound) {
  const auto memory = SharedMemory::New(kBytes).value();
  const int elsewhere = 0;
  EXPECT_FALSE(SharedMemory::Find(&elsewhere, sizeof(elsewhere)).has_value());
  EXPECT_FALSE(SharedMemory::Find(memory->data() + 1, kBytes).has_value());
  EXPECT_FALSE(SharedMemory::Find(memory->data() - 1, 2).has_value());
  EXPECT_FALSE(SharedMemory::Find(memory->data() + kBytes, 1).has_value());
  EXPECT_FALSE(SharedMemory::Find(memory->data() + 1, ~std::size_t{0}).has_value());
}

TEST(SharedMemoryTest, OneThatIsGoneIsNotFoundAndToldOf) {
  std::atomic<int> freed = 0;
  const std::uint64_t listener = SharedMemory::WhenFreed([&] { ++freed; });
  auto memory = SharedMemory::New(kBytes).value();
  const void* const data = memory->data();
  memory.reset();
  EXPECT_EQ(freed, 1);
  EXPECT_FALSE(SharedMemory::Find(data, 1).has_value());
  SharedMemory::Forget(listener);
  SharedMemory::New(kBytes).value().reset();
  EXPECT_EQ(freed, 1);
}

TEST(SharedMemoryTest, NobodyElseCanWriteOrShortenIt) {
  const auto memory = SharedMemory::New(kBytes).value();
  EXPECT_EQ(::mmap(nullptr, kBytes, PROT_WRITE, MAP_SHARED, memory->fd(), 0), MAP_FAILED);
  EXPECT_NE(::ftruncate(memory->fd(), 1), 0);
  EXPECT_EQ(::pwrite(memory->fd(), "x", 1, 0), -1);
}

TEST(SharedMemoryTest, OthersDoNotSeeWritesAfterADetach) {
  const auto memory = SharedMemory::New(kBytes).value();
  const MemoryMapping other = MapToRead(memory->fd(), kBytes).value();
  std::memset(memory->data(), 'a', kBytes);
  EXPECT_EQ(std::memcmp(other.data(), memory->data(), kBytes), 0);
  memory->Detach();
  EXPECT_EQ(std::memcmp(other.data(), memory->data(), kBytes), 0);
  EXPECT_FALSE(SharedMemory::Find(memory->data(), 1).has_value());
  std::memset(memory->data(), 'b', kBytes);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(memory->data()), kBytes), std::string(kBytes, 'b'));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(other.data()), kBytes), std::string(kBytes, 'a'));
  memory->Detach();  // a second time: no effect
  EXPECT_EQ(memory->data()[kBytes - 1], std::byte{'b'});
}

TEST(SharedMemoryTest, NoWriteIsLostWhileItIsDetached) {
  for (int round = 0; round < 50; ++round) {
    const auto memory = SharedMemory::New(kBytes).value();
    auto* const words = reinterpret_cast<std::atomic<std::uint32_t>*>(memory->data());
    constexpr std::uint32_t kWords = kBytes / 4;
    std::atomic<bool> begun = false;
    std::thread writer([&] {
      for (std::uint32_t i = 0; i < 4 * kWords; ++i) {
        words[i % kWords].store(i, std::memory_order_relaxed);
        begun = true;
      }
    });
    while (!begun) {
    }
    memory->Detach();
    writer.join();
    for (std::uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], 3 * kWords + i) << round;
  }
}

TEST(SharedMemoryTest, ThereIsALimit) {
  std::vector<std::shared_ptr<SharedMemory>> all;
  for (std::size_t i = 0; i < SharedMemory::kLiveMax; ++i) {
    all.push_back(SharedMemory::New(4096).value());
  }
  EXPECT_FALSE(SharedMemory::New(4096).ok());
  all.pop_back();
  EXPECT_TRUE(SharedMemory::New(4096).ok());
}

TEST(SharedMemoryTest, MoreThanThereCanBeIsAnError) {
  EXPECT_FALSE(SharedMemory::New(std::size_t{1} << 62).ok());
  EXPECT_FALSE(SharedMemory::New(~std::size_t{0}).ok());
}

// Another thread of the parent holds what guards them, for ever as far as the child can see.
TEST(SharedMemoryTest, AChildDestroysWhatItInheritedAndMakesItsOwn) {
  std::atomic<bool> within = false, over = false;
  auto memory = SharedMemory::New(kBytes).value();
  auto another = SharedMemory::New(kBytes).value();
  std::atomic<int> told = 0;
  const std::uint64_t listener = SharedMemory::WhenFreed([&] {
    ++told;
    within = true;
    while (!over) std::this_thread::yield();
  });
  std::thread holder([&] { another.reset(); });
  while (!within) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    if (SharedMemory::Find(memory->data(), 1).has_value()) ::_exit(1);
    memory.reset();
    if (told != 1) ::_exit(2);
    const auto own = SharedMemory::New(kBytes);
    if (!own.ok() || !SharedMemory::Find((*own)->data(), 1).has_value()) ::_exit(3);
    ::_exit(0);
  }
  over = true;
  holder.join();
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_TRUE(SharedMemory::Find(memory->data(), 1).has_value());
  SharedMemory::Forget(listener);
}

}  // namespace
}  // namespace leeway::runtime
