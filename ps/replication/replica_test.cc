// What one replica takes from its neighbours, and what it says to them, message by message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ps/table/contributions.h"
#include "ps/testing/replica_bench.h"

namespace leeway::ps::replica_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = proto::LogEntryKind;

// ---- one that follows ----

class Follower : public ReplicaBench {
 protected:
  Follower() { TakeChain({0, 1}); }
};

TEST_F(Follower, TakesTheLogInTurn) {
  Say(0, 100, 1, Entry(1, 1));
  Say(0, 100, 2, Entry(2, 10));
  EXPECT_EQ(index(), 2u);
  EXPECT_EQ(Value(), 11);
}

TEST_F(Follower, TakesNoEntryTwice) {
  Say(0, 100, 1, Entry(1, 1));
  Say(0, 100, 1, Entry(1, 1));
  EXPECT_EQ(Value(), 1);
}

TEST_F(Follower, WaitsForMissingEntries) {
  Say(0, 100, 1, Entry(1, 1));
  Say(0, 100, 3, Entry(3, 100));
  EXPECT_EQ(index(), 1u);
  Say(0, 100, 2, Entry(2, 10));
  Say(0, 100, 3, Entry(3, 100));
  EXPECT_EQ(Value(), 111);
}

TEST_F(Follower, AppliesNoEntryThatDoesNotFollowItsLast) {
  Say(0, 100, 1, Entry(1, 1));
  Say(0, 200, 1, Entry(3, 100));
  EXPECT_EQ(index(), 1u);
  EXPECT_EQ(Value(), 1);
}

TEST_F(Follower, PassesOverEntriesThatItHas) {
  Say(0, 100, 1, Entry(1, 1));
  Say(0, 200, 1, Entry(1, 1));
  Say(0, 200, 2, Entry(2, 10));
  EXPECT_EQ(Value(), 11);
}

TEST_F(Follower, TakesNothingOfAnEarlierEpochThanItsPredecessorIsOf) {
  Say(0, 100, 1, Entry(1, 1), epoch() - 1);
  EXPECT_EQ(index(), 0u);
  Say(0, 100, 1, Entry(1, 1));
  EXPECT_EQ(index(), 1u);
}

TEST_F(Follower, TakesNothingFromOthers) {
  Say(2, 100, 1, Entry(1, 1));
  EXPECT_EQ(index(), 0u);
}

TEST_F(Follower, TakesUpNoStreamThatHasBeenGivenUp) {
  Say(0, 100, 1, Entry(1, 1));
  Say(0, 200, 1, Entry(2, 10));
  Say(0, 100, 1, Entry(3, 100));
  EXPECT_EQ(index(), 2u);
}

TEST_F(Follower, AsksForTheBeginningOfAStreamThatItHasNotSeen) {
  Say(0, 100, 2, Entry(1, 1));
  EXPECT_EQ(index(), 0u);
  ASSERT_EQ(back_.size(), 1u);
  EXPECT_EQ(back_[0].stream, 100u);
  EXPECT_EQ(back_[0].entry, 0u);
  EXPECT_EQ(back_[0].since, epoch());
}

TEST_F(Follower, ForgetsUpdatesWhoseStreamEndedBeforeTheirClose) {
  Say(0, 100, 1, Update(1, 1));
  Say(0, 200, 1, Update(1, 1));
  Say(0, 200, 2, Of(Kind::kClose, 1));
  EXPECT_EQ(Value(), 1);
}

TEST_F(Follower, ForgetsUpdatesOfAPredecessorThatAnotherHasReplaced) {
  Say(0, 100, 1, Update(1, 1));
  TakeChain({2, 1});
  Say(2, 200, 1, Update(1, 1));
  Say(2, 200, 2, Of(Kind::kClose, 1));
  EXPECT_EQ(Value(), 1);
}

