// What waits in a shard: in which order it comes out, and that what it is charged is given back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ps/shard/pending_pulls.h"
#include "ps/shard/state/request_order.h"
#include "ps/table/contributions.h"

namespace leeway::ps::budgets_test {
namespace {

Inbound Request(std::uint64_t sequence, std::uint64_t after) {
  Inbound inbound;
  inbound.peer = 3;
  inbound.request.id.sequence = sequence;
  inbound.request.after = after;
  inbound.payload.push_back(runtime::Buffer::CopyOf(std::string(100, 'x')));
  return inbound;
}

// ---- requests that came early ----

class EarlyRequests : public testing::Test {
 protected:
  runtime::ByteBudget budget_{.bytes_max = 2000};
  RequestOrder order_{&budget_};
};

TEST_F(EarlyRequests, AreAdmittedWhenTheOneBeforeThemWas) {
  EXPECT_EQ(order_.Judge(2, 1), RequestOrder::Verdict::kEarly);
  ASSERT_TRUE(order_.Keep(Request(2, 1)));
  EXPECT_FALSE(order_.TakeNext().has_value());
  EXPECT_GT(budget_.bytes, 0u);
  EXPECT_EQ(order_.Judge(1, 0), RequestOrder::Verdict::kNext);
  order_.Admit(1);
  const std::optional<Inbound> next = order_.TakeNext();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->request.id.sequence, 2u);
  EXPECT_EQ(budget_.bytes, 0u);
}

TEST_F(EarlyRequests, AreNotAdmittedAgain) {
  ASSERT_TRUE(order_.Keep(Request(2, 1)));
  order_.Admit(2);
  EXPECT_FALSE(order_.TakeNext().has_value());
  EXPECT_EQ(budget_.bytes, 0u);
}

TEST_F(EarlyRequests, AreKeptWithinTheBudget) {
  std::uint64_t kept = 0;
  while (kept < 100 && order_.Keep(Request(kept + 2, kept + 1))) ++kept;
  EXPECT_GE(kept, 2u);
  EXPECT_LE(kept, 3u);
}

TEST_F(EarlyRequests, OfALostPeerAreForgotten) {
  ASSERT_TRUE(order_.Keep(Request(2, 1)));
  order_.DropPeer(3);
  EXPECT_TRUE(order_.keeps_nothing());
  EXPECT_EQ(budget_.bytes, 0u);
}

// ---- what is remembered of refusals ----

TEST_F(EarlyRequests, ARefusalIsVoidWhenItsNumberIsAdmittedAgain) {
  order_.RememberFailure(1, absl::InternalError("no"));
  EXPECT_FALSE(order_.OutcomeOf(1).ok());
  order_.Admit(1);
  EXPECT_TRUE(order_.OutcomeOf(1).ok());
}

TEST_F(EarlyRequests, OfTooManyRefusalsTheOldestAreNotTakenForSuccess) {
  for (std::uint64_t sequence = 1; sequence <= kFailuresRememberedMax + 1; ++sequence) {
    order_.RememberFailure(sequence, absl::InternalError("no"));
  }
  EXPECT_EQ(order_.OutcomeOf(1).code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(order_.OutcomeOf(2).code(), absl::StatusCode::kInternal);
}

// ---- pulls that wait for a clock ----

TEST(PendingPullsTest, TheirChargeIsGivenBack) {
  runtime::ByteBudget budget{.bytes_max = 1 << 20};
  PendingPulls pending(&budget);
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    PendingPull pull;
    pull.decision.needed = sequence;
    pull.inbound = Request(sequence, 0);
    pending.Add(std::move(pull));
  }
  EXPECT_GT(budget.bytes, 0u);
  EXPECT_EQ(pending.TakeNeeding(1).size(), 1u);
  pending.DropWorker(0);
  EXPECT_EQ(budget.bytes, 0u);
}

TEST(PendingPullsTest, OneThatIsSentAgainStaysOne) {
  runtime::ByteBudget budget{.bytes_max = 1 << 20};
  PendingPulls pending(&budget);
  PendingPull pull;
  pull.inbound = Request(1, 0);
  const proto::RequestId id = pull.inbound.request.id;
  pending.Add(std::move(pull));
  EXPECT_TRUE(pending.Redirect(id, 8));
  const std::vector<PendingPull> taken = pending.TakeAll();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].inbound.peer, 8u);
}

// ---- pushes that wait for their clock to close ----

class Held : public testing::Test {
 protected:
  void Add(std::uint64_t clock, std::uint32_t rank, std::uint64_t incarnation,
           std::uint64_t sequence) {
    contributions_.Add(clock, {.table = 1},
                       {.rank = rank,
                        .incarnation = incarnation,
                        .sequence = sequence,
                        .bytes = 10,
                        .elements = 1,
                        .push = {}});
  }
  std::vector<std::uint64_t> Take(std::uint64_t clock) {
    std::vector<std::uint64_t> sequences;
    for (const auto& [target, list] : contributions_.Take(clock)) {
      for (const Contribution& one : list) sequences.push_back(one.sequence);
    }
    return sequences;
  }

  runtime::ByteBudget budget_{.bytes_max = 1 << 20};
  Contributions contributions_{&budget_};
};

TEST_F(Held, ComeOutInTheOrderOfWorkersAndNumbers) {
  Add(5, 1, 100, 7);
  Add(5, 0, 200, 9);
  Add(5, 0, 200, 8);
  EXPECT_EQ(budget_.bytes, 30u);
  EXPECT_THAT(Take(5), testing::ElementsAre(8, 9, 7));
  EXPECT_EQ(budget_.bytes, 0u);
}

TEST_F(Held, OfAProcessThatDiedGoAndNoOthers) {
  Add(5, 0, 200, 1);
  Add(6, 0, 200, 2);
  Add(6, 0, 201, 3);
  Add(6, 1, 300, 4);
  EXPECT_EQ(contributions_.Discard(0, 200, 6), 1u);
  EXPECT_THAT(Take(5), testing::ElementsAre(1));
  EXPECT_THAT(Take(6), testing::ElementsAre(3, 4));
}

}  // namespace
}  // namespace leeway::ps::budgets_test
