#include "worker/operations/due_operations.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Time kStart = absl::UnixEpoch();

class DueOperationsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Operation> Make() {
    auto operation = Operation::New();
    operation->number = ++made_;
    return operation;
  }
  static std::vector<std::uint64_t> Numbers(
      const std::vector<std::shared_ptr<Operation>>& operations) {
    std::vector<std::uint64_t> numbers;
    for (const auto& operation : operations) numbers.push_back(operation->number);
    return numbers;
  }

  DueOperations due_;
  std::uint64_t made_ = 0;
};

TEST_F(DueOperationsTest, TheEarliestComesFirstWhateverItsTimeout) {
  due_.Set(Make(), kStart, absl::Seconds(9));                     // 1: at 9
  due_.Set(Make(), kStart + absl::Seconds(1), absl::Seconds(2));  // 2: at 3
  due_.Set(Make(), kStart + absl::Seconds(2), absl::Seconds(9));  // 3: at 11
  due_.Set(Make(), kStart + absl::Seconds(4), absl::Seconds(5));  // 4: at 9
  EXPECT_EQ(due_.First(), kStart + absl::Seconds(3));
  EXPECT_THAT(Numbers(due_.By(kStart + absl::Seconds(2))), IsEmpty());
  EXPECT_THAT(Numbers(due_.By(kStart + absl::Seconds(9))), ElementsAre(2, 1, 4));
  EXPECT_THAT(Numbers(due_.All()), ElementsAre(2, 1, 4, 3));
}

TEST_F(DueOperationsTest, ARemovedOperationIsNotDue) {
  const auto first = Make();
  const auto second = Make();
  due_.Set(first, kStart, absl::Seconds(1));
  due_.Set(second, kStart, absl::Seconds(1));
  due_.Remove(*first);
  due_.Remove(*first);
  EXPECT_THAT(Numbers(due_.All()), ElementsAre(2));
  due_.Remove(*second);
  EXPECT_TRUE(due_.empty());
}

TEST_F(DueOperationsTest, ASecondSetReplacesTheFirst) {
  const auto operation = Make();
  due_.Set(operation, kStart, absl::Seconds(9));
  due_.Set(Make(), kStart, absl::Seconds(4));
  due_.Set(operation, kStart + absl::Seconds(1), absl::Seconds(1));
  EXPECT_EQ(due_.First(), kStart + absl::Seconds(2));
  EXPECT_THAT(Numbers(due_.All()), ElementsAre(1, 2));
}

TEST_F(DueOperationsTest, KeepsItsOperationsAlive) {
  std::weak_ptr<Operation> weak;
  {
    const auto operation = Make();
    weak = operation;
    due_.Set(operation, kStart, absl::InfiniteDuration());
  }
  ASSERT_FALSE(weak.expired());
  due_.Remove(*due_.All()[0]);
  EXPECT_TRUE(weak.expired());
}

}  // namespace
}  // namespace leeway::worker
