// The scheduler deposes a head that it cannot hear. Until the head knows, it must not answer pulls:
// other workers push to the new head meanwhile, and a late worker that it does not know may have
// entered there.
#include <gtest/gtest.h>

#include <string>

#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::deposed_head_test {
namespace {

class DeposedHead : public PromiseTest {
 protected:
  // Worker 0 knows only the old head, which no other node reaches; its clock runs at 0.6 of the
  // others' speed. A late worker enters at the new head and pushes 1000, then worker 0 goes on by
  // 20 clocks and pulls. `answers`: the delay of the scheduler's messages to the old head.
  Pulled ReadThere(absl::Duration answers = absl::ZeroDuration()) {
    SimCluster::Setup setup = Base(2, 2, 2);
    // Worker 0 is not taken for dead before the head is deposed.
    setup.config.suspicion = kFailureTimeout;
    StartAll(setup);
    table_ = Create(Dense(Consistency::Ssp(1)));
    for (int i = 0; i < 10; ++i) {
      for (const std::uint32_t rank : {0u, 1u}) {
        Push(rank, table_, 1);
        Clock(rank);
      }
      Run(absl::Milliseconds(20));
    }
    cluster_->Kill("worker1");
    Run(absl::Seconds(8));
    Depose(answers);
    StartWorker(1);
    EXPECT_TRUE(Until([&] { return ready_ == 3; }, absl::Seconds(20)));
    EXPECT_NE(Head(), old_head_);
    EXPECT_TRUE(Wait(Push(1, table_, 1000), absl::Seconds(1)).ok());
    Clock(1);
    for (int i = 0; i < 20; ++i) Clock(0);
    Run(absl::Milliseconds(50));
    return Pull(0, table_, absl::Seconds(3));
  }
  void Depose(absl::Duration answers) {
    old_head_ = Head();
    const std::string old_head = ServerHost(old_head_), other = ServerHost(1 - old_head_);
    if (answers > absl::ZeroDuration()) {
      van::LinkFaults slow;
      slow.delay_min = slow.delay_max = answers;
      cluster_->network().SetFaults("scheduler", old_head, slow);
      Run(2 * answers);
    } else {
      cluster_->network().Cut("scheduler", old_head);
    }
    cluster_->world().SetClockRate(old_head, 0.6);
    cluster_->network().Cut(old_head, "scheduler");
    CutBoth(old_head, other);
    CutBoth("worker0", other);
    cluster_->network().Cut("scheduler", "worker0");
  }

  Table table_;
  std::uint32_t old_head_ = 0;
};

constexpr absl::Duration kSlowAnswers = absl::Seconds(2);

TEST_F(DeposedHead, AnswersNoPullsThoughItsClockIsSlow) {
  EXPECT_TRUE(ReadThere().values.empty());
  cluster_->network().HealAll();
  Run(absl::Seconds(5));
  for (int i = 0; i < 20; ++i) Clock(1);
  const Pulled pulled = Pull(0, table_);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_EQ(pulled.values[0], 1020);
}

TEST_F(DeposedHead, AnswersNoPullsThoughItHearsLateOfEarlierHeartbeats) {
  EXPECT_TRUE(ReadThere(kSlowAnswers).values.empty());
}

// A head without the scheduler asks its replicas before it answers, and goes on.
TEST_F(DeposedHead, AHeadThatIsNoneAnswersOnWithoutTheScheduler) {
  StartAll(Base(3, 2, 3));
  const Table table = Create(Dense(Consistency::Asp()));
  ASSERT_TRUE(Wait(Push(0, table, 1)).ok());
  for (const std::string& host : cluster_->HostNames()) {
    if (host != "scheduler") CutBoth("scheduler", host);
  }
  Run(2 * kFailureTimeout);
  for (int i = 2; i < 20; ++i) {
    const absl::Time since = Now();
    const Pulled pulled = Pull(1, table);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_EQ(pulled.values[0], i - 1);
    EXPECT_LT(Now() - since, absl::Milliseconds(5));
    ASSERT_TRUE(Wait(Push(0, table, 1)).ok());
    Run(absl::Seconds(1));  // no messages
  }
}

// A chain of one has no replica that could lead, so its head asks none.
TEST_F(DeposedHead, AChainOfOneAsksNobody) {
  StartAll(Base(2, 1, 1));
  const Table table = Create(Dense(Consistency::Asp()));
  ASSERT_TRUE(Wait(Push(0, table, 1)).ok());
  const std::string head = ServerHost(Head());
  CutBoth("scheduler", head);
  CutBoth(ServerHost(1 - Head()), head);
  Run(kFailureTimeout - absl::Milliseconds(500));
  EXPECT_EQ(Pull(0, table, absl::Milliseconds(10)).values, std::vector<float>(4, 1));
}

}  // namespace
}  // namespace leeway::simulation::deposed_head_test
