// A head without a lease proves to itself that it leads before it answers; and what it says of the
// one behind it when that takes nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "ps/testing/chain_bench.h"

namespace leeway::ps::chain_lease_test {
namespace {

class ChainLease : public testing::Test {
 protected:
  explicit ChainLease(std::uint32_t servers = 2) : bench_({.servers = servers, .shards = 1}) {
    table_ = bench_.Install(Consistency::Asp());
  }
  void Begin(std::vector<std::uint32_t> members, std::vector<std::uint32_t> joining = {}) {
    bench_.SetChain(std::move(members), std::move(joining));
    bench_.Publish();
    bench_.Push(0, table_, 0, 0, 1);
    bench_.UntilIdle();
  }
  void EndLease() { bench_.thread(0).SetLease(bench_.world().Now()); }
  void CutBoth() {
    bench_.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
    bench_.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(0));
  }
  std::uint64_t index() { return bench_.replica(0, 0)->shard().index(); }

  ChainBench bench_;
  std::uint32_t table_ = 0;
};

TEST_F(ChainLease, WithALeaseAPullIsAnsweredWithoutTheOthers) {
  Begin({0, 1});
  bench_.thread(0).SetLease(bench_.world().Now() + absl::Seconds(1));
  CutBoth();
  const auto read = bench_.Pull(0, table_, 0, 0);
  bench_.RunFor(absl::Milliseconds(20));
  EXPECT_TRUE(bench_.worker(0).Answered(read));
}

TEST_F(ChainLease, WithoutOneItWaitsForThem) {
  Begin({0, 1});
  EndLease();
  const std::uint64_t before = index();
  EXPECT_EQ(bench_.ReadAll(table_, 0)[0], 1);
  EXPECT_GT(index(), before);
  CutBoth();
  const auto read = bench_.Pull(0, table_, 0, 0);
  bench_.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench_.worker(0).Answered(read));
  bench_.network().HealAll();
  bench_.UntilIdle();
  EXPECT_TRUE(bench_.worker(0).Answered(read));
  bench_.ExpectReplicasEqual();
}

// The other one may have taken it just before it became the head.
TEST_F(ChainLease, AnEntryThatWasLoggedBeforeTheReadIsNoProof) {
  Begin({0, 1});
  EndLease();
  van::LinkFaults slow;
  slow.delay_min = slow.delay_max = absl::Milliseconds(40);
  bench_.network().SetFaults(ChainBench::HostOf(1), ChainBench::HostOf(0), slow);
  const auto push = bench_.Push(0, table_, 0, 0, 1);
  bench_.RunFor(absl::Milliseconds(10));  // it is there, and the acknowledgement under way
  bench_.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  const auto read = bench_.Pull(0, table_, 0, 0);
  bench_.RunFor(absl::Milliseconds(200));
  EXPECT_TRUE(bench_.worker(0).Answered(push));
  EXPECT_FALSE(bench_.worker(0).Answered(read));
  bench_.network().HealAll();
  bench_.UntilIdle();
}

TEST_F(ChainLease, ReadersWaitAsWell) {
  const std::uint32_t reader = bench_.AddReader();
  Begin({0, 1});
  EndLease();
  CutBoth();
  const auto read = bench_.Pull(reader, table_, 0, 0);
  bench_.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench_.worker(reader).Answered(read));
  bench_.network().HealAll();
  bench_.RunFor(absl::Milliseconds(500));
  EXPECT_TRUE(bench_.worker(reader).Answered(read));
}

TEST_F(ChainLease, PullsOfAMomentShareTheProof) {
  Begin({0, 1});
  EndLease();
  const std::uint64_t before = index();
  for (int i = 0; i < 50; ++i) {
    for (const std::uint32_t rank : {0u, 1u}) bench_.Pull(rank, table_, 0, i % 4);
  }
  bench_.UntilIdle();
  EXPECT_LE(index() - before, 10u);
}

// A replica that is only joining cannot lead yet.
TEST_F(ChainLease, AChainOfOneNeedsNone) {
  Begin({0});
  EndLease();
  const std::uint64_t before = index();
  EXPECT_EQ(bench_.ReadAll(table_, 0)[0], 1);
  EXPECT_EQ(index(), before);
  CutBoth();
  bench_.SetChain({0}, {1});
  bench_.PublishTo({0});
  bench_.RunFor(absl::Milliseconds(100));
  const auto read = bench_.Pull(0, table_, 0, 0);
  bench_.RunFor(absl::Milliseconds(20));
  EXPECT_TRUE(bench_.worker(0).Answered(read));
}

// A chain that shrinks to one answers what waited for the others.
TEST_F(ChainLease, WaitingRequestsAreAnsweredWhenTheOthersAreGone) {
  Begin({0, 1});
  EndLease();
  CutBoth();
  const auto read = bench_.Pull(0, table_, 0, 0);
  bench_.RunFor(absl::Milliseconds(100));
  EXPECT_FALSE(bench_.worker(0).Answered(read));
  bench_.Kill(1);
  bench_.UntilIdle();
  EXPECT_TRUE(bench_.worker(0).Answered(read));
}

