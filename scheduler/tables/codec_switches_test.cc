#include "scheduler/tables/codec_switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::scheduler {
namespace codec_switches_test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kTable = 4;
constexpr std::size_t kToldMax = 2;

class CodecSwitchesTest : public testing::Test {
 protected:
  CodecSwitchesTest()
      : switches_(
            kToldMax, [this] { return workers_; },
            [this] {
              ++version_;
              switches_.Published(version_);
            }) {}

  void Switch(std::uint32_t choice) {
    switches_.Switch(kTable, choice,
                     [this](const absl::StatusOr<std::uint64_t>& clock) { told_ = clock; });
  }
  void Ack(std::uint32_t worker, std::uint64_t clock) { Ack(worker, clock, clock); }
  void Ack(std::uint32_t worker, std::uint64_t clock, std::uint64_t oldest) {
    switches_.OnAck(worker, version_, clock, oldest);
  }
  proto::CodecSwitch Last() const { return switches_.entries().back(); }

  std::vector<std::uint32_t> workers_ = {10, 11};
  std::uint64_t version_ = 5;
  absl::StatusOr<std::uint64_t> told_ = absl::UnavailableError("nothing yet");
  CodecSwitches switches_;
};

TEST_F(CodecSwitchesTest, IsDecidedOnceAllWorkersHaveSaidThatTheyHadNotReachedIt) {
  switches_.OnAck(10, 5, 7, 7);  // of a map before it
  Switch(2);
  EXPECT_FALSE(Last().decided);
  EXPECT_EQ(Last().clock, 7 + kMarginMin);
  Ack(10, 7);
  EXPECT_FALSE(Last().decided);
  EXPECT_FALSE(told_.ok());
  Ack(11, 3);
  EXPECT_TRUE(Last().decided);
  EXPECT_EQ(told_.value(), 7 + kMarginMin);
  EXPECT_EQ(switches_.CurrentOf(kTable).choice, 2u);
  EXPECT_EQ(switches_.CurrentOf(kTable).since, 7 + kMarginMin);
}

TEST_F(CodecSwitchesTest, AWorkerThatWasThereAlreadyPutsItOff) {
  Switch(1);
  EXPECT_EQ(Last().clock, kMarginMin);
  Ack(10, 0);
  Ack(11, 40);
  EXPECT_FALSE(Last().decided);
  EXPECT_GT(Last().clock, 40u);
  // What was said of the clock before does not count.
  Ack(11, 40);
  EXPECT_FALSE(Last().decided);
  Ack(10, 1);
  EXPECT_TRUE(Last().decided);
}

// Its pushes of the clock have counted, by the codec of before.
TEST_F(CodecSwitchesTest, AWorkerThatLeavesInTheClockPutsItOff) {
  Switch(1);
  Ack(10, 0);
  switches_.OnLeave(11, kMarginMin);
  workers_ = {10};
  switches_.WorkersChanged();
  EXPECT_FALSE(Last().decided);
  EXPECT_GT(Last().clock, kMarginMin);
  Ack(10, 1);
  EXPECT_TRUE(Last().decided);
}

TEST_F(CodecSwitchesTest, AWorkerThatLeavesBeforeTheClockOrHasAgreedDoesNotPutItOff) {
  Switch(1);
  Ack(10, 0);
  switches_.OnLeave(10, 900);
  switches_.OnLeave(11, kMarginMin - 1);
  workers_.clear();
  switches_.WorkersChanged();
  EXPECT_TRUE(Last().decided);
  EXPECT_EQ(Last().clock, kMarginMin);
}

// It keeps what it pushes to the table, and goes on.
TEST_F(CodecSwitchesTest, AWorkerThatHasAgreedMayGoOnBeyondIt) {
  Switch(1);
  Ack(10, 0);
  Ack(10, 900);
  Ack(11, 0);
  EXPECT_TRUE(Last().decided);
  EXPECT_EQ(Last().clock, kMarginMin);
}

TEST_F(CodecSwitchesTest, AnOlderMapSaysNothingOfIt) {
  Switch(1);
  switches_.OnAck(10, version_ - 1, 0, 0);
  switches_.OnAck(11, version_ - 1, 0, 0);
  EXPECT_FALSE(Last().decided);
}

TEST_F(CodecSwitchesTest, TheDeadAreNotWaitedFor) {
  Switch(1);
  Ack(10, 0);
  workers_ = {10};
  switches_.WorkersChanged();
  EXPECT_TRUE(Last().decided);
}

TEST_F(CodecSwitchesTest, WorkersThatJoinMeanwhileAreAwaited) {
  Switch(1);
  Ack(10, 0);
  workers_.push_back(12);
  Ack(11, 0);
  EXPECT_FALSE(Last().decided);
  Ack(12, 0);
  EXPECT_TRUE(Last().decided);
}

