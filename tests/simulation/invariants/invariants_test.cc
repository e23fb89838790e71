// Each invariant accepts and refuses the right reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/random_operations/plain_updater.h"
#include "tests/simulation/invariants/invariant.h"

namespace leeway::simulation {
namespace {

using ::testing::HasSubstr;

// Two workers and one table of a single place.
class InvariantsTest : public testing::Test {
 protected:
  InvariantsTest() {
    table_.num_workers = 2;
    table_.width = table_.stride = 2 * kElementsPerWorker;
    table_.spec = TableSpec::Dense("t", {table_.width}, DType::kInt64);
    table_.spec.consistency = Consistency::Ssp(2);
    for (WorkerLife& life : history_.lives) life.incarnation = 1;
  }
  // A push of `worker`, acknowledged at that second unless it is negative.
  void Push(std::uint32_t worker, std::uint64_t clock, int acknowledged = -1) {
    simulation::Push push;
    push.clock = clock;
    push.incarnation = 1;
    push.places = 1;
    if (acknowledged >= 0) {
      push.outcome = Outcome::kAcknowledged;
      push.acknowledged = absl::UnixEpoch() + absl::Seconds(acknowledged);
    }
    history_.pushes(table_, worker).push_back(push);
  }
  // Worker 0 asks at that clock, at second 10.
  Read Ask(std::uint64_t clock) {
    Read read;
    read.table = &table_;
    read.incarnation = 1;
    read.clock = read.effective = read.reader_clock = clock;
    read.submitted = absl::UnixEpoch() + absl::Seconds(10);
    read.own_pushes = history_.pushes(table_, 0).size();
    read.places = {0};
    read.counts.resize(table_.width);
    read.floats.resize(table_.width);
    return read;
  }
  static void See(Read* read, std::uint32_t worker, std::size_t number) {
    AddPush(*read->table, read->counts, worker, number);
  }

