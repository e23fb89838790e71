#include "scheduler/membership_table.h"

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

TEST_F(MembershipTableTest, OneTooManyIsToldBothNumbers) {
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

TEST_F(MembershipTableTest, ARankIsFreedOnlyBeforeTheClusterIsComplete) {
  table_.Retire(*Admit(Role::kWorker, 10), Node::State::kDead, "gone");
  EXPECT_EQ((*Admit(Role::kWorker, 11))->rank, 0u);
  ASSERT_TRUE(Admit(Role::kWorker, 12).ok());
  ASSERT_TRUE(Admit(Role::kServer, 13).ok());
  ASSERT_TRUE(table_.UpdateComplete());
  table_.Retire(table_.FindIncarnation(11), Node::State::kDead, "gone");
  Refused(Admit(Role::kWorker, 14), absl::StatusCode::kResourceExhausted, HasSubstr("joined"));
  Refused(Admit(Role::kWorker, 14, 0), absl::StatusCode::kAlreadyExists, HasSubstr("dead"));
  EXPECT_EQ(table_.Dead().size(), 1u);
  EXPECT_EQ(table_.Alive(Role::kWorker).size(), 1u);
}

}  // namespace
}  // namespace leeway::scheduler