TEST_F(CodecSwitchesTest, WithRoomTheNextOneDoesNotWaitForTheLast) {
  Switch(1);
  Ack(10, 0), Ack(11, 0);
  ASSERT_TRUE(Last().decided);
  const std::uint64_t first = Last().clock;
  Switch(0);
  Ack(10, 0), Ack(11, 0);
  EXPECT_TRUE(Last().decided);
  EXPECT_GT(Last().clock, first);
  EXPECT_EQ(Last().before, 1u);
  EXPECT_EQ(Last().choice, 0u);
  EXPECT_THAT(switches_.entries(), SizeIs(2));
}

TEST_F(CodecSwitchesTest, WithoutRoomItWaitsUntilNothingIsUnderWayFromBeforeTheFirst) {
  Switch(1);
  Ack(10, 0), Ack(11, 0);
  const std::uint64_t first = Last().clock;
  Switch(2);
  Ack(10, 0), Ack(11, 0);
  Switch(1);
  Ack(10, 1), Ack(11, 1);
  EXPECT_FALSE(Last().decided);
  EXPECT_THAT(switches_.entries(), SizeIs(kToldMax + 1));
  switches_.Tick();
  Ack(10, first), Ack(11, first, first - 1);  // of which a request is under way
  EXPECT_FALSE(Last().decided);
  switches_.Tick();
  Ack(11, first, first);
  Ack(10, first);
  EXPECT_TRUE(Last().decided);
  EXPECT_THAT(switches_.entries(), SizeIs(kToldMax));
  EXPECT_EQ(switches_.OldestChoice(kTable), 1u);
}

TEST_F(CodecSwitchesTest, AWorkerThatIsNotHeardOfMayBeInAnyClock) {
  Switch(1);
  Ack(10, 0), Ack(11, 0);
  Switch(2);
  Ack(10, 0), Ack(11, 0);
  workers_.push_back(12);
  Ack(10, 90), Ack(11, 90);
  EXPECT_THAT(switches_.entries(), SizeIs(2));
  Ack(12, 90);
  EXPECT_THAT(switches_.entries(), SizeIs(1));
}

// However long that takes, the clock does not run away from the workers.
TEST_F(CodecSwitchesTest, WaitingForASlowWorkerPutsTheNextOneNoFurtherOff) {
  for (const std::uint32_t choice : {1, 2}) {  // as many as are told
    Switch(choice);
    Ack(10, 0), Ack(11, 0);
    ASSERT_TRUE(Last().decided);
  }
  Switch(0);
  for (int i = 0; i < 100; ++i) {
    Ack(10, 20), Ack(11, 0);
    switches_.Tick();
  }
  EXPECT_FALSE(Last().decided);
  EXPECT_LE(Last().clock, 20 + 2 * kMarginMin);
}

TEST_F(CodecSwitchesTest, ThoseAskedForTogetherComeOneAfterTheOther) {
  Switch(1);
  Switch(2);
  Switch(2);
  EXPECT_EQ(Last().choice, 1u);
  Ack(10, 0), Ack(11, 0);
  EXPECT_EQ(Last().choice, 2u);
  EXPECT_FALSE(Last().decided);
  Ack(10, 1), Ack(11, 1);
  for (std::uint64_t clock = 2; !Last().decided && clock < 9; ++clock) {
    Ack(10, clock), Ack(11, clock);
    switches_.Tick();
  }
  EXPECT_TRUE(Last().decided);
  EXPECT_EQ(told_.value(), Last().clock);
}

TEST_F(CodecSwitchesTest, TheCodecThatATableHasIsNoSwitch) {
  Switch(0);
  EXPECT_EQ(told_.value(), 0u);
  EXPECT_THAT(switches_.entries(), IsEmpty());
}

TEST_F(CodecSwitchesTest, TooManyAreRefused) {
  for (std::size_t i = 0; i <= kSwitchesWaitingMax; ++i) Switch(1 + i % 2);
  EXPECT_EQ(told_.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CodecSwitchesTest, GoesOnAfterARestart) {
  Switch(1);
  Ack(10, 0), Ack(11, 0);
  Switch(2);
  CodecSwitches next(
      kToldMax, [this] { return workers_; }, [] {});
  next.Restore(switches_.entries());
  EXPECT_EQ(next.entries(), switches_.entries());
  next.Published(9);
  next.OnAck(10, 9, kMarginMin, kMarginMin), next.OnAck(11, 9, kMarginMin, kMarginMin);
  EXPECT_TRUE(next.entries().back().decided);
  EXPECT_EQ(next.CurrentOf(kTable).choice, 2u);
}

}  // namespace
}  // namespace codec_switches_test
}  // namespace leeway::scheduler
