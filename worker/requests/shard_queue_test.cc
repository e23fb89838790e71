#include "worker/requests/shard_queue.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/slicing/table_info.h"

namespace leeway::worker::shard_queue_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ShardQueueTest : public ::testing::Test {
 protected:
  ShardQueueTest() { queue_.SetHead(&link_); }

  static std::shared_ptr<const TableInfo> TableOf(std::uint32_t id, Consistency consistency) {
    auto table = std::make_shared<TableInfo>();
    table->id = id;
    table->spec = TableSpec::Dense("w", {8});
    table->spec.consistency = consistency;
    return table;
  }

  std::unique_ptr<Request> Push(std::uint64_t block, int priority, std::uint64_t clock = 0) {
    auto request = std::make_unique<Request>();
    request->table = table_;
    request->op = proto::Op::kPush;
    request->piece.block = block;
    request->priority = priority;
    request->clock = clock;
    request->order = next_order_++;
    return request;
  }

  // Numbers a request and marks it as sent.
  Request* Send(std::unique_ptr<Request> owned) {
    Request* const request = queue_.Number(std::move(owned));
    request->state = Request::State::kSent;
    return request;
  }

  // The blocks of the link's queue with their priorities, in the order in which they are sent.
  std::vector<std::pair<std::uint64_t, int>> Queued() const {
    std::vector<std::pair<std::uint64_t, int>> queued;
    for (const Request* request : link_.queue) {
      queued.emplace_back(request->piece.block, request->priority);
    }
    return queued;
  }

  std::shared_ptr<const TableInfo> table_ = TableOf(1, Consistency::Asp());
  Link link_;
  std::uint64_t next_order_ = 1;
  RequestTotals totals_;
  ShardQueue queue_{&next_order_, &totals_};
};

TEST_F(ShardQueueTest, NumbersRequestsInTheOrderOfTheCalls) {
  EXPECT_EQ(Send(Push(0, 0))->sequence, 1u);
  EXPECT_EQ(Send(Push(1, 0))->sequence, 2u);
  EXPECT_EQ(queue_.Find(2)->piece.block, 1u);
  EXPECT_EQ(queue_.Find(3), nullptr);
}

TEST_F(ShardQueueTest, UnnumberedRequestsAreQueuedByPriority) {
  queue_.EnqueueNew(Push(0, 0));
  queue_.EnqueueNew(Push(1, 5));
  EXPECT_THAT(Queued(), ElementsAre(Pair(1, 5), Pair(0, 0)));
}

TEST_F(ShardQueueTest, AnUrgentRequestRaisesEarlierOnesToTheSameElement) {
  queue_.EnqueueNew(Push(0, 0));
  queue_.EnqueueNew(Push(1, 1));
  queue_.EnqueueNew(Push(0, 5));
  EXPECT_THAT(Queued(), ElementsAre(Pair(0, 5), Pair(0, 5), Pair(1, 1)));
  EXPECT_LT((*link_.queue.begin())->order, (*std::next(link_.queue.begin()))->order);
}

TEST_F(ShardQueueTest, ANumberRaisesQueuedRequestsWithSmallerNumbers) {
  Request* const resent = Send(Push(0, 0));
  queue_.Enqueue(resent);
  queue_.EnqueueNew(Push(1, 5));
  ASSERT_EQ((*link_.queue.begin())->piece.block, 1u);
  EXPECT_TRUE(queue_.NumberQueued(*link_.queue.begin()));
  EXPECT_THAT(Queued(), ElementsAre(Pair(0, 5), Pair(1, 5)));
}

TEST_F(ShardQueueTest, ASettledRequestLeavesNoHoleInTheListOfItsClass) {
  Request* const first = Send(Push(0, 0));
  Send(Push(1, 0));
  Request* const third = Send(Push(2, 0));
  queue_.TakeOut(2);
  EXPECT_EQ(third->earlier, first);
  EXPECT_EQ(queue_.Find(2), nullptr);
  EXPECT_EQ(queue_.numbers(), 3u);
  queue_.TakeOut(1);
  EXPECT_EQ(third->earlier, nullptr);
  EXPECT_EQ(queue_.numbers(), 1u);
}

TEST_F(ShardQueueTest, ClassesHaveListsOfTheirOwn) {
  Send(Push(0, 0, /*clock=*/3));
  table_ = TableOf(2, Consistency::Bsp());
  Request* const held = Send(Push(0, 0, /*clock=*/4));
  EXPECT_EQ(held->earlier, nullptr);
  EXPECT_EQ(queue_.LastPushBefore(4, /*held=*/false), 1u);
  EXPECT_EQ(queue_.LastPushBefore(4, /*held=*/true), 0u);
  EXPECT_EQ(queue_.LastPushBefore(5, /*held=*/true), 2u);
}

TEST_F(ShardQueueTest, WithdrawingGivesBytesInFlightBack) {
  Request* const request = Send(Push(0, 0));
  request->bytes = 100;
  request->in_flight = true;
  link_.in_flight_bytes = 150;
  queue_.Withdraw(request);
  EXPECT_EQ(link_.in_flight_bytes, 50u);
  EXPECT_FALSE(request->in_flight);
}