TEST_F(Follower, PassesOverUpdatesOfEntriesThatItHas) {
  Say(0, 100, 1, Update(1, 1));
  Say(0, 100, 2, Of(Kind::kClose, 1));
  Say(0, 200, 1, Update(1, 1));
  Say(0, 200, 2, Of(Kind::kClose, 1));
  Say(0, 200, 3, Of(Kind::kClose, 2));
  EXPECT_EQ(index(), 2u);
  EXPECT_EQ(Value(), 1);
}

// Its streams have numbers of their own.
TEST_F(Follower, JudgesTheStreamsOfANewPredecessorByThemselves) {
  Say(0, 100, 1, Entry(1, 1));
  TakeChain({2, 1});
  Say(2, 50, 1, Entry(2, 10));
  EXPECT_EQ(index(), 2u);
}

// The one before may have nothing to send that would make another.
TEST_F(Follower, ReportsTheCommitPointOverAnotherConnection) {
  Say(0, 100, 1, Entry(1, 1));
  replica().OnPeerDown(kConnection);
  replica().Acknowledge();
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].committed, 1u);
}

TEST_F(Follower, KnowsWhichClocksHaveClosed) {
  LogEntry close = Of(Kind::kClose, 1);
  close.header.clock = 3;
  Say(0, 100, 1, close);
  EXPECT_EQ(replica().shard().closed(), 4u);
}

TEST_F(Follower, AppliesNothingOfAnEntryThatHasATableItDoesNotKnowYet) {
  LogEntry unknown = Update(1, 10);
  unknown.header.table = kBspTable + 1;
  Say(0, 100, 1, Update(1, 1));
  Say(0, 100, 2, unknown);
  Say(0, 100, 3, Of(Kind::kClose, 1));
  EXPECT_EQ(index(), 0u);
  EXPECT_EQ(Value(), 0);
  EXPECT_THAT(broken_, IsEmpty()) << "it can follow when it knows the table";
}

// A later head waits for the worker as this one does.
TEST_F(Follower, KnowsALateWorkerThatTheLogNamedBeforeTheMap) {
  LogEntry enter = Of(Kind::kEnter, 1);
  enter.header.workers = {{.rank = 0, .incarnation = kWorker, .clock = 4, .since = 4}};
  Say(0, 100, 1, enter);
  replica().shard().SetWorker({.node = 20, .rank = 0, .incarnation = kWorker, .late = true});
  EXPECT_EQ(replica().shard().clocks().living(), 1u);
  EXPECT_EQ(replica().shard().clocks().SinceOf(0), 4u);
  EXPECT_EQ(replica().shard().clocks().ClockOf(0), 4u);
}

// ---- one that is joining ----

class Joining : public ReplicaBench {
 protected:
  Joining() { TakeChain({0}, {1}); }
};

TEST_F(Joining, IsReadyAfterTheWholeState) {
  Say(0, 100, 1, Of(Kind::kTransferBegin, 5));
  EXPECT_FALSE(replica().ready());
  Say(0, 100, 2, Of(Kind::kTransferEnd, 5));
  EXPECT_TRUE(replica().ready());
  EXPECT_EQ(index(), 5u);
}

TEST_F(Joining, TakesNoEndWithoutABeginning) {
  Say(0, 100, 1, Of(Kind::kTransferEnd));
  EXPECT_FALSE(replica().ready());
}

TEST_F(Joining, TakesNoEntriesBeforeItsBeginning) {
  Say(0, 100, 1, Entry(1, 1));
  EXPECT_EQ(index(), 0u);
}

TEST_F(Joining, TakesNoPiecesBeforeItsBeginning) {
  Say(0, 100, 1, Piece(5));
  EXPECT_EQ(Value(), 0);
  Say(0, 100, 1, Of(Kind::kTransferBegin, 5));
  Say(0, 100, 2, Piece(5));
  EXPECT_EQ(Value(), 10);
}

