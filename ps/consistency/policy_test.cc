#include "ps/consistency/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

using proto::Op;

// Of one worker that pulls and another one, which is slowest.
PullDecision PullAt(const Consistency& consistency, Op op, std::uint64_t clock,
                    std::uint64_t slowest) {
  WorkerClocks clocks;
  clocks.Set(1, 1, proto::WorkerState::kAlive);
  clocks.Advance(1, 1, slowest);
  return Policy(consistency).Pull({.op = op, .rank = 0, .clock = clock, .clocks = &clocks});
}

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
    const PullDecision decision = PullAt(c.consistency, c.op, c.clock, c.slowest);
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
          const PullDecision decision = PullAt(Consistency::Ssp(bound), op, clock, slowest);
          const bool within = Policy::Staleness(decision.effective, slowest) <= bound;
          EXPECT_EQ(decision.hold, !within)
              << "bound " << bound << " clock " << clock << " slowest " << slowest;
        }
      }
    }
  }
}

TEST(Policy, AClockThatWaitsForWorkersSaysSo) {
  WorkerClocks clocks;
  clocks.Set(0, 1, proto::WorkerState::kAlive);
  Consistency waiting = Consistency::Backup(3, 3);
  EXPECT_TRUE(Policy(waiting).IsShort(clocks));
  EXPECT_EQ(Policy(waiting).WhyOpen(clocks), "");
  waiting.when_short = Consistency::Short::kWait;
  EXPECT_EQ(Policy(waiting).WhyOpen(clocks),
            "1 worker is living, and a clock closes when 3 have ended it");
  EXPECT_FALSE(Policy(Consistency::Bsp()).IsShort(clocks));
}

TEST(Policy, Push) {
  using Action = PushDecision::Action;
  const Consistency backup = Consistency::Backup(2, 3);
  const Consistency dropping = Consistency::Backup(2, 3, Consistency::Late::kDrop);
  struct {
    Consistency consistency;
    std::uint64_t clock, closed;
    Action action;
    std::uint64_t counts_in;
  } cases[] = {
      {Consistency::Bsp(), 0, 0, Action::kHold, 0},
      {Consistency::Bsp(), 5, 4, Action::kHold, 5},
      {Consistency::Bsp(), 5, 5, Action::kHold, 5},
      {Consistency::Bsp(), 3, 5, Action::kHold, 5},
      {Consistency::Ssp(2), 3, 5, Action::kApply, 3},
      {Consistency::Asp(), 3, 0, Action::kApply, 3},
      {Consistency::Dssp(1, 4), 3, 0, Action::kApply, 3},
      {Consistency::Psp(1, 4), 3, 0, Action::kApply, 3},
      {Consistency::Softsync(4), 3, 0, Action::kCollect, 3},
      {Consistency::FedBuff(4), 3, 0, Action::kCollect, 3},
      {backup, 5, 5, Action::kCollect, 5},
      {backup, 6, 5, Action::kWait, 6},
      {backup, 4, 5, Action::kApply, 4},
      {dropping, 5, 5, Action::kCollect, 5},
      {dropping, 4, 5, Action::kDrop, 4},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.consistency.ToString());
    const PushDecision decision =
        Policy(c.consistency).Push({.clock = c.clock, .closed = c.closed});
    EXPECT_EQ(decision.action, c.action);
    EXPECT_EQ(decision.clock, c.counts_in);
    EXPECT_EQ(decision.weight, 1);
  }
}

TEST(Policy, Weights) {
  struct {
    const char* consistency;
    std::vector<double> by_tau;  // of τ = 0, 1, 2, …; negative: it is dropped
  } cases[] = {
      {"asp", {1, 1, 1, 1, 1}},
      {"asp,weight=1/tau", {1, 1, 0.5, 1.0 / 3, 0.25}},
      {"ssp:3,weight=poly:0.5", {1, 1 / std::sqrt(2.0), 1 / std::sqrt(3.0), 0.5}},
      {"asp,weight=hinge:10/2", {1, 1, 1, 1.0 / 11, 1.0 / 21}},
      {"asp,weight=cutoff:2", {1, 1, 1, -1, -1}},
      {"softsync:4,weight=table:1/0.5/0", {1, 0.5, 0, 0, 0}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.consistency);
    const Policy policy(Consistency::Parse(c.consistency).value());
    for (std::size_t tau = 0; tau < c.by_tau.size(); ++tau) {
      const PushDecision decision = policy.Push({.clock = 9, .tau = tau});
      EXPECT_EQ(decision.action == PushDecision::Action::kDrop, c.by_tau[tau] < 0) << tau;
      if (c.by_tau[tau] >= 0) {
        EXPECT_DOUBLE_EQ(decision.weight, c.by_tau[tau]) << tau;
      }
    }
  }
}

