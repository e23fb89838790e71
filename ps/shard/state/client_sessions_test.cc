#include "ps/shard/state/client_sessions.h"

#include <gtest/gtest.h>

#include <vector>

#include "proto/messages/limits.h"
#include "ps/table/inbound.h"

namespace leeway::ps::client_sessions_test {

constexpr WorkerKey kWorker{0, 100};

class ClientSessionsTest : public testing::Test {
 protected:
  ClientSessionsTest() { clocks_.Set(0, 100, proto::WorkerState::kAlive); }

  WorkerClocks clocks_;
  runtime::ByteBudget early_{.bytes_max = 1 << 20};
  ClientSessions sessions_{&clocks_, &early_};
};

TEST_F(ClientSessionsTest, WatermarksAreReachedWhenBothClassesHaveBeenAdmitted) {
  ClientSession& session = sessions_.Of(kWorker);
  const Watermarks watermarks{.by_class = {2, 1}};
  EXPECT_FALSE(session.Reached(watermarks));
  session.orders[kAtOnce].Admit(2);
  EXPECT_FALSE(session.Reached(watermarks));
  session.orders[kHeld].Admit(1);
  EXPECT_TRUE(session.Reached(watermarks));
}

TEST_F(ClientSessionsTest, ANewHeadKnowsOfHeldPushesThoseThatAreInTheState) {
  ClientSession& session = sessions_.Of(kWorker);
  session.orders[kAtOnce].Admit(5);
  session.orders[kHeld].Admit(4);
  session.in_state = 3;
  sessions_.RestartAsHead();
  EXPECT_EQ(session.orders[kAtOnce].admitted(), 5u);
  EXPECT_EQ(session.orders[kHeld].admitted(), 3u);
  EXPECT_EQ(session.inherited[kHeld], 3u);
}

TEST_F(ClientSessionsTest, WithoutHeldPushesNoOpenClockIsExported) {
  clocks_.Advance(0, 100, 4);
  ClientSession& session = sessions_.Of(kWorker);
  session.orders[kHeld].Admit(4);
  session.in_state = 2;
  const auto follower = sessions_.Export(/*closed=*/3, /*with_held=*/false);
  ASSERT_EQ(follower.size(), 1u);
  EXPECT_EQ(follower[0].clock, 3u);
  EXPECT_EQ(follower[0].admitted_held, 2u);
  const auto head = sessions_.Export(/*closed=*/3, /*with_held=*/true);
  EXPECT_EQ(head[0].clock, 4u);
  EXPECT_EQ(head[0].admitted_held, 4u);
}

TEST_F(ClientSessionsTest, StatementsAboutAReplacedWorkerArePassedOver) {
  sessions_.Of(kWorker).orders[kAtOnce].Admit(5);
  clocks_.Set(0, 101, proto::WorkerState::kAlive);
  sessions_.Replace(kWorker);
  sessions_.SeeMap(7);
  EXPECT_EQ(sessions_.Find(kWorker), nullptr);
  sessions_.Take({{.rank = 0, .incarnation = 100, .clock = 2, .since = 0, .admitted = 7}}, 6);
  EXPECT_EQ(sessions_.Find(kWorker), nullptr);
}

// As where a server gets a shard from one whose map is older than its own: it never saw the worker
// that was replaced, or saw others after it.
TEST_F(ClientSessionsTest, AWorkerThatWasReplacedBeforeTheFirstMapIsPassedOver) {
  sessions_.SeeMap(7);
  constexpr WorkerKey kBefore{0, 99};
  sessions_.Take({{.rank = 0, .incarnation = 99, .admitted = 7}}, 6);
  sessions_.TakeHandover({{.rank = 0, .incarnation = 99, .admitted = 7}}, 7);
  sessions_.TakeRefusals({{.worker = 0, .incarnation = 99, .sequence = 3}}, 6);
  EXPECT_EQ(sessions_.Find(kBefore), nullptr);
}

TEST_F(ClientSessionsTest, OfWhomAPeerTellsThatDoesNotSayItsMapNobodyCountsAsReplaced) {
  sessions_.SeeMap(7);
  sessions_.Take({{.rank = 0, .incarnation = 99, .admitted = 7}}, 0);
  sessions_.SeeMap(8);
  EXPECT_NE(sessions_.Find({0, 99}), nullptr);
  EXPECT_EQ(sessions_.told(), ~std::uint64_t{0});
}

// Nobody can tell whether it is older or newer than the worker that the map here shows, until the
// map is as new as that of whoever told of it.
TEST_F(ClientSessionsTest, AWorkerThatIsToldOfIsKeptUntilAMapWouldShowIt) {
  sessions_.SeeMap(7);
  sessions_.Take({{.rank = 0, .incarnation = 99, .admitted = 7},
                  {.rank = 0, .incarnation = 101, .admitted = 8},
                  {.rank = 1, .incarnation = 5, .admitted = 9}},
                 9);
  EXPECT_EQ(sessions_.told(), 9u);
  sessions_.SeeMap(8);
  EXPECT_NE(sessions_.Find({0, 99}), nullptr);
  EXPECT_NE(sessions_.Find({0, 101}), nullptr);
  clocks_.Set(0, 101, proto::WorkerState::kAlive);
  sessions_.Replace(kWorker);
  sessions_.SeeMap(9);
  EXPECT_EQ(sessions_.Find({0, 99}), nullptr);
  ASSERT_NE(sessions_.Find({0, 101}), nullptr);
  EXPECT_EQ(sessions_.Find({0, 101})->orders[kAtOnce].admitted(), 8u);
  EXPECT_NE(sessions_.Find({1, 5}), nullptr);  // of no rank that the map shows
}

TEST_F(ClientSessionsTest, RefusalsAreTheSameAfterTheyWereTakenElsewhere) {
  RequestOrder& order = sessions_.Of(kWorker).orders[kAtOnce];
  order.Admit(3);
  order.RememberFailure(3, absl::InvalidArgumentError("bad"));
  WorkerClocks clocks;
  ClientSessions other(&clocks, &early_);
  other.TakeRefusals(sessions_.Refusals(), 0);
  EXPECT_EQ(other.Of(kWorker).orders[kAtOnce].admitted(), 3u);
  EXPECT_TRUE(absl::IsInvalidArgument(other.Of(kWorker).orders[kAtOnce].OutcomeOf(3)));
}

// More of them than a message takes: of none it is taken elsewhere that it had succeeded.
TEST_F(ClientSessionsTest, RefusalsThatDoNotFitAreForgottenAndNotForgiven) {
  constexpr std::uint32_t kWorkers = proto::kRefusalsMax / kFailuresRememberedMax + 8;
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    RequestOrder& order = sessions_.Of({rank, 100}).orders[kAtOnce];
    for (std::uint64_t sequence = 2; sequence <= 2 * kFailuresRememberedMax; sequence += 2) {
      order.Admit(sequence);
      order.RememberFailure(sequence, absl::CancelledError("dropped"));
    }
  }
  const std::vector<proto::Refusal> refusals = sessions_.Refusals();
  EXPECT_LE(refusals.size(), proto::kRefusalsMax);
  WorkerClocks clocks;
  ClientSessions other(&clocks, &early_);
  other.TakeRefusals(refusals, 0);
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    const RequestOrder& order = other.Of({rank, 100}).orders[kAtOnce];
    EXPECT_TRUE(absl::IsCancelled(order.OutcomeOf(2 * kFailuresRememberedMax))) << rank;
    EXPECT_FALSE(order.OutcomeOf(2).ok()) << rank;
  }
}

}  // namespace leeway::ps::client_sessions_test