TEST_F(Joining, KnowsWhichClocksHaveClosed) {
  LogEntry begin = Of(Kind::kTransferBegin, 5);
  begin.header.clock = 7;
  Say(0, 100, 1, begin);
  EXPECT_EQ(replica().shard().closed(), 7u);
}

// It was a member before.
class TransferredAnew : public ReplicaBench {
 protected:
  TransferredAnew() {
    TakeChain({0, 1});
    Say(0, 100, 1, Entry(1, 5));
    TakeChain({0}, {1});
    Say(0, 200, 1, Of(Kind::kTransferBegin, 9));
    Say(0, 200, 2, Of(Kind::kTransferEnd, 9));
  }
};

TEST_F(TransferredAnew, KeepsNoOldState) { EXPECT_EQ(Value(), 0); }

TEST_F(TransferredAnew, ForgetsOldSessions) {
  TakeChain({0, 1});
  Die(0);
  TakeChain({1});
  PushAs(1, 7);
  EXPECT_EQ(Value(), 7);
}

TEST_F(Joining, BeginsAnewWithANewPredecessor) {
  Say(0, 100, 1, Of(Kind::kTransferBegin, 5));
  Say(0, 100, 2, Of(Kind::kTransferEnd, 5));
  ASSERT_TRUE(replica().ready());
  TakeChain({0, 2}, {1});
  EXPECT_FALSE(replica().ready());
}

// ---- the head ----

class Head : public ReplicaBench {
 protected:
  Head() { TakeChain({1, 2}); }
};

TEST_F(Head, AnswersWhenItsSuccessorHasTheEntry) {
  ASSERT_TRUE(Push(1).ok());
  EXPECT_THAT(SentTo(2), ElementsAre(1));
  EXPECT_THAT(replies_, IsEmpty());
  Acknowledge(2, stream(), 1, 1);
  EXPECT_EQ(replies_.size(), 1u);
}

TEST_F(Head, BelievesNoAcknowledgementOfAnotherStream) {
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  Acknowledge(2, stream() - 1, 1, 1);
  EXPECT_THAT(replies_, IsEmpty());
}

TEST_F(Head, BelievesNoAcknowledgementOfAnotherServer) {
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  Acknowledge(3, stream(), 1, 1);
  EXPECT_THAT(replies_, IsEmpty());
}

TEST_F(Head, BelievesNoMoreToBeCommittedThanThereIs) {
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  Acknowledge(2, stream(), 1, 100);
  EXPECT_EQ(replies_.size(), 1u);
  ASSERT_TRUE(Push(1).ok());
  EXPECT_EQ(replies_.size(), 1u);
  Acknowledge(2, stream(), 2, 2);
  EXPECT_EQ(replies_.size(), 2u);
}

TEST_F(Head, TheCommitPointDoesNotGoBack) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  Acknowledge(2, stream(), 2, 2);
  Acknowledge(2, stream(), 1, 1);
  EXPECT_EQ(replica().committed(), 2u);
}

TEST_F(Head, ResendsUnacknowledgedEntries) {
  ASSERT_TRUE(Push(1).ok());
  EXPECT_THAT(SentTo(2), ElementsAre(1));
  Pass(absl::Milliseconds(150));
  EXPECT_THAT(SentTo(2), ElementsAre(1));
}

TEST_F(Head, SendsAgainOverANewConnection) {
  ASSERT_TRUE(Push(1).ok());
  EXPECT_THAT(SentTo(2), ElementsAre(1));
  replica().OnLinkUp(Server(2).place);
  EXPECT_THAT(SentTo(2), ElementsAre(1));
}

// It may have come when the successor did not know its predecessor yet.
TEST_F(Head, SendsAgainWhenTheChainHasChanged) {
  ASSERT_TRUE(Push(1).ok());
  EXPECT_THAT(SentTo(2), ElementsAre(1));
  TakeChain({1, 2, 3});
  EXPECT_THAT(SentTo(2), ElementsAre(1));
}