// Zhang et al.: with n-softsync an update has ⌊λ/n⌋ gradients of λ learners; 1-softsync waits for
// as many as there are, λ-softsync for one.
TEST(Policy, EnoughPushes) {
  EXPECT_EQ(Policy(Consistency::Softsync(1)).Enough(30), 30u);
  EXPECT_EQ(Policy(Consistency::Softsync(4)).Enough(30), 7u);
  EXPECT_EQ(Policy(Consistency::Softsync(30)).Enough(30), 1u);
  EXPECT_EQ(Policy(Consistency::Softsync(30)).Enough(8), 1u);  // fewer are left
  EXPECT_EQ(Policy(Consistency::FedBuff(10)).Enough(30), 10u);
  EXPECT_EQ(Policy(Consistency::FedBuff(10)).Enough(3), 10u);
  EXPECT_EQ(Policy(Consistency::Backup(14, 16)).Enough(16), 0u);
  EXPECT_EQ(Policy(Consistency::Softsync(4)).MeanOf(30, 7), 7u);
  EXPECT_EQ(Policy(Consistency::FedBuff(10)).MeanOf(30, 10), 10u);
  // Of workers that are gone, too.
  EXPECT_EQ(Policy(Consistency::FedBuff(10)).MeanOf(0, 2), 2u);
  EXPECT_EQ(Policy(Consistency::Backup(14, 16)).MeanOf(16, 14), 14u);
  EXPECT_EQ(Policy(Consistency::Backup(14, 16)).MeanOf(16, 16), 16u);
  EXPECT_EQ(Policy(Consistency::Backup(14, 16)).MeanOf(0, 3), 3u);
  // Those of the count that have pushed nothing count as zero.
  EXPECT_EQ(Policy(Consistency::Backup(14, 16)).MeanOf(16, 5), 14u);
  EXPECT_EQ(Policy(Consistency::Backup(14, 16)).MeanOf(3, 1), 3u);
}

WorkerClocks ClocksAt(const std::vector<std::uint64_t>& by_rank) {
  WorkerClocks clocks;
  for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    clocks.Set(rank, 1, proto::WorkerState::kAlive);
    clocks.Advance(rank, 1, by_rank[rank]);
  }
  return clocks;
}

// Chen et al.: the gradients of the first N of N + b workers make an update.
TEST(Policy, TheFirstKOfNCloseAClock) {
  const Policy policy(Consistency::Backup(3, 4));
  EXPECT_EQ(policy.Closed(ClocksAt({7, 7, 6, 2})), 6u);
  EXPECT_EQ(policy.Closed(ClocksAt({7, 7, 7, 2})), 7u);
  EXPECT_EQ(policy.Closed(ClocksAt({7, 7, 7, 7})), 7u);
  const WorkerClocks clocks = ClocksAt({7, 7, 7, 2});
  EXPECT_FALSE(policy.Pull({.rank = 0, .clock = 7, .closed = 7, .clocks = &clocks}).hold);
  EXPECT_FALSE(policy.Pull({.rank = 3, .clock = 2, .closed = 7, .clocks = &clocks}).hold);
  EXPECT_TRUE(policy.Pull({.rank = 0, .clock = 7, .closed = 6, .clocks = &clocks}).hold);
  // Its push takes effect when the clock closes.
  EXPECT_TRUE(policy.Pull({.op = Op::kPushPull, .clock = 7, .closed = 7, .clocks = &clocks}).hold);
}

TEST(Policy, FewerWorkersThanACountCloseClocksOrWait) {
  EXPECT_EQ(Policy(Consistency::Backup(3, 4)).Closed(ClocksAt({7, 5})), 5u);
  const Policy waiting(Consistency::Parse("backup:3/4,wait").value());
  EXPECT_EQ(waiting.Closed(ClocksAt({7, 5})), 0u);
  EXPECT_EQ(waiting.Closed(ClocksAt({7, 5, 4})), 4u);
}