// Their link would send them after they have gone, and never get their bytes back.
TEST_F(ShardQueueTest, RequestsThatAreTakenOutLeaveTheirLink) {
  Request* const sent = Send(Push(0, 0));
  sent->bytes = 100;
  sent->in_flight = true;
  queue_.Enqueue(Send(Push(1, 0)));
  link_.in_flight_bytes = 100;
  EXPECT_EQ(queue_.TakeAll().size(), 2u);
  EXPECT_THAT(Queued(), IsEmpty());
  EXPECT_EQ(link_.in_flight_bytes, 0u);
}

TEST_F(ShardQueueTest, ANewHeadIsAnotherLinkOrAnotherProcessBehindTheSame) {
  EXPECT_TRUE(queue_.IsLedBy(&link_));
  ++link_.generation;
  EXPECT_FALSE(queue_.IsLedBy(&link_));
  queue_.SetHead(&link_);
  EXPECT_TRUE(queue_.IsLedBy(&link_));
  queue_.SetLost();
  EXPECT_FALSE(queue_.IsLedBy(&link_));
}

TEST_F(ShardQueueTest, ANewHeadLeavesTheOldLinksQueueEmpty) {
  queue_.Enqueue(Send(Push(0, 0)));
  Link next;
  queue_.SetHead(&next);
  EXPECT_THAT(Queued(), IsEmpty());
  queue_.EnqueueAll([](const Request&) { return true; });
  EXPECT_EQ(next.queue.size(), 1u);
}

TEST_F(ShardQueueTest, DropsOnlyThePickedRequestsWithoutANumber) {
  queue_.EnqueueNew(Push(0, 0));
  queue_.EnqueueNew(Push(1, 0));
  queue_.DropUnnumbered([](const Request& request) { return request.piece.block == 0; });
  EXPECT_THAT(Queued(), ElementsAre(Pair(1, 0)));
}

TEST_F(ShardQueueTest, CountsEachPushFromItsComingUntilItLeaves) {
  Send(Push(0, 0));
  queue_.EnqueueNew(Push(1, 0));
  queue_.EnqueueNew(Push(2, 0));
  EXPECT_EQ(totals_.unanswered_pushes(), 3u);
  queue_.NumberQueued(*link_.queue.begin());
  EXPECT_EQ(totals_.unanswered_pushes(), 3u);
  queue_.TakeOut(1);
  EXPECT_EQ(totals_.unanswered_pushes(), 2u);
  queue_.DropUnnumbered([](const Request&) { return true; });
  EXPECT_EQ(totals_.unanswered_pushes(), 1u);
  queue_.TakeAll();
  EXPECT_EQ(totals_.unanswered_pushes(), 0u);
}

TEST_F(ShardQueueTest, TakesAllNumberedRequestsOldestFirst) {
  Send(Push(0, 0));
  Send(Push(1, 0));
  Send(Push(2, 0));
  queue_.TakeOut(2);
  const std::vector<std::unique_ptr<Request>> all = queue_.TakeAll();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]->sequence, 1u);
  EXPECT_EQ(all[1]->sequence, 3u);
  EXPECT_EQ(queue_.LastPushBefore(1, /*held=*/false), 0u);
  EXPECT_EQ(Send(Push(0, 0))->sequence, 4u);
}

TEST(RequestTotalsTest, ARetainedPushIsAnsweredAndKeepsItsBytes) {
  RequestTotals totals;
  Request push;
  push.op = proto::Op::kPush;
  push.bytes = 100;
  totals.OnSubmitted(push);
  EXPECT_EQ(totals.unanswered_pushes(), 1u);
  totals.OnRetained(&push);
  EXPECT_TRUE(push.retained);
  EXPECT_EQ(totals.unanswered_pushes(), 0u);
  EXPECT_EQ(totals.retained_pushes(), 1u);
  EXPECT_EQ(totals.retained_bytes(), 100u);
  totals.OnEnded(push);
  EXPECT_EQ(totals.retained_pushes(), 0u);
  EXPECT_EQ(totals.retained_bytes(), 0u);
}

TEST(RequestTotalsTest, AnAbandonedPushThatIsRetainedIsAbandonedNoMore) {
  RequestTotals totals;
  Request push;
  push.op = proto::Op::kPush;
  push.bytes = 100;
  totals.OnSubmitted(push);
  totals.OnAbandoned(&push);
  EXPECT_EQ(totals.abandoned_bytes(), 100u);
  totals.OnRetained(&push);
  EXPECT_FALSE(push.abandoned);
  EXPECT_EQ(totals.abandoned_bytes(), 0u);
  totals.OnEnded(push);
  EXPECT_EQ(totals.abandoned_bytes(), 0u);
}

TEST(RequestTotalsTest, APullIsNoUnansweredPush) {
  RequestTotals totals;
  Request pull;
  pull.op = proto::Op::kPull;
  totals.OnSubmitted(pull);
  EXPECT_EQ(totals.unanswered_pushes(), 0u);
  totals.OnEnded(pull);
  EXPECT_EQ(totals.unanswered_pushes(), 0u);
}

}  // namespace leeway::worker::shard_queue_test
