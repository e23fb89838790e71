#include "scheduler/members/membership_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MembershipTableTest : public ::testing::Test {
 protected:
  absl::StatusOr<Node*> Admit(Role role, std::uint64_t incarnation, int rank = -1) {
    return table_.Admit(JoinOf(role, rank), IdentityOf(role, incarnation));
  }
  static proto::Join JoinOf(Role role, int rank = -1) {
    proto::Join join;
    join.role = role;
    join.rank_wanted = rank;
    join.num_servers = 1;
    join.num_workers = 2;
    if (role == Role::kServer) join.endpoints = {"sim://server/0"};
    return join;
  }
  static van::Identity IdentityOf(Role role, std::uint64_t incarnation) {
    van::Identity identity;
    identity.role = role;
    identity.incarnation = incarnation;
    return identity;
  }
  void Refused(const absl::StatusOr<Node*>& node, absl::StatusCode code,
               const ::testing::Matcher<std::string>& reason) {
    ASSERT_FALSE(node.ok());
    EXPECT_EQ(node.status().code(), code);
    EXPECT_THAT(std::string(node.status().message()), reason);
  }

  MembershipTable table_{1, 2};
};

// A cluster may live for years, and its workers for minutes.
TEST_F(MembershipTableTest, ForgetsThoseThatWereReplacedLongAgo) {
  Node* const server = *Admit(Role::kServer, 1);
  Node* const other = *Admit(Role::kWorker, 2);
  Node* worker = *Admit(Role::kWorker, 3);
  ASSERT_TRUE(table_.UpdateComplete());
  const std::uint32_t first = worker->id;
  for (std::uint64_t i = 0; i < 5 * kReplacedMax; ++i) {
    table_.Retire(worker, Node::State::kDead, "it died");
    const absl::StatusOr<Node*> next = Admit(Role::kWorker, 1000 + i, 1);
    ASSERT_TRUE(next.ok()) << next.status();
    worker = *next;
  }
  EXPECT_EQ(table_.nodes().size(), kReplacedMax + 3);
  EXPECT_TRUE(table_.IsForgotten(first));
  EXPECT_EQ(table_.Find(first), nullptr);
  EXPECT_EQ(table_.FindIncarnation(3), nullptr);
  EXPECT_FALSE(table_.IsForgotten(worker->id - 1));
  EXPECT_FALSE(table_.IsForgotten(worker->id + 1));  // never admitted
  EXPECT_EQ(table_.FindIncarnation(1), server);
  EXPECT_EQ(table_.FindIncarnation(2), other);
  // The next scheduler goes on forgetting where this one was.
  std::vector<Node> kept;
  for (const auto& [id, node] : table_.nodes()) kept.push_back(node);
  MembershipTable next(1, 2);
  next.Restore(kept, table_.next_id(), true);
  next.Retire(next.Find(worker->id), Node::State::kDead, "it died");
  ASSERT_TRUE(next.Admit(JoinOf(Role::kWorker, 1), IdentityOf(Role::kWorker, 7)).ok());
  EXPECT_EQ(next.nodes().size(), kReplacedMax + 3);
}

TEST_F(MembershipTableTest, RanksCountFromZeroForEachRoleAndIdsFromTwo) {
  EXPECT_EQ((*Admit(Role::kWorker, 10))->rank, 0u);
  EXPECT_EQ((*Admit(Role::kServer, 11))->rank, 0u);
  const Node* last = *Admit(Role::kWorker, 12);
  EXPECT_EQ(last->rank, 1u);
  EXPECT_EQ(last->id, 4u);
  EXPECT_EQ(table_.FindIncarnation(12), last);
  EXPECT_TRUE(table_.UpdateComplete());
}

TEST_F(MembershipTableTest, ARankAskedForIsGivenOrRefused) {
  EXPECT_EQ((*Admit(Role::kWorker, 10, 1))->rank, 1u);
  Refused(Admit(Role::kWorker, 11, 1), absl::StatusCode::kAlreadyExists,
          AllOf(HasSubstr("LEEWAY_RANK=1"), HasSubstr("worker 1")));
  Refused(Admit(Role::kWorker, 11, 2), absl::StatusCode::kOutOfRange,
          AllOf(HasSubstr("LEEWAY_RANK=2"), HasSubstr("LEEWAY_NUM_WORKERS=2")));
  EXPECT_EQ((*Admit(Role::kWorker, 11))->rank, 0u);
}

TEST_F(MembershipTableTest, OneNodeTooManyIsRefusedWithBothNumbers) {
  ASSERT_TRUE(Admit(Role::kWorker, 10).ok());
  ASSERT_TRUE(Admit(Role::kWorker, 11).ok());
  Refused(Admit(Role::kWorker, 12), absl::StatusCode::kResourceExhausted,
          AllOf(HasSubstr("worker number 3"), HasSubstr("LEEWAY_NUM_WORKERS=2")));
  ASSERT_TRUE(Admit(Role::kServer, 13).ok());
  Refused(Admit(Role::kServer, 14), absl::StatusCode::kResourceExhausted,
          AllOf(HasSubstr("server number 2"), HasSubstr("LEEWAY_NUM_SERVERS=1")));
}

