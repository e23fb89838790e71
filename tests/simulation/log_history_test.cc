#include "tests/simulation/log_history.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "proto/encoding/encoding.h"

namespace leeway::simulation::log_history_test {
namespace {

class LogHistoryTest : public ::testing::Test {
 protected:
  static proto::Replicate Entry(std::uint64_t epoch, std::uint64_t index,
                                std::uint32_t worker = 0) {
    return {.shard = 2,
            .epoch = epoch,
            .stream = 1,
            .entry = index,
            .kind = proto::LogEntryKind::kEnter,
            .index = index,
            .workers = {{.rank = worker, .incarnation = 7}}};
  }
  void Send(const std::string& from, const proto::AnyMessage& message) {
    van::Message raw;
    raw.header = proto::Encode(message);
    logs_.Hear(van::Overheard(from, "", {}, std::move(raw)));
  }
  void Commit(std::uint64_t index) {
    Send("server1",
         proto::ReplicateAck{.shard = 2, .stream = 1, .entry = index, .committed = index});
  }
  std::string Violation() const {
    return checker_.violation().has_value() ? checker_.violation()->invariant : "";
  }

  const History history_{0, 1};
  Checker checker_{&history_};
  LogHistory logs_{&checker_};
};

TEST_F(LogHistoryTest, EntriesMayBeSentAgainByAnyServerAndInLaterEpochs) {
  Send("server0", Entry(1, 5));
  Send("server1", Entry(1, 5));
  Commit(5);
  Send("server0", Entry(1, 5));
  Send("server1", Entry(2, 5));
  Send("server1", Entry(2, 6));
  EXPECT_EQ(Violation(), "");
  EXPECT_EQ(logs_.entries(), 5u);
}

TEST_F(LogHistoryTest, AnEntryThatIsNotCommittedMayBecomeAnotherOneInALaterEpoch) {
  Send("server0", Entry(1, 5));
  Commit(4);
  Send("server1", Entry(2, 5, /*worker=*/1));
  EXPECT_EQ(Violation(), "");
}

TEST_F(LogHistoryTest, ACommittedEntryStaysWhatItIs) {
  Send("server0", Entry(1, 5));
  Commit(5);
  Send("server1", Entry(2, 5, /*worker=*/1));
  EXPECT_EQ(Violation(), "committed entries stay");
}

TEST_F(LogHistoryTest, WhatNobodyHasSentIsNotCommitted) {
  Send("server0", Entry(1, 5));
  Commit(6);
  Send("server0", Entry(1, 6));
  EXPECT_EQ(Violation(), "");
}

// It was the head, and may die before the new head has the entries that it sends.
TEST_F(LogHistoryTest, ATailCommitsNothingThatItWasTheFirstToSend) {
  Send("server0", Entry(1, 4));
  Send("server1", Entry(1, 5));
  Commit(5);
  Send("server0", Entry(2, 5, /*worker=*/1));
  EXPECT_EQ(Violation(), "");
  Send("server0", Entry(2, 4, /*worker=*/1));
  EXPECT_EQ(Violation(), "committed entries stay");
}

TEST_F(LogHistoryTest, ADeposedHeadMaySendWhatIsNeverCommitted) {
  Send("server2", Entry(2, 5));
  Commit(5);
  Send("server0", Entry(1, 5, /*worker=*/1));
  EXPECT_EQ(Violation(), "");
}

TEST_F(LogHistoryTest, NobodyElseWritesInTheSameEpoch) {
  Send("server0", Entry(1, 5));
  Send("server1", Entry(1, 5, /*worker=*/1));
  EXPECT_EQ(Violation(), "one head an epoch");
}

TEST_F(LogHistoryTest, OtherShardsAndWorkersDoNotMatter) {
  Send("server0", Entry(1, 5));
  Commit(5);
  proto::Replicate other = Entry(1, 5, /*worker=*/1);
  Send("worker0", other);
  other.shard = 3;
  Send("server1", other);
  EXPECT_EQ(Violation(), "");
}

}  // namespace
}  // namespace leeway::simulation::log_history_test
