// Pushes of workers that die, leave or join late, and of heads that die: acknowledged ones are in
// the table, once, and refused ones are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::pushes_kept_test {
namespace {

using testing::Each;
using testing::ElementsAre;

class PushesKept : public PromiseTest {
 protected:
  absl::Status Leave(std::uint32_t rank) {
    absl::Status left = absl::DeadlineExceededError("has not left in the test's time");
    bool over = false;
    core(rank)->Leave(absl::Seconds(10), [&](const absl::Status& status) {
      left = status;
      over = true;
    });
    EXPECT_TRUE(Until([&] { return over; }, absl::Seconds(20)));
    return left;
  }
};

// The dead worker had ended its iteration: it counts in the mean, also if another has its rank now.
TEST_F(PushesKept, AMeanCountsWhoEndedTheClockAndDied) {
  for (const bool replaced : {false, true}) {
    SCOPED_TRACE(replaced ? "another has its rank" : "nobody has its rank");
    StartAll(Base(1, 2, 1));
    TableSpec spec = Dense(Consistency::Bsp());
    spec.aggregate = Aggregate::kMean;
    const Table table = Create(spec);
    ASSERT_TRUE(Wait(Push(1, table, 10)).ok());
    Clock(1);
    Run(absl::Milliseconds(500));
    cluster_->Kill("worker1");
    Run(kFailureTimeout + absl::Seconds(2));
    if (replaced) {
      StartWorker(1);
      ASSERT_TRUE(Until([&] { return ready_ == 3; }, absl::Seconds(20)));
    }
    ASSERT_TRUE(Wait(Push(0, table, 20)).ok());
    Clock(0);
    EXPECT_THAT(Pull(0, table).values, ElementsAre(15, 15, 15, 15));
  }
}

// The refusal is lost on its way, the next push of the worker is accepted, and the head dies.
TEST_F(PushesKept, ARefusedPushIsNotAcknowledgedByTheNextHead) {
  SimCluster::Setup setup = Base(2, 2, 2);
  setup.config.held_bytes_max = 3000;
  StartAll(setup);
  TableSpec spec = TableSpec::Sparse("t", 4);
  spec.consistency = Consistency::Bsp();
  const Table table = Create(spec);
  const std::uint32_t head = Head();
  ASSERT_TRUE(Wait(PushRows(0, table, {1}, {1, 1, 1, 1})).ok());
  cluster_->network().Cut(ServerHost(head), "worker0");
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 100; key < 400; ++key) keys.push_back(key);
  const Op large = PushRows(0, table, keys, std::vector<float>(4 * keys.size(), 5));
  Run(absl::Milliseconds(20));
  const Op small = PushRows(0, table, {2}, {2, 2, 2, 2});
  Run(absl::Milliseconds(20));
  cluster_->network().Heal(ServerHost(head), "worker0");
  Clock(0);
  Clock(1);
  Run(absl::Milliseconds(100));
  cluster_->Kill(ServerHost(head));
  const absl::Status refused = Wait(large);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_TRUE(Wait(small).ok());
  const Pulled pulled = PullRows(0, table, {1, 2, 100});
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_THAT(pulled.values, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0));
}

// The pull of a push-pull was not answered in time, and only the head has the push.
TEST_F(PushesKept, APushWhosePullFailedIsSentToTheNextHead) {
  for (const Consistency& consistency : {Consistency::Bsp(), Consistency::Ssp(1)}) {
    SCOPED_TRACE(consistency.ToString());
    StartAll(Base(2, 2, 2));
    const Table table = Create(Dense(consistency));
    const std::uint32_t head = Head();
    // For SSP: a pull that has to wait, and a push that reaches no other replica.
    if (!consistency.is_bsp()) {
      for (int i = 0; i < 2; ++i) Clock(0);
      Run(absl::Milliseconds(100));
      cluster_->network().Cut(ServerHost(head), ServerHost(1 - head));
    }
    const Op both = PushPull(0, table, 7, absl::Milliseconds(50));
    const absl::Status failed = Wait(both);
    EXPECT_EQ(failed.code(), absl::StatusCode::kUnknown) << failed;
    cluster_->Kill(ServerHost(head));
    cluster_->network().HealAll();
    for (const std::uint32_t rank : {0u, 1u, 1u, 1u}) Clock(rank);
    EXPECT_THAT(Pull(0, table).values, ElementsAre(7, 7, 7, 7));
  }
}