TEST_F(MembershipTableTest, ContradictoryNumbersAreRefused) {
  proto::Join join = JoinOf(Role::kWorker);
  join.num_servers = 3;
  Refused(table_.Admit(join, IdentityOf(Role::kWorker, 10)), absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("LEEWAY_NUM_SERVERS=3"), HasSubstr("LEEWAY_NUM_SERVERS=1")));
}

TEST_F(MembershipTableTest, NonsenseIsRefused) {
  Refused(Admit(Role::kTool, 10), absl::StatusCode::kInvalidArgument, HasSubstr("tool"));
  Refused(Admit(Role::kWorker, 0), absl::StatusCode::kInvalidArgument, HasSubstr("incarnation"));
  Refused(table_.Admit(JoinOf(Role::kWorker), IdentityOf(Role::kServer, 10)),
          absl::StatusCode::kInvalidArgument, HasSubstr("hello said server"));
  proto::Join join = JoinOf(Role::kServer);
  join.endpoints.clear();
  Refused(table_.Admit(join, IdentityOf(Role::kServer, 10)), absl::StatusCode::kInvalidArgument,
          HasSubstr("LEEWAY_SERVER_THREADS"));
}

class CompleteTableTest : public MembershipTableTest {
 protected:
  CompleteTableTest() {
    for (std::uint64_t incarnation : {10, 11}) EXPECT_TRUE(Admit(Role::kWorker, incarnation).ok());
    EXPECT_TRUE(Admit(Role::kServer, 12).ok());
    EXPECT_TRUE(table_.UpdateComplete());
  }
};

TEST_F(MembershipTableTest, BeforeTheClusterIsCompleteARankIsFreedAtOnce) {
  table_.Retire(*Admit(Role::kWorker, 10), Node::State::kDead, "gone");
  const Node* next = *Admit(Role::kWorker, 11);
  EXPECT_EQ(next->rank, 0u);
  EXPECT_FALSE(next->late);
  EXPECT_TRUE(table_.Dead().empty());
}

TEST_F(CompleteTableTest, ANodeThatGoesKeepsTheRankUntilANewProcessTakesIt) {
  Refused(Admit(Role::kWorker, 13), absl::StatusCode::kResourceExhausted, HasSubstr("joined"));
  table_.Retire(table_.FindIncarnation(11), Node::State::kDead, "gone");
  EXPECT_EQ(table_.Dead().size(), 1u);
  EXPECT_EQ(table_.Alive(Role::kWorker).size(), 1u);
  Refused(Admit(Role::kWorker, 13, 0), absl::StatusCode::kAlreadyExists, HasSubstr("worker 0"));
  const Node* returned = *Admit(Role::kWorker, 13);
  EXPECT_EQ(returned->rank, 1u);
  EXPECT_TRUE(returned->late);
  EXPECT_EQ(table_.workers()[1], returned);
  EXPECT_TRUE(table_.Dead().empty());
  EXPECT_EQ(table_.FindIncarnation(11)->state, Node::State::kDead);
}

TEST_F(CompleteTableTest, DeadNodesAreReplacedBeforeThoseThatLeft) {
  table_.Retire(table_.FindIncarnation(10), Node::State::kLeft, "done");
  table_.Retire(table_.FindIncarnation(11), Node::State::kDead, "gone");
  EXPECT_EQ((*Admit(Role::kWorker, 13))->rank, 1u);
  EXPECT_EQ((*Admit(Role::kWorker, 14))->rank, 0u);
}

TEST_F(CompleteTableTest, ElasticNodesMayAnnounceOtherNumbers) {
  proto::Join join = JoinOf(Role::kServer);
  join.elastic = true;
  join.num_servers = 77;
  const Node* server = *table_.Admit(join, IdentityOf(Role::kServer, 13));
  EXPECT_EQ(server->rank, 1u);
  EXPECT_TRUE(server->late);
  join.rank_wanted = 3;
  Refused(table_.Admit(join, IdentityOf(Role::kServer, 14)), absl::StatusCode::kOutOfRange,
          HasSubstr("LEEWAY_RANK=3"));
  join.rank_wanted = 2;
  EXPECT_EQ((*table_.Admit(join, IdentityOf(Role::kServer, 14)))->rank, 2u);
  // The others still announce what was announced at first.
  table_.Retire(table_.FindIncarnation(11), Node::State::kDead, "gone");
  EXPECT_TRUE(Admit(Role::kWorker, 15).ok());
}

TEST_F(CompleteTableTest, GoesOnFromADurableState) {
  table_.Retire(table_.FindIncarnation(11), Node::State::kDead, "gone");
  ASSERT_TRUE(Admit(Role::kWorker, 13).ok());
  std::vector<Node> nodes;
  for (const auto& [id, node] : table_.nodes()) nodes.push_back(node);
  MembershipTable other(1, 2);
  other.Restore(nodes, table_.next_id(), true);
  EXPECT_TRUE(other.complete());
  EXPECT_EQ(other.workers()[1]->incarnation, 13u);
  EXPECT_EQ(other.FindIncarnation(11)->state, Node::State::kDead);
  EXPECT_EQ((*other.Admit(
                 [] {
                   proto::Join join = JoinOf(Role::kWorker);
                   join.elastic = true;
                   return join;
                 }(),
                 IdentityOf(Role::kWorker, 14)))
                ->id,
            table_.next_id());
}

}  // namespace
}  // namespace leeway::scheduler
