#include "scheduler/members/barriers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/sim/sim_world.h"

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BarriersTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kWorkers = 1000;

  BarriersTest() {
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      proto::Join join;
      join.role = Role::kWorker;
      join.num_workers = kWorkers;
      van::Identity identity;
      identity.role = Role::kWorker;
      identity.incarnation = rank + 1;
      EXPECT_TRUE(members_.Admit(join, identity).ok());
    }
  }
  // The worker of that rank; `late` if it has come back with an incarnation.
  Node WorkerOf(std::uint32_t rank) {
    Node worker = *members_.workers()[rank];
    worker.late = late_.contains(rank);
    if (worker.late) worker.incarnation = late_[rank];
    return worker;
  }
  void Enter(std::uint32_t rank, std::uint64_t number = 1, int timeout_s = 0,
             std::string name = "b", Group group = Group::kWorkers) {
    proto::BarrierEnter enter;
    enter.name = std::move(name);
    enter.group = group;
    enter.number = number;
    enter.timeout_ms = static_cast<std::uint64_t>(timeout_s) * 1000;
    barriers_.Enter(WorkerOf(rank), enter);
  }
  void PassSeconds(int seconds) { world_.RunFor(absl::Seconds(seconds)); }
  // "rank:number:code" of what was answered since the last call.
  std::vector<std::string> Answers() { return std::exchange(answers_, {}); }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("scheduler");
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("loop");
  MembershipTable members_{0, kWorkers};
  std::vector<std::uint32_t> needed_ = {0, 1, 2};
  std::map<std::uint32_t, std::uint64_t> late_;  // rank → incarnation
  std::vector<std::string> answers_;
  absl::Status last_;
  int asked_who_is_needed_ = 0;
  Barriers barriers_{
      runner_->loop(), &members_,
      [this] {
        ++asked_who_is_needed_;
        return needed_;
      },
      [this](const Node& worker, const proto::BarrierRelease& release) {
        answers_.push_back(absl::StrCat(worker.rank, ":", release.number, ":",
                                        absl::StatusCodeToString(release.result.code())));
        last_ = release.result;
      }};
};

// All workers are looked at a few times, not at each entry: there may be thousands.
TEST_F(BarriersTest, AnEntryDoesNotCostMoreWhereThereAreManyWorkers) {
  for (std::uint32_t rank = 3; rank < 1000; ++rank) needed_.push_back(rank);
  for (std::uint32_t rank = 0; rank < 1000; ++rank) Enter(rank);
  EXPECT_EQ(Answers().size(), 1000u);
  EXPECT_LE(asked_who_is_needed_, 2);
  asked_who_is_needed_ = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) Enter(i * 617 % 1000, 2);  // in no order
  EXPECT_EQ(Answers().size(), 1000u);
  EXPECT_LE(asked_who_is_needed_, 40);
}

TEST_F(BarriersTest, OpensWhenTheLastHasEntered) {
  Enter(0);
  Enter(2);
  EXPECT_THAT(Answers(), IsEmpty());
  ASSERT_EQ(barriers_.waiting().size(), 1u);
  EXPECT_THAT(barriers_.waiting()[0].missing, ElementsAre(1));
  Enter(1);
  EXPECT_THAT(Answers(), ElementsAre("0:1:OK", "1:1:OK", "2:1:OK"));
  EXPECT_THAT(barriers_.waiting(), IsEmpty());
}

TEST_F(BarriersTest, EnteringAgainCountsOnceAndIsAnsweredAgainAfterwards) {
  Enter(0);
  Enter(0);
  Enter(1);
  EXPECT_THAT(Answers(), IsEmpty());
  Enter(2);
  Answers();
  Enter(1);
  EXPECT_THAT(Answers(), ElementsAre("1:1:OK"));
}

TEST_F(BarriersTest, NumbersNamesAndGroupsAreApart) {
  Enter(0, 1);
  Enter(1, 2);
  Enter(2, 1, 0, "c");
  Enter(1, 1, 0, "b", Group::kAll);
  EXPECT_THAT(Answers(), IsEmpty());
  EXPECT_EQ(barriers_.waiting().size(), 4u);
}

TEST_F(BarriersTest, ServersCountAsEntered) {
  for (std::uint32_t rank : {0, 1, 2}) Enter(rank, 1, 0, "b", Group::kAll);
  EXPECT_EQ(Answers().size(), 3u);
  Enter(0, 1, 0, "b", Group::kServers);
  EXPECT_THAT(Answers(), ElementsAre("0:1:INVALID_ARGUMENT"));
}

TEST_F(BarriersTest, ADeathWhileWaitingOpensIt) {
  Enter(0);
  Enter(1);
  needed_ = {0, 1};
  barriers_.Gone(WorkerOf(2));
  EXPECT_THAT(Answers(), ElementsAre("0:1:OK", "1:1:OK"));
}

TEST_F(BarriersTest, TheDeathOfOneThatHasEnteredDoesNotOpenIt) {
  Enter(0);
  needed_ = {1, 2};
  barriers_.Gone(WorkerOf(0));
  EXPECT_THAT(Answers(), IsEmpty());
}