// ---- links ----

class LinkReports : public ChainLease {
 protected:
  // Of more than twice the failure timeout.
  void Wait() {
    bench_.link_reports.clear();
    bench_.RunFor(absl::Milliseconds(1200));
  }
};

TEST_F(LinkReports, AFollowerThatAcknowledgesNothingIsReportedUntilItDoes) {
  Begin({0, 1});
  CutBoth();
  Wait();
  EXPECT_TRUE(bench_.link_reports.empty());  // there is nothing to acknowledge
  bench_.Push(0, table_, 0, 0, 1);
  Wait();
  ASSERT_FALSE(bench_.link_reports.empty());
  EXPECT_LT(bench_.link_reports.size(), 6u);  // one a heartbeat, from the timeout on
  const proto::LinkReport& report = bench_.link_reports[0];
  EXPECT_EQ(report.epoch, bench_.map.epoch);
  EXPECT_EQ(report.shard, 0u);
  EXPECT_EQ(report.server, 1u);
  EXPECT_FALSE(report.handover);
  bench_.network().HealAll();
  bench_.UntilIdle();
  Wait();
  EXPECT_TRUE(bench_.link_reports.empty());
}

TEST_F(LinkReports, AFollowerThatIsSlowIsNotReported) {
  Begin({0, 1});
  van::LinkFaults slow;
  slow.delay_min = slow.delay_max = absl::Milliseconds(300);
  bench_.network().SetFaults(ChainBench::HostOf(1), ChainBench::HostOf(0), slow);
  for (int i = 0; i < 40; ++i) {
    bench_.Push(0, table_, 0, 0, 1);
    bench_.RunFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(bench_.link_reports.empty());
}

TEST_F(LinkReports, OneThatIsToJoinAndIsNotReachedIsReported) {
  Begin({0});
  CutBoth();
  bench_.SetChain({0}, {1});
  bench_.Publish();
  Wait();
  ASSERT_FALSE(bench_.link_reports.empty());
  EXPECT_EQ(bench_.link_reports[0].server, 1u);
  bench_.Push(0, table_, 0, 0, 1);
  EXPECT_EQ(bench_.ReadAll(table_, 0)[0], 2);  // nobody is held up
}

// The link to a new successor is not bad because the one to the successor before it was.
TEST_F(LinkReports, ANewSuccessorIsNotReportedForTheOneBefore) {
  Begin({0, 1});
  CutBoth();
  bench_.Push(0, table_, 0, 0, 1);
  Wait();
  ASSERT_FALSE(bench_.link_reports.empty());
  EXPECT_EQ(bench_.link_reports.back().server, 1u);
  bench_.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(2));
  bench_.network().Cut(ChainBench::HostOf(2), ChainBench::HostOf(0));
  bench_.SetChain({0}, {2});
  bench_.Publish();
  bench_.link_reports.clear();
  bench_.RunFor(absl::Milliseconds(400));  // less than the failure timeout
  EXPECT_TRUE(bench_.link_reports.empty());
  Wait();
  ASSERT_FALSE(bench_.link_reports.empty());
  EXPECT_EQ(bench_.link_reports[0].server, 2u);
}

TEST_F(LinkReports, TheNewHeadLeadsWhenItIsToldThatTheOldOneHasSteppedDown) {
  Begin({0, 1});
  CutBoth();
  bench_.SetChain({1, 0});
  bench_.Publish();
  Wait();
  ASSERT_FALSE(bench_.link_reports.empty());
  EXPECT_TRUE(bench_.link_reports[0].handover);
  EXPECT_EQ(bench_.link_reports[0].server, 1u);
  const std::uint64_t epoch = bench_.map.epoch;
  bench_.thread(1).OnLeadNow({.epoch = epoch - 1, .shard = 0, .from = 0});  // of an earlier one
  bench_.thread(1).OnLeadNow({.epoch = epoch, .shard = 0, .from = 1});
  bench_.thread(1).OnLeadNow({.epoch = epoch, .shard = 1, .from = 0});
  EXPECT_FALSE(bench_.replica(1, 0)->leads());
  EXPECT_FALSE(bench_.Published());
  bench_.thread(1).OnLeadNow({.epoch = epoch, .shard = 0, .from = 0});
  EXPECT_TRUE(bench_.replica(1, 0)->leads());
  bench_.RunFor(absl::Milliseconds(20));
  EXPECT_TRUE(bench_.Published());
  bench_.network().HealAll();
  bench_.Push(0, table_, 0, 0, 1);
  bench_.UntilIdle();
  EXPECT_EQ(bench_.ReadAll(table_, 0)[0], 2);
  bench_.ExpectReplicasEqual();
}

}  // namespace
}  // namespace leeway::ps::chain_lease_test