TEST_F(Head, SendsANewSuccessorTheUncommittedEntriesOnly) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  Acknowledge(2, stream(), 3, 1);
  EXPECT_EQ(replies_.size(), 1u);
  TakeChain({1, 3});
  EXPECT_THAT(SentTo(3), ElementsAre(2, 3));
  EXPECT_EQ(replies_.size(), 1u) << "the new successor is waited for";
  Acknowledge(3, stream(), 2, 3);
  EXPECT_EQ(replies_.size(), 3u);
}

TEST_F(Head, BeginsAStreamAnewForASuccessorThatHasForgottenIt) {
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  const std::uint64_t first = stream();
  Acknowledge(2, first, 1, 0);
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  // From when it was somebody else's follower, and forgot: the entries since then are not its own.
  Acknowledge(2, first, 0, 0, epoch() + 1);
  EXPECT_THAT(SentTo(2), ElementsAre(1, 2));
  EXPECT_NE(stream(), first);
}

TEST_F(Head, DoesNotBeginAStreamAnewForWordFromBeforeIt) {
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  const std::uint64_t first = stream();
  Acknowledge(2, first, 1, 0);
  Acknowledge(2, first, 0, 0, epoch());
  ASSERT_TRUE(Push(1).ok());
  SentTo(2);
  EXPECT_EQ(stream(), first);
}

TEST_F(Head, TakesNoPushesWhenItsSuccessorIsFarBehind) {
  context().log.bytes_max = 100;
  ASSERT_TRUE(Push(1).ok());
  EXPECT_FALSE(Push(1).ok());
}

TEST_F(Head, KeepsAnswersToReadersWithinABudget) {
  ASSERT_TRUE(Push(1).ok());
  context().readers.bytes_max = 1000;
  Read();
  EXPECT_THAT(replies_, IsEmpty());
  Read();
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_EQ(replies_[0].result.code(), absl::StatusCode::kUnavailable);
  SentTo(2);
  Acknowledge(2, stream(), 1, 1);
  EXPECT_EQ(context().readers.bytes, 0u);
}

TEST_F(Head, CountsAStateTransferWhileItLasts) {
  ASSERT_TRUE(Push(1).ok());
  context().limits.window_bytes = 1;
  TakeChain({1}, {2});
  EXPECT_EQ(context().transfers, 1u);
  TakeChain({1});
  EXPECT_EQ(context().transfers, 0u);
}

// Workers keep their pushes until they hear of it.
TEST_F(Head, KnowsThatAClockIsStableThoughLaterEntriesAreUnderWay) {
  replica().shard().SetWorker({.node = 20, .rank = 0, .incarnation = kWorker});
  PushAs(1, 5, kBspTable);
  Shard::Watermarks watermarks;
  watermarks.by_class[kHeld] = 1;
  replica().shard().TakeTick(0, kWorker, 1, 0, watermarks);
  replica().UpdateStable();
  ASSERT_TRUE(Push(1).ok());
  EXPECT_THAT(SentTo(2), ElementsAre(1, 1, 2));
  EXPECT_EQ(replica().stable(), 0u);
  Acknowledge(2, stream(), 2, 1);
  EXPECT_EQ(replica().stable(), 1u);
}

TEST_F(Head, ForgetsAReplacedWorker) {
  replica().shard().SetWorker({.node = 20, .rank = 0, .incarnation = kWorker});
  PushAs(1, 5);
  replica().shard().SetWorker({.node = 21, .rank = 0, .incarnation = kWorker + 1});
  EXPECT_EQ(replica().shard().ExportBegin().header.workers.size(), 1u);
}

