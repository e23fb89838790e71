// A map that makes a member of a replica which has no state yet: no scheduler makes one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/testing/chain_bench.h"

namespace leeway::ps {
namespace {

TEST(ChainWithoutState, IsNeverServed) {
  for (const bool with_head : {false, true}) {
    ChainBench bench({.servers = 2});
    bench.gives_up = true;
    const std::uint32_t table = bench.Install(Consistency::Asp());
    bench.SetChain({0});
    bench.Publish();
    bench.Push(0, table, 0, 0, 1);
    bench.UntilIdle();
    bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
    bench.SetChain({0}, {1});
    bench.Publish();
    bench.RunFor(absl::Seconds(1));
    EXPECT_TRUE(bench.given_up.empty());
    if (with_head) {
      bench.SetChain({0, 1});
    } else {
      bench.SetChain({1});
    }
    bench.Publish();
    bench.RunFor(absl::Seconds(1));
    ASSERT_FALSE(bench.given_up.empty());
    EXPECT_EQ(bench.given_up[0].code(), absl::StatusCode::kDataLoss);
    EXPECT_FALSE(bench.replica(1, 0)->is_head());
    if (with_head) continue;
    const auto read = bench.Pull(1, table, 0, 0);
    bench.RunFor(absl::Seconds(1));
    EXPECT_TRUE(!bench.worker(1).Answered(read) || !bench.worker(1).ResultOf(read).ok())
        << "with what was never there";
  }
}

}  // namespace
}  // namespace leeway::ps