  SimTable table_;
  History history_{1, 2};
};

TEST_F(InvariantsTest, AppliedOnce) {
  const auto once = NewAppliedOnce();
  Push(1, 0);
  Read read = Ask(0);
  EXPECT_EQ(once->Judge(read, history_), "");
  See(&read, 1, 0);
  EXPECT_EQ(once->Judge(read, history_), "");
  See(&read, 1, 0);
  EXPECT_THAT(once->Judge(read, history_), HasSubstr("push 0 of worker 1 (clock 0, unanswered) in "
                                                     "block 0 of 't' (ssp:2) is applied 2 times"));
  read = Ask(0);
  See(&read, 1, 1);
  EXPECT_THAT(once->Judge(read, history_), HasSubstr("was never made"));
}

TEST_F(InvariantsTest, AcknowledgedIsThere) {
  const auto there = NewAcknowledgedIsThere();
  Push(1, 5, 10);  // not before the read was asked for
  Push(1, 5);
  Read read = Ask(0);
  EXPECT_EQ(there->Judge(read, history_), "");
  Push(1, 5, 9);
  EXPECT_THAT(there->Judge(read, history_), HasSubstr("push 2 of worker 1"));
  See(&read, 1, 2);
  EXPECT_EQ(there->Judge(read, history_), "");
}

TEST_F(InvariantsTest, AcknowledgedInBspOnceItsClockHasClosed) {
  const auto there = NewAcknowledgedIsThere();
  table_.spec.consistency = Consistency::Bsp();
  Push(1, 5, 1);
  EXPECT_EQ(there->Judge(Ask(5), history_), "");
  EXPECT_NE(there->Judge(Ask(6), history_), "");
  history_.lives[1].killed = true;  // perhaps before its clock was counted
  EXPECT_EQ(there->Judge(Ask(6), history_), "");
  history_.Prove(table_, 1, 6);
  EXPECT_NE(there->Judge(Ask(6), history_), "");
}

TEST_F(InvariantsTest, OwnWrites) {
  const auto own = NewOwnWritesRead();
  Push(0, 3);
  Push(1, 3);
  Read read = Ask(3);
  EXPECT_THAT(own->Judge(read, history_), HasSubstr("push 0 of worker 0"));
  See(&read, 0, 0);
  EXPECT_EQ(own->Judge(read, history_), "");
  table_.spec.consistency = Consistency::Bsp();
  EXPECT_EQ(own->Judge(Ask(3), history_), "");
  EXPECT_NE(own->Judge(Ask(4), history_), "");
}

TEST_F(InvariantsTest, StalenessBound) {
  const auto bound = NewStalenessBound();
  Push(1, 3);
  EXPECT_EQ(bound->Judge(Ask(5), history_), "");  // of ssp:2
  EXPECT_NE(bound->Judge(Ask(6), history_), "");
  history_.lives[1].killed = true;
  EXPECT_EQ(bound->Judge(Ask(6), history_), "");
  history_.lives[1].killed = false;
  table_.spec.consistency = Consistency::Asp();
  EXPECT_EQ(bound->Judge(Ask(600), history_), "");
}

TEST_F(InvariantsTest, MonotonicReads) {
  const auto monotonic = NewMonotonicReads();
  Read early = Ask(0);
  monotonic->OnAsked(&early);
  Read first = Ask(0);
  See(&first, 1, 0);
  monotonic->OnAsked(&first);
  EXPECT_EQ(monotonic->Judge(first, history_), "");
  EXPECT_EQ(monotonic->Judge(early, history_), "");  // was asked for before
  Read late = Ask(0);
  monotonic->OnAsked(&late);
  EXPECT_NE(monotonic->Judge(late, history_), "");
}

TEST_F(InvariantsTest, OpenClocksAreHidden) {
  const auto hidden = NewOpenClocksHidden();
  table_.spec.consistency = Consistency::Bsp();
  Push(1, 4);
  Read read = Ask(4);
  See(&read, 1, 0);
  EXPECT_NE(hidden->Judge(read, history_), "");
  read.reader_clock = 5;
  EXPECT_EQ(hidden->Judge(read, history_), "");
  // The clock has closed, but its worker had not ended it when it died.
  history_.lives[1].died_in[history_.pushes(table_, 1).front().incarnation] = 4;
  EXPECT_NE(hidden->Judge(read, history_), "");
  history_.lives[1].died_in.begin()->second = 5;
  EXPECT_EQ(hidden->Judge(read, history_), "");
}

TEST_F(InvariantsTest, OptimizerStates) {
  const auto states = NewOptimizerStates();
  table_.counter = false;
  table_.one_writer = true;
  table_.spec.updater.name = "momentum";
  const std::vector<float> gradient(table_.width, 1.0f);
  tests::Element<float> element;
  std::vector<float> after;
  for (int i = 0; i < 3; ++i) {
    Push(0, 1);
    states->OnFloatPush(table_, 0, gradient);
    tests::PlainUpdate("momentum", 1.0f, &element);
    after.push_back(element.value);
  }
  Read read = Ask(1);
  for (float& value : read.floats) value = after[2];
  EXPECT_EQ(states->Judge(read, history_), "");
  for (float& value : read.floats) value = after[1];
  EXPECT_THAT(states->Judge(read, history_), HasSubstr("no state after 3 to 3 pushes"));
  read.own_pushes = 2;
  EXPECT_EQ(states->Judge(read, history_), "");
  read.floats.back() = after[2];  // half of a push
  EXPECT_NE(states->Judge(read, history_), "");
}

TEST_F(InvariantsTest, FewCollectedPushesWait) {
  const auto few = NewFewAreWaiting();
  table_.spec.consistency = Consistency::FedBuff(2);
  Push(0, 0, /*acknowledged=*/1);
  Push(1, 0, /*acknowledged=*/2);
  Push(1, 0, /*acknowledged=*/20);  // after the read was asked for
  Read read = Ask(0);
  EXPECT_THAT(few->Judge(read, history_), HasSubstr("2 acknowledged pushes"));
  See(&read, 0, 0);
  EXPECT_EQ(few->Judge(read, history_), "");
  table_.spec.consistency = Consistency::Softsync(2);  // one push of two workers is an update
  EXPECT_THAT(few->Judge(read, history_), HasSubstr("where 1 are an update"));
}

TEST_F(InvariantsTest, DroppedIsSaid) {
  const auto said = NewDroppedIsSaid();
  table_.spec.consistency = Consistency::Backup(1, 2, Consistency::Late::kDrop);
  Push(1, 0, /*acknowledged=*/1);
  history_.pushes(table_, 1)[0].dropped = 1;
  Read read = Ask(1);
  EXPECT_EQ(said->Judge(read, history_), "");
  See(&read, 1, 0);
  EXPECT_THAT(said->Judge(read, history_), HasSubstr("lacks 0 places"));
}

}  // namespace
}  // namespace leeway::simulation