// What it had pushed in clocks that it had ended counts, whenever they close.
TEST_F(Head, ForgetsAReplacedWorkerWhoseClockClosesLater) {
  replica().shard().SetWorker({.node = 20, .rank = 0, .incarnation = kWorker});
  replica().shard().SetWorker({.node = 21, .rank = 1, .incarnation = kWorker + 1});
  PushAs(1, 5, kBspTable);
  Shard::Watermarks watermarks;
  watermarks.by_class[kHeld] = 1;
  replica().shard().TakeTick(0, kWorker, 1, 0, watermarks);
  replica().shard().SetWorker({.node = 22, .rank = 0, .incarnation = kWorker + 2, .late = true});
  replica().shard().TakeTick(1, kWorker + 1, 1, 0, {});
  EXPECT_EQ(replica().shard().closed(), 1u);
  EXPECT_EQ(counters().pushes_applied, 1u);
  EXPECT_EQ(replica().shard().ExportBegin().header.workers.size(), 2u);
}

TEST_F(Follower, ForgetsAReplacedWorkerBeforeItsHeadDoes) {
  replica().shard().SetWorker({.node = 20, .rank = 0, .incarnation = kWorker});
  replica().shard().SetWorker({.node = 21, .rank = 0, .incarnation = kWorker + 1});
  replica().shard().SeeMap(8);
  LogEntry entry = Entry(1, 1);  // of the one before
  entry.header.map_version = 7;
  Say(0, 100, 1, entry);
  EXPECT_EQ(Value(), 1);
  EXPECT_EQ(replica().shard().ExportBegin().header.workers.size(), 1u);
}

TEST_F(Head, TakesPushesWithTheNumbersThatAnotherShardOfACheckpointHas) {
  ShardContent content;
  content.num_shards = 2;
  content.shard = 1;
  content.sessions = {{.rank = 0, .incarnation = kWorker, .admitted = 5}};
  ASSERT_TRUE(replica().shard().Restore(content).ok());
  PushAs(1, 7);
  EXPECT_EQ(Value(), 7);
}

// It has not heard yet how far workers are.
TEST_F(Follower, TakesPartInNoCheckpointRightAfterItHasBecomeTheHead) {
  shard_context().held_grace = absl::Seconds(1);
  Say(0, 100, 1, Entry(1, 1));
  Die(0);
  TakeChain({1});
  CutOrder order;
  order.clock = 5;
  order.bounded = true;
  EXPECT_EQ(replica().shard().BeginCut(order, [](auto) {}).code(), absl::StatusCode::kAborted);
  Pass(absl::Seconds(2));
  EXPECT_TRUE(replica().shard().BeginCut(order, [](auto) {}).ok());
}

// ---- handing over ----

class OldHead : public ReplicaBench {
 protected:
  OldHead() {
    TakeChain({1, 2});
    EXPECT_TRUE(Push(1).ok());
    SentTo(2);
    Acknowledge(2, stream(), 1, 1);
    replies_.clear();
    EXPECT_TRUE(Push(10).ok());
    SentTo(2);
  }
};

TEST_F(OldHead, AnswersNothingThatItsSuccessorHasNotAcknowledged) {
  TakeChain({2, 1});
  EXPECT_THAT(replies_, IsEmpty());
}

TEST_F(OldHead, SendsTheHandoverAgainWhenItIsAskedFor) {
  TakeChain({2, 1});
  EXPECT_FALSE(SentTo(2).empty());
  Acknowledge(2, 0, 0, 0);
  EXPECT_FALSE(SentTo(2).empty());
}

TEST_F(OldHead, SaysThatThereIsNothingMoreWhenAllWasTaken) {
  TakeChain({2, 1});
  SentTo(2);
  Acknowledge(2, stream(), 3, 2);
  Acknowledge(2, 0, 0, 0);
  ASSERT_EQ(entries_back_.size(), 1u);
  EXPECT_EQ(entries_back_[0].kind, Kind::kHandoverEnd);
}

TEST_F(OldHead, GivesUpItsPartOfACheckpoint) {
  replica().shard().SetWorker({.node = 20, .rank = 0, .incarnation = kWorker});
  CutOrder order;
  order.clock = 5;
  order.bounded = true;
  absl::Status cut;
  ASSERT_TRUE(
      replica().shard().BeginCut(order, [&](const auto& frozen) { cut = frozen.status(); }).ok());
  TakeChain({2, 1});
  EXPECT_EQ(cut.code(), absl::StatusCode::kAborted);
}

