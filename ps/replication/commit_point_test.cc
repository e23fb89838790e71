#include "ps/replication/commit_point.h"

#include <gtest/gtest.h>

namespace leeway::ps::commit_point_test {

LogEntry EntryAt(std::uint64_t index) {
  LogEntry entry;
  entry.header.index = index;
  return entry;
}

class CommitPointTest : public testing::Test {
 protected:
  runtime::ByteBudget log_{.bytes_max = 1 << 20};
  CommitPoint commit_{&log_};
};

TEST_F(CommitPointTest, WithoutAFollowerEverythingIsCommitted) {
  EXPECT_EQ(commit_.committed(5), 5u);
  commit_.Append(EntryAt(5));
  EXPECT_TRUE(commit_.uncommitted().empty());
  EXPECT_FALSE(commit_.Advance(9));
}

TEST_F(CommitPointTest, WithOneItIsWhatWasAcknowledged) {
  commit_.SetGating(true, 5);
  EXPECT_EQ(commit_.committed(7), 5u);
  EXPECT_TRUE(commit_.Advance(6));
  EXPECT_FALSE(commit_.Advance(6));
  EXPECT_FALSE(commit_.Advance(4));
  EXPECT_EQ(commit_.committed(7), 6u);
  commit_.SetGating(false, 7);
  EXPECT_EQ(commit_.committed(7), 7u);
}

TEST_F(CommitPointTest, KeepsEntriesUntilTheyAreCommitted) {
  commit_.SetGating(true, 0);
  for (std::uint64_t index = 1; index <= 3; ++index) commit_.Append(EntryAt(index));
  EXPECT_GT(log_.bytes, 0u);
  commit_.Advance(2);
  commit_.Trim(3);
  ASSERT_EQ(commit_.uncommitted().size(), 1u);
  EXPECT_EQ(commit_.uncommitted().front().header.index, 3u);
  commit_.Advance(3);
  commit_.Trim(3);
  EXPECT_EQ(log_.bytes, 0u);
}

TEST_F(CommitPointTest, AClockIsStableWhenTheEntryThatClosedItIsCommitted) {
  commit_.SetGating(true, 0);
  EXPECT_FALSE(commit_.UpdateStable(/*index=*/1, /*closed=*/1));
  EXPECT_FALSE(commit_.UpdateStable(/*index=*/2, /*closed=*/3));
  commit_.Advance(1);
  EXPECT_TRUE(commit_.UpdateStable(2, 3));
  EXPECT_EQ(commit_.stable(), 1u);
  commit_.Advance(2);
  EXPECT_TRUE(commit_.UpdateStable(2, 3));
  EXPECT_EQ(commit_.stable(), 3u);
  EXPECT_FALSE(commit_.UpdateStable(2, 3));
}

}  // namespace leeway::ps::commit_point_test
