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
  void Send(const std::string& from, const proto::AnyMessage& message, const std::string& to = "") {
    van::Message raw;
    raw.header = proto::Encode(message);
    logs_.Hear(van::Overheard(from, to, {}, std::move(raw)));
  }
  // The tail says it to the member before it.
  void Commit(std::uint64_t index, const std::string& to = "server0", std::uint64_t stream = 1) {
    Send("server1",
         proto::ReplicateAck{.shard = 2, .stream = stream, .entry = index, .committed = index}, to);
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

TEST_F(LogHistoryTest, EntriesThatNobodyHasSentAreNotCommitted) {
  Send("server0", Entry(1, 5));
  Commit(6);
  Send("server0", Entry(1, 6));
  EXPECT_EQ(Violation(), "");
}

// It was the head, or followed another one, and may die before the new head has what it has.
TEST_F(LogHistoryTest, ATailCommitsNothingThatTheMemberBeforeItHasNotSentIt) {
  Send("server0", Entry(1, 4));
  Send("server1", Entry(1, 5));
  Send("server2", Entry(1, 6));
  Commit(6);
  EXPECT_EQ(logs_.committed(2), 4u);
  Send("server0", Entry(2, 5, /*worker=*/1));
  Send("server0", Entry(2, 6, /*worker=*/1));
  EXPECT_EQ(Violation(), "");
  Send("server0", Entry(2, 4, /*worker=*/1));
  EXPECT_EQ(Violation(), "committed entries stay");
}

TEST_F(LogHistoryTest, AStreamCommitsWhatItHasBroughtItself) {
  Send("server0", Entry(1, 5));
  Commit(5, "server0", /*stream=*/2);
  EXPECT_EQ(logs_.committed(2), 0u);
  proto::Replicate update = Entry(1, 6);
  update.kind = proto::LogEntryKind::kUpdate;
  Send("server0", update);  // a part of entry 6
  Commit(6);
  EXPECT_EQ(logs_.committed(2), 5u);
}

TEST_F(LogHistoryTest, AStateThatWasTransferredIsCommitted) {
  Send("server0", Entry(1, 5));
  proto::Replicate begin = Entry(2, 5);
  begin.kind = proto::LogEntryKind::kTransferBegin;
  begin.stream = 2;
  Send("server2", begin);
  Commit(5, "server2", /*stream=*/2);
  EXPECT_EQ(logs_.committed(2), 5u);
  Send("server2", Entry(2, 5, /*worker=*/1));
  EXPECT_EQ(Violation(), "committed entries stay");
}

// A head that was alone had nobody to send it to. It goes on with an older stream.
TEST_F(LogHistoryTest, AnEntryThatWasInAStateAloneIsWhatIsSentFirst) {
  Send("server0", Entry(1, 4));
  proto::Replicate begin = Entry(2, 6);
  begin.kind = proto::LogEntryKind::kTransferBegin;
  begin.stream = 2;
  Send("server0", begin);
  Commit(6, "server0", /*stream=*/2);
  proto::Replicate part = Entry(2, 5);
  part.kind = proto::LogEntryKind::kUpdate;
  Send("server0", part);
  Send("server0", Entry(2, 5));
  EXPECT_EQ(Violation(), "");
  Send("server1", Entry(3, 5, /*worker=*/1));
  EXPECT_EQ(Violation(), "committed entries stay");
}

TEST_F(LogHistoryTest, ADeposedHeadMaySendWhatIsNeverCommitted) {
  Send("server2", Entry(2, 5));
  Commit(5, "server2");
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
