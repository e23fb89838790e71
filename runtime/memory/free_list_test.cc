#include "runtime/memory/free_list.h"

#include <cstring>
#include <list>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leeway::runtime {
namespace {

using List = FreeList<192>;

TEST(FreeListTest, GivesOutNothingTwice) {
  std::set<void*> out;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2000; ++i) {
      void* const memory = List::Take();
      std::memset(memory, 0xab, 192);
      ASSERT_TRUE(out.insert(memory).second);
    }
    for (void* memory : out) List::Give(memory);
    out.clear();
  }
}

TEST(FreeListTest, FreedObjectsAreUsedAgain) {
  if (kSanitized) GTEST_SKIP() << "everything comes from the heap then";
  void* const first = List::Take();
  void* const second = List::Take();
  List::Give(first);
  List::Give(second);
  EXPECT_EQ(List::Take(), second);
  EXPECT_EQ(List::Take(), first);
  List::Give(first);
  List::Give(second);
}

// One thread allocates all pieces and the other frees them: the memory of neither may grow without
// limit.
TEST(FreeListTest, MayBeGivenBackByAnotherThread) {
  std::vector<void*> taken;
  for (std::size_t i = 0; i < 3 * List::kKeptMax; ++i) taken.push_back(List::Take());
  std::thread([&] {
    for (void* memory : taken) List::Give(memory);
  }).join();
}

// A thread's thread_local objects may free memory after its list has been destroyed.
TEST(FreeListTest, MayBeGivenBackWhileAThreadEnds) {
  struct Late {
    ~Late() { List::Give(memory); }
    void* memory = nullptr;
  };
  std::thread([] {
    thread_local Late late;
    late.memory = List::Take();
    void* const other = List::Take();
    List::Give(other);
  }).join();
}

TEST(FreeListTest, ServesContainersAndSharedPointers) {
  std::list<int, Recycled<int>> numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(i);
  std::vector<std::shared_ptr<int>> shared;
  for (int i = 0; i < 100; ++i) shared.push_back(std::allocate_shared<int>(Recycled<int>(), i));
  std::vector<int, Recycled<int>> many(numbers.begin(), numbers.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*shared[i], many[i]);
}

}  // namespace
}  // namespace leeway::runtime