TEST_F(PushesKept, LastPushesOfAWorkerThatLeftStayThoughTheHeadDiesThen) {
  for (const bool head_dies : {false, true}) {
    SCOPED_TRACE(head_dies ? "the head dies" : "the head lives");
    StartAll(Base(2, 2, 2));
    const Table table = Create(Dense(Consistency::Bsp()));
    const std::uint32_t head = Head();
    ASSERT_TRUE(Wait(Push(0, table, 7)).ok());
    // It ends its clock, which closes when the other worker has ended it.
    absl::Status left = absl::UnknownError("");
    core(0)->Leave(absl::Seconds(10), [&](const absl::Status& status) { left = status; });
    Run(absl::Seconds(1));
    Clock(1);
    ASSERT_TRUE(Until([&] { return !absl::IsUnknown(left); }, absl::Seconds(20)));
    EXPECT_TRUE(left.ok()) << left;
    if (head_dies) cluster_->Kill(ServerHost(head));
    EXPECT_THAT(Pull(1, table).values, ElementsAre(7, 7, 7, 7));
  }
}

// With SSP tables alone the log has no closed clocks.
TEST_F(PushesKept, ANewHeadLetsALateWorkerInWhereTheOthersAre) {
  StartAll(Base(2, 2, 2));
  const Table table = Create(Dense(Consistency::Ssp(2)));
  for (int i = 0; i < 50; ++i) {
    for (const std::uint32_t rank : {0u, 1u}) {
      Push(rank, table, 1);
      Clock(rank);
    }
    Run(absl::Milliseconds(5));
  }
  cluster_->Kill("worker1");
  Run(kFailureTimeout + absl::Seconds(2));
  const std::uint32_t head = Head();
  CutBoth("worker0", ServerHost(1 - head));
  cluster_->Kill(ServerHost(head));
  StartWorker(1);
  Until([&] { return ready_ == 3; }, absl::Seconds(4));
  cluster_->network().HealAll();
  ASSERT_TRUE(Until([&] { return ready_ == 3; }, absl::Seconds(20)));
  EXPECT_GE(core(1)->clock(), 50u);
  const Pulled pulled = Pull(0, table);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_THAT(pulled.values, Each(100));
}

TEST_F(PushesKept, ARowOfTwoWidthsCostsOneWorkersPushAndNoOther) {
  StartAll(Base(1, 2, 1));
  TableSpec spec = TableSpec::Ragged("t");
  spec.consistency = Consistency::Bsp();
  const Table table = Create(spec);
  const std::vector<std::uint64_t> keys = {1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(
      Wait(PushRows(0, table, keys, std::vector<float>(14, 1), std::vector<std::uint32_t>(7, 2)))
          .ok());
  ASSERT_TRUE(Wait(PushRows(1, table, {7, 8}, std::vector<float>(6, 1), {3, 3})).ok());
  Clock(0);
  Clock(1);
  std::vector<std::uint32_t> widths;
  const Pulled pulled = PullRows(0, table, {1, 2, 3, 4, 5, 6, 7, 8}, &widths);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_THAT(widths, ElementsAre(2, 2, 2, 2, 2, 2, 2, 0));
}

// The middle of a chain has acknowledged an entry that the tail does not have yet, when its
// connection to the head breaks. From then on it must not send another entry of that number.
TEST_F(PushesKept, AnEntryIsCommittedThoughTheConnectionBreaksOverWhichThatWouldBeTold) {
  for (const bool pulls : {false, true}) {
    SCOPED_TRACE(pulls ? "another worker pulls" : "the worker waits");
    StartAll(Base(3, 2, 3));
    const Table table = Create(Dense(Consistency::Asp()));
    const std::vector<std::uint32_t> members = Members();
    const std::string head = ServerHost(members[0]), middle = ServerHost(members[1]),
                      tail = ServerHost(members[2]);
    ASSERT_TRUE(Wait(Push(0, table, 1)).ok());
    van::LinkFaults slow;
    slow.delay_min = slow.delay_max = absl::Milliseconds(100);
    cluster_->network().SetFaults(middle, tail, slow);
    const Op push = Push(0, table, 1);
    Run(absl::Milliseconds(20));
    cluster_->network().Break(head, middle);
    Run(absl::Milliseconds(500));
    cluster_->network().SetFaults(middle, tail, van::LinkFaults());
    if (pulls) {
      EXPECT_THAT(Pull(1, table, absl::Seconds(2)).values, ElementsAre(2, 2, 2, 2));
    } else {
      EXPECT_TRUE(Wait(push, absl::Seconds(2)).ok());
    }
  }
}

}  // namespace
}  // namespace leeway::simulation::pushes_kept_test