// Wang et al.: the barrier asks a sample, and none of the others.
TEST(Policy, ASampleIsOfOtherWorkersAndDiffersFromClockToClock) {
  const WorkerClocks clocks = ClocksAt({50, 50, 50, 50, 50, 50, 50, 0});
  const Policy policy(Consistency::Psp(3, 2));
  int held = 0;
  for (std::uint64_t clock = 50; clock < 1050; ++clock) {
    const PullDecision decision = policy.Pull({.rank = 0, .clock = clock, .clocks = &clocks});
    EXPECT_EQ(decision.reached, decision.reached == 0 ? 0u : 50u);
    held += decision.reached == 0;
  }
  EXPECT_NEAR(held, 1000 * 2 / 7, 60);  // the slow one is among two of seven
  EXPECT_EQ(Policy(Consistency::Psp(3, 7)).Pull({.clock = 50, .clocks = &clocks}).reached, 0u);
  const WorkerClocks alone = ClocksAt({9});
  EXPECT_FALSE(policy.Pull({.rank = 0, .clock = 9, .clocks = &alone}).hold);
}

// Every rule against the definition, worked out anew from the list of all workers' clocks, over
// random lives of a cluster.
TEST(Policy, DecidesAsTheDefinitionsSay) {
  const char* const rules[] = {"bsp",     "ssp:2",   "asp", "backup:3/5", "backup:3/5,drop,wait",
                               "psp:1/9", "dssp:1-4"};
  runtime::Random random(20160401);
  for (int sequence = 0; sequence < 100'000; ++sequence) {
    const Consistency consistency =
        Consistency::Parse(rules[random.Below(std::size(rules))]).value();
    const Policy policy(consistency);
    DynamicBound dynamic;
    WorkerClocks clocks;
    std::map<std::uint32_t, std::uint64_t> model;  // the living ones
    std::uint64_t closed = 0;
    absl::Time now = absl::UnixEpoch();
    for (int event = 0; event < 12; ++event) {
      now += absl::Milliseconds(1 + random.Below(50));
      const auto rank = static_cast<std::uint32_t>(random.Below(5));
      const bool leaves = random.Below(12) == 0;
      clocks.Set(rank, 1, leaves ? proto::WorkerState::kLeft : proto::WorkerState::kAlive);
      if (leaves) {
        model.erase(rank);
      } else {
        const std::uint64_t to = clocks.ClockOf(rank) + random.Below(3);
        if (clocks.Advance(rank, 1, to)) dynamic.Ticked(rank, to, now);
        model[rank] = clocks.ClockOf(rank);
      }
      if (model.empty()) continue;
      std::vector<std::uint64_t> sorted;
      for (const auto& [other, clock] : model) sorted.push_back(clock);
      std::ranges::sort(sorted, std::greater<>());
      const std::uint64_t slowest = sorted.back();
      if (consistency.rule == Consistency::Rule::kBackup) {
        const bool enough = sorted.size() >= 3;
        const bool waits = consistency.when_short == Consistency::Short::kWait && !enough;
        const std::uint64_t third = waits ? 0 : sorted[std::min<std::size_t>(2, sorted.size() - 1)];
        ASSERT_EQ(policy.Closed(clocks), third);
        closed = std::max(closed, third);
      }
      const std::uint64_t clock = clocks.ClockOf(rank);
      const PullDecision pull = policy.Pull({.rank = rank,
                                             .clock = clock,
                                             .closed = closed,
                                             .clocks = &clocks,
                                             .dynamic = &dynamic,
                                             .now = now});
      switch (consistency.rule) {
        case Consistency::Rule::kBackup:
          ASSERT_EQ(pull.hold, clock > closed);
          break;
        case Consistency::Rule::kSampled: {
          // The sample is of all others.
          std::uint64_t others = clock;
          if (model.size() > model.count(rank)) others = Consistency::kUnbounded;
          for (const auto& [other, at] : model) {
            if (other != rank) others = std::min(others, at);
          }
          ASSERT_EQ(pull.hold, others + 1 < clock);
          break;
        }
        case Consistency::Rule::kDynamic:
          ASSERT_TRUE(!pull.hold || clock > slowest + 1);
          ASSERT_TRUE(pull.hold || clock <= slowest + 4);
          break;
        default:
          ASSERT_EQ(pull.hold,
                    !consistency.is_unbounded() && clock > slowest + consistency.staleness);
      }
      const std::uint64_t of = random.Below(8);
      const PushDecision push = policy.Push({.clock = of, .closed = closed});
      if (consistency.rule == Consistency::Rule::kBackup) {
        using Action = PushDecision::Action;
        const Action late =
            consistency.late == Consistency::Late::kDrop ? Action::kDrop : Action::kApply;
        ASSERT_EQ(push.action, of < closed    ? late
                               : of == closed ? Action::kCollect
                                              : Action::kWait);
      }
    }
  }
}

}  // namespace
}  // namespace leeway::ps
