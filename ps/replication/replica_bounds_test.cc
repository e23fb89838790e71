// What a replica keeps within bounds, and what it knows after a state transfer, a handover or a
// second try.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "proto/messages/table_settings_schedule.h"
#include "ps/testing/replica_bench.h"

namespace leeway::ps::replica_bounds_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = proto::LogEntryKind;

// ---- one that follows ----

class TriedAgain : public ReplicaBench {
 protected:
  TriedAgain() { TakeChain({0, 1}); }
};

TEST_F(TriedAgain, AnEntryHasTheUpdatesThatItHadAtFirst) {
  LogEntry unknown = Update(1, 10);
  unknown.header.table = kBspTable + 1;
  Say(0, 100, 1, Update(1, 1));
  Say(0, 100, 2, unknown);
  Say(0, 100, 3, Of(Kind::kClose, 1));
  ASSERT_EQ(index(), 0u);
  TableSpec spec = TableSpec::Dense("late", {kElements});
  ASSERT_TRUE(shard_context().tables.Install(kBspTable + 1, spec, *MakeUpdater(spec)).ok());
  Say(0, 100, 3, Of(Kind::kClose, 1));
  EXPECT_EQ(index(), 1u);
  EXPECT_EQ(Value(), 1);
}

// ---- one that is joining ----

class TransferredTwice : public ReplicaBench {
 protected:
  TransferredTwice() { TakeChain({0}, {1}); }
};

TEST_F(TransferredTwice, IsNotReadyBeforeTheSecondTransferHasEnded) {
  Say(0, 100, 1, Of(Kind::kTransferBegin, 5));
  Say(0, 100, 2, Of(Kind::kTransferEnd, 5));
  ASSERT_TRUE(replica().ready());
  Say(0, 200, 1, Of(Kind::kTransferBegin, 9));
  EXPECT_FALSE(replica().ready());
  Say(0, 200, 2, Of(Kind::kTransferEnd, 9));
  EXPECT_TRUE(replica().ready());
}

// The table's updates are multiplied by a learning rate, which has been changed.
TEST_F(TransferredTwice, AppliesPushesByTheSettingsThatTheyHave) {
  constexpr std::uint32_t kSgdTable = kBspTable + 1;
  TableSpec spec = TableSpec::Dense("sgd", {kElements});
  spec.consistency = Consistency::Asp();
  spec.updater = {"sgd", {{"learning_rate", 1}}};
  ASSERT_TRUE(shard_context().tables.Install(kSgdTable, spec, *MakeUpdater(spec)).ok());
  proto::TableSettings changed = proto::TableSettingsOf(spec);
  changed.table = kSgdTable;
  changed.number = 1;
  changed.decided = true;
  changed.parameters["learning_rate"] = 0.5;
  ASSERT_TRUE(shard_context().tables.Follow({changed}).ok());
  const auto entry = [&](std::uint64_t index) {
    LogEntry push = PushEntry(PushOf(index, 8, kSgdTable));
    push.header.index = index;
    push.header.table_settings = 1;
    return push;
  };
  const auto value = [&] {
    const auto& store = replica().shard().stores().at(kSgdTable);
    return reinterpret_cast<const float*>(store->Freeze().pieces.at(0).values.data())[0];
  };
  Say(0, 100, 1, Of(Kind::kTransferBegin));
  Say(0, 100, 2, entry(1));
  ASSERT_EQ(value(), -4);
  Say(0, 200, 1, Of(Kind::kTransferBegin));
  Say(0, 200, 2, entry(1));
  EXPECT_EQ(value(), -4);
}

// ---- the head ----

class BoundedHead : public ReplicaBench {
 protected:
  BoundedHead() { TakeChain({1, 2}); }
  void SetWorker(proto::WorkerState state, bool late = false) {
    replica().shard().SetWorker(
        {.node = 20, .rank = 0, .incarnation = kWorker, .state = state, .late = late});
  }
};