TEST_F(BarriersTest, TheFirstToLosePatienceEndsItForAllAndTheMissingAreNamed) {
  Enter(0, 1, 60);
  PassSeconds(5);
  Enter(1, 1, 10);
  PassSeconds(7);
  members_.workers()[2]->heard = runner_->loop()->Now();
  PassSeconds(2);
  EXPECT_THAT(Answers(), IsEmpty());
  PassSeconds(1);
  EXPECT_THAT(Answers(), ElementsAre("0:1:DEADLINE_EXCEEDED", "1:1:DEADLINE_EXCEEDED"));
  EXPECT_THAT(std::string(last_.message()),
              AllOf(HasSubstr("'b'"), HasSubstr("15s"), HasSubstr("worker 2, last heard 3s ago"),
                    Not(HasSubstr("worker 1"))));
  // A worker that enters late sees the same end, so that the next barrier has all of them again.
  Enter(2, 1, 60);
  EXPECT_THAT(Answers(), ElementsAre("2:1:DEADLINE_EXCEEDED"));
  EXPECT_EQ(last_.message(),
            "barrier 'b' (number 1) ended after 15s without worker 2, last heard 3s ago");
  for (std::uint32_t rank : {0, 1, 2}) Enter(rank, 2);
  EXPECT_THAT(Answers(), ElementsAre("0:2:OK", "1:2:OK", "2:2:OK"));
}

TEST_F(BarriersTest, EnteringAgainDoesNotPutOffTheDeadline) {
  Enter(0, 1, 10);
  PassSeconds(9);
  Enter(0, 1, 10);
  PassSeconds(1);
  EXPECT_THAT(Answers(), ElementsAre("0:1:DEADLINE_EXCEEDED"));
}

TEST_F(BarriersTest, RememberedEndsAreBounded) {
  const std::uint64_t last = kBarrierEndsRememberedMax + 5;
  for (std::uint64_t number = 1; number <= last; ++number) {
    for (std::uint32_t rank : {0, 1, 2}) Enter(rank, number);
  }
  Answers();
  Enter(0, last);
  Enter(0, 6);
  Enter(0, 5);
  EXPECT_THAT(Answers(),
              ElementsAre(absl::StrCat("0:", last, ":OK"), "0:6:OK", "0:5:FAILED_PRECONDITION"));
  needed_ = {0};
  for (std::size_t i = 0; i <= kBarrierNamesRememberedMax; ++i) {
    Enter(0, 1, 0, absl::StrCat("name ", i));
  }
  Answers();
  needed_ = {0, 1};
  Enter(0, last);  // forgotten with its name
  EXPECT_THAT(Answers(), IsEmpty());
}

TEST_F(BarriersTest, TooManyWaitingAreRefused) {
  for (std::uint64_t number = 1; number <= kBarriersWaitingMax; ++number) Enter(0, number);
  EXPECT_THAT(Answers(), IsEmpty());
  Enter(0, kBarriersWaitingMax + 1);
  EXPECT_EQ(last_.code(), absl::StatusCode::kResourceExhausted);
  Enter(0, 1);
  EXPECT_EQ(Answers().size(), 1u);
}

TEST_F(BarriersTest, AReturnedWorkerJoinsTheBarrierThatTheOthersWaitIn) {
  for (std::uint64_t number : {1, 2, 3}) {
    for (std::uint32_t rank : {0, 1, 2}) Enter(rank, number);
  }
  needed_ = {0, 1};
  barriers_.Gone(WorkerOf(2));
  Enter(0, 4);
  needed_ = {0, 1, 2};
  late_[2] = 77;
  Answers();
  Enter(2, 1);
  Enter(2, 1);  // said again
  EXPECT_THAT(Answers(), IsEmpty());
  Enter(1, 4);
  EXPECT_THAT(Answers(), ElementsAre("0:4:OK", "1:4:OK", "2:1:OK"));
  Enter(2, 1);  // the answer was lost
  EXPECT_THAT(Answers(), ElementsAre("2:1:OK"));
  for (std::uint32_t rank : {0, 1}) Enter(rank, 5);
  EXPECT_THAT(Answers(), IsEmpty());
  Enter(2, 2);
  EXPECT_THAT(Answers(), ElementsAre("0:5:OK", "1:5:OK", "2:2:OK"));
}

TEST_F(BarriersTest, AReturnedWorkerThatIsFirstOpensTheNextBarrier) {
  for (std::uint64_t number : {1, 2, 3}) {
    for (std::uint32_t rank : {0, 1, 2}) Enter(rank, number);
  }
  Answers();
  late_[1] = 77;
  Enter(1, 1);
  Enter(1, 1, 0, "new name");
  EXPECT_THAT(Answers(), IsEmpty());
  for (std::uint32_t rank : {0, 2}) Enter(rank, 4);
  EXPECT_THAT(Answers(), ElementsAre("0:4:OK", "1:1:OK", "2:4:OK"));
}

TEST_F(BarriersTest, TheEntriesOfADeadWorkerAreNotItsSuccessors) {
  Enter(2, 1, 5);
  Enter(0, 1);
  barriers_.Gone(WorkerOf(2));
  late_[2] = 77;
  Enter(1, 1);
  EXPECT_THAT(Answers(), IsEmpty());
  PassSeconds(60);  // the dead one's deadline is nobody's
  EXPECT_THAT(Answers(), IsEmpty());
  Enter(2, 1);
  EXPECT_THAT(Answers(), ElementsAre("0:1:OK", "1:1:OK", "2:1:OK"));
}

TEST_F(BarriersTest, OfLateWorkersThatHaveGoneNothingIsKept) {
  late_[1] = 77;
  Enter(1, 1);
  Enter(1, 1, 0, "another");
  EXPECT_EQ(barriers_.state().shifts.size(), 2u);
  barriers_.Gone(WorkerOf(1));
  EXPECT_TRUE(barriers_.state().shifts.empty());
}

}  // namespace
}  // namespace leeway::scheduler
