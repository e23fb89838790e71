#include "runtime/memory/byte_budget.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leeway::runtime {
namespace byte_budget_test {

// Charges one byte at a time until there is no room, and returns how many there are then.
std::uint64_t Fill(SharedByteBudget* budget, std::uint64_t queued = 0) {
  while (budget->Charge(queued, 1)) ++queued;
  return queued;
}

TEST(SharedByteBudgetTest, OneQueueAloneGetsHalf) {
  SharedByteBudget budget(1000);
  EXPECT_EQ(Fill(&budget), 500u);
  EXPECT_EQ(budget.bytes(), 500u);
}

TEST(SharedByteBudgetTest, AFullQueueLeavesRoomForOthers) {
  SharedByteBudget budget(1000);
  EXPECT_EQ(Fill(&budget), 500u);
  EXPECT_EQ(Fill(&budget), 250u);
  EXPECT_EQ(Fill(&budget), 125u);
  EXPECT_LT(budget.bytes(), budget.bytes_max());
}

TEST(SharedByteBudgetTest, ReleasedBytesAreThereAgain) {
  SharedByteBudget budget(1000);
  EXPECT_EQ(Fill(&budget), 500u);
  EXPECT_EQ(Fill(&budget), 250u);
  budget.Release(500);
  EXPECT_EQ(Fill(&budget, 250), 500u);
  budget.Release(500);
  EXPECT_EQ(budget.bytes(), 0u);
}

TEST(SharedByteBudgetTest, AMessageLargerThanTheBudgetHasNoRoom) {
  SharedByteBudget budget(1000);
  EXPECT_FALSE(budget.Charge(0, 1001));
  EXPECT_FALSE(budget.Charge(0, ~std::uint64_t{0}));
  EXPECT_TRUE(budget.Charge(0, 1000));
  EXPECT_FALSE(budget.Charge(0, 1));
}

TEST(SharedByteBudgetTest, ThreadsNeverChargeMoreThanThereIs) {
  SharedByteBudget budget(10'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&budget] {
      for (int round = 0; round < 200; ++round) {
        const std::uint64_t charged = Fill(&budget);
        EXPECT_LE(budget.bytes(), budget.bytes_max());
        budget.Release(charged);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.bytes(), 0u);
}

}  // namespace byte_budget_test
}  // namespace leeway::runtime
