#include "ps/consistency/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace leeway::ps {
namespace {

using proto::Op;

struct PullCase {
  const char* what;
  Consistency consistency;
  Op op;
  std::uint64_t clock, slowest;
  bool hold;
  std::uint64_t needed, effective, staleness;  // staleness: as reported if served now
};

TEST(Policy, Pull) {
  const std::vector<PullCase> cases = {
      {"BSP, first read", Consistency::Bsp(), Op::kPull, 0, 0, false, 0, 0, 0},
      {"BSP, somebody is behind", Consistency::Bsp(), Op::kPull, 1, 0, true, 1, 1, 1},
      {"BSP, all arrived", Consistency::Bsp(), Op::kPull, 1, 1, false, 1, 1, 0},
      {"BSP, reader behind the others", Consistency::Bsp(), Op::kPull, 1, 7, false, 1, 1, 0},
      {"BSP, push-pull sees its own clock closed", Consistency::Bsp(), Op::kPushPull, 0, 0, true, 1,
       1, 1},
      {"BSP, push-pull, clock closed", Consistency::Bsp(), Op::kPushPull, 4, 5, false, 5, 5, 0},
      {"SSP, at the bound", Consistency::Ssp(3), Op::kPull, 10, 7, false, 7, 10, 3},
      {"SSP, beyond the bound", Consistency::Ssp(3), Op::kPull, 10, 6, true, 7, 10, 4},
      {"SSP, young cluster", Consistency::Ssp(3), Op::kPull, 2, 0, false, 0, 2, 2},
      {"SSP, push-pull reads at its own clock", Consistency::Ssp(3), Op::kPushPull, 10, 7, false, 7,
       10, 3},
      {"SSP, push-pull beyond the bound", Consistency::Ssp(1), Op::kPushPull, 5, 3, true, 4, 5, 2},
      {"SSP, the largest finite bound",
       Consistency::Ssp(std::numeric_limits<std::uint64_t>::max() - 1), Op::kPull, kClockMax, 0,
       false, 0, kClockMax, kClockMax},
      {"SSP(0) is BSP", Consistency::Ssp(0), Op::kPushPull, 0, 0, true, 1, 1, 1},
      {"ASP never holds", Consistency::Asp(), Op::kPull, 1000, 0, false, 0, 1000, 1000},
      {"ASP push-pull", Consistency::Asp(), Op::kPushPull, 1000, 990, false, 0, 1000, 10},
  };
  for (const PullCase& c : cases) {
    SCOPED_TRACE(c.what);
    const PullDecision decision = Policy(c.consistency).Pull(c.op, c.clock, c.slowest);
    EXPECT_EQ(decision.hold, c.hold);
    EXPECT_EQ(decision.needed, c.needed);
    EXPECT_EQ(decision.effective, c.effective);
    EXPECT_EQ(Policy::Staleness(decision.effective, c.slowest), c.staleness);
  }
}

// What the whole design rests on: whatever is served is within the bound, and what is held would
// not have been.
TEST(Policy, ServesExactlyWhatTheBoundAllows) {
  for (std::uint64_t bound = 0; bound < 5; ++bound) {
    for (std::uint64_t clock = 0; clock < 12; ++clock) {
      for (std::uint64_t slowest = 0; slowest < 14; ++slowest) {
        for (Op op : {Op::kPull, Op::kPushPull}) {
          const PullDecision decision = Policy(Consistency::Ssp(bound)).Pull(op, clock, slowest);
          const bool within = Policy::Staleness(decision.effective, slowest) <= bound;
          EXPECT_EQ(decision.hold, !within)
              << "bound " << bound << " clock " << clock << " slowest " << slowest;
        }
      }
    }
  }
}

TEST(Policy, Push) {
  struct {
    Consistency consistency;
    std::uint64_t clock, closed;
    bool hold;
    std::uint64_t counts_in;
  } cases[] = {
      {Consistency::Bsp(), 0, 0, true, 0},   {Consistency::Bsp(), 5, 4, true, 5},
      {Consistency::Bsp(), 5, 5, true, 5},   {Consistency::Bsp(), 3, 5, true, 5},
      {Consistency::Ssp(2), 3, 5, false, 3}, {Consistency::Asp(), 3, 0, false, 3},
  };
  for (const auto& c : cases) {
    const PushDecision decision = Policy(c.consistency).Push(c.clock, c.closed);
    EXPECT_EQ(decision.hold, c.hold);
    EXPECT_EQ(decision.clock, c.counts_in);
  }
}

TEST(Policy, SaysWhatItDoesNotSupport) {
  EXPECT_TRUE(Policy::Supports(Consistency::Bsp()).ok());
  EXPECT_TRUE(Policy::Supports(Consistency::Ssp(8)).ok());
  EXPECT_TRUE(Policy::Supports(Consistency::Asp()).ok());
  EXPECT_THAT(Policy::Supports({.quorum = 2}).message(), testing::HasSubstr("quorum is 2"));
  EXPECT_THAT(Policy::Supports({.late = Consistency::Late::kDrop}).message(),
              testing::HasSubstr("late"));
  EXPECT_THAT(Policy::Supports({.weight = Consistency::Weight::kInverseStaleness}).message(),
              testing::HasSubstr("weight"));
}

}  // namespace
}  // namespace leeway::ps