TEST_F(BoundedHead, KeepsNoMoreAnswersThanItMay) {
  context().log.bytes_max = std::uint64_t{1} << 40;
  for (std::size_t i = 0; i < kAnswersWaitingMax; ++i) ASSERT_TRUE(Push(1).ok());
  EXPECT_EQ(shard_context().counters->replies_unsent, 0u);
  ASSERT_TRUE(Push(1).ok());
  EXPECT_EQ(shard_context().counters->replies_unsent, 1u);
}

TEST_F(BoundedHead, LimitsStateTransfersUnderWay) {
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  context().transfers = kTransfersAtOnce;  // other shards
  TakeChain({1}, {2});
  EXPECT_EQ(context().transfers, kTransfersAtOnce);
  EXPECT_THAT(SentTo(2), IsEmpty());
  --context().transfers;
  replica().Nudge();
  EXPECT_THAT(SentTo(2), testing::Not(IsEmpty()));
}

TEST_F(BoundedHead, LetsGoOfEarlyRequestsOfADeadWorker) {
  SetWorker(proto::WorkerState::kAlive);
  PushAs(3, 1);
  ASSERT_GT(shard_context().early.bytes, 0u);
  SetWorker(proto::WorkerState::kDead);
  EXPECT_EQ(shard_context().early.bytes, 0u);
}

// It is the next clock then that somebody who comes late pushes to.
TEST_F(BoundedHead, HasClosedTheLastClockWhenNoWorkerIsLeft) {
  SetWorker(proto::WorkerState::kAlive);
  PushAs(1, 5, kBspTable);
  SetWorker(proto::WorkerState::kLeft);
  replica().shard().CloseClocks();
  EXPECT_EQ(replica().shard().closed(), 1u);
}

TEST_F(BoundedHead, TellsANewReplicaThatItHasForgottenRefusals) {
  for (std::uint64_t sequence = 1; sequence <= kFailuresRememberedMax + 1; ++sequence) {
    PushAs(sequence, 1, /*table=*/99);
  }
  const std::vector<proto::Refusal> refusals = replica().shard().ExportBegin().header.refusals;
  EXPECT_TRUE(std::ranges::any_of(refusals, [](const auto& one) { return one.with_earlier; }));
}

// ---- handing over ----

TEST_F(BoundedHead, KeepsItsHandoverUntilAllOfItIsAcknowledged) {
  ASSERT_TRUE(Push(1).ok());
  TakeChain({2, 1});
  SentTo(2);
  Acknowledge(2, stream(), 1, 1);
  Acknowledge(2, 0, 0, 0);
  EXPECT_THAT(entries_back_, IsEmpty()) << "the end of it may be lost";
  EXPECT_THAT(SentTo(2), testing::Not(IsEmpty()));
}

// It was handed what a late worker had pushed in clocks that have not closed, and has given it on.
TEST_F(TriedAgain, AFormerHeadForgetsThatADeadWorkerEndedClocksThatItGaveAway) {
  const auto set = [&](proto::WorkerState state) {
    replica().shard().SetWorker(
        {.node = 20, .rank = 0, .incarnation = kWorker, .state = state, .late = true});
  };
  replica().shard().SetWorker({.node = 21, .rank = 1, .incarnation = kWorker + 1});
  set(proto::WorkerState::kAlive);
  TakeChain({1, 0});
  LogEntry end = Of(Kind::kHandoverEnd);
  end.header.workers = {{.rank = 0, .incarnation = kWorker, .clock = 4, .since = 1}};
  Say(0, 100, 1, end);
  ASSERT_TRUE(replica().shard().clocks().HasEnded(0, kWorker, 2));
  TakeChain({0, 1});
  set(proto::WorkerState::kDead);
  EXPECT_FALSE(replica().shard().clocks().HasEnded(0, kWorker, 2));
}

TEST_F(TriedAgain, ANewHeadKnowsWhichClocksHadClosedWithoutAPush) {
  TakeChain({1, 0});
  LogEntry end = Of(Kind::kHandoverEnd);
  end.header.clock = 7;
  Say(0, 100, 1, end);
  ASSERT_TRUE(replica().leads());
  EXPECT_EQ(replica().shard().closed(), 7u);
}

}  // namespace
}  // namespace leeway::ps::replica_bounds_test