TEST_F(OldHead, HandsHeldPushesOverWithTheirLearningRates) {
  Contribution held{.push = ToPush(PushOf(1, 5, kBspTable))};
  held.push.learning_rate = 0.5;
  const LogEntry entry = HeldEntry(*shard_context().tables.Find(kBspTable), /*clock=*/3, held);
  EXPECT_EQ(ToPush(entry).learning_rate, 0.5);
}

class NewHead : public ReplicaBench {
 protected:
  NewHead() {
    TakeChain({0, 1});
    Say(0, 100, 1, Entry(1, 1));
  }
};

TEST_F(NewHead, ServesAfterTheHandover) {
  TakeChain({1, 0});
  EXPECT_FALSE(Push(1).ok());
  Say(0, 100, 2, Of(Kind::kHandoverEnd));
  EXPECT_TRUE(replica().leads());
  EXPECT_TRUE(Push(1).ok());
}

// Those of workers that have died since are not told again.
TEST_F(NewHead, IsHandedTheClocksOfWorkers) {
  replica().shard().SetWorker({.node = 20, .rank = 0, .incarnation = kWorker});
  TakeChain({1, 0});
  LogEntry end = Of(Kind::kHandoverEnd);
  end.header.workers = {{.rank = 0, .incarnation = kWorker, .clock = 4}};
  Say(0, 100, 2, end);
  EXPECT_EQ(replica().shard().clocks().ClockOf(0), 4u);
}

TEST_F(NewHead, AsksForTheHandoverUntilItComes) {
  TakeChain({1, 0});
  asked_.clear();
  replica().Nudge();
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].stream, 0u);
}

TEST_F(NewHead, AcknowledgesAnEndThatIsSentAgain) {
  TakeChain({1, 0});
  Say(0, 100, 2, Of(Kind::kHandoverEnd));
  ASSERT_TRUE(replica().leads());
  TakeChain({1, 2, 0});
  back_.clear();
  Say(0, 100, 2, Of(Kind::kHandoverEnd));
  ASSERT_EQ(back_.size(), 1u);
  EXPECT_EQ(back_[0].entry, 2u);
}

TEST_F(NewHead, TakesNoHandoverBeforeTheMapThatSaysSo) {
  Say(0, 100, 2, Of(Kind::kHandoverEnd));
  TakeChain({1, 0});
  EXPECT_FALSE(replica().leads());
  Say(0, 100, 2, Of(Kind::kHandoverEnd));
  EXPECT_TRUE(replica().leads());
}

// What it had held its workers keep, and send again.
TEST_F(NewHead, TakesNothingOfAHandoverThatWasBrokenOff) {
  TakeChain({1, 0});
  Say(0, 100, 2, Held(2, 10));
  Die(0);
  TakeChain({1});
  ASSERT_TRUE(replica().leads());
  EXPECT_EQ(Value(), 1);
}

TEST_F(NewHead, DoesNotAwaitAHandoverOfADeadHead) {
  Die(0);
  TakeChain({1, 2});
  EXPECT_TRUE(replica().leads());
}

TEST_F(NewHead, LeadsWithoutAHandoverOnLeadNow) {
  TakeChain({1, 0});
  replica().OnLeadNow({.epoch = epoch() - 1, .shard = 0, .from = 0});
  EXPECT_FALSE(replica().leads()) << "that was said of an earlier handover";
  replica().OnLeadNow({.epoch = epoch(), .shard = 0, .from = 2});
  EXPECT_FALSE(replica().leads()) << "that was said of another server";
  replica().OnLeadNow({.epoch = epoch(), .shard = 0, .from = 0});
  EXPECT_TRUE(replica().leads());
}

}  // namespace
}  // namespace leeway::ps::replica_test
