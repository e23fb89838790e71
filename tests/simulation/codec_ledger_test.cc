// The oracles of changed codecs accept and refuse the right maps, pushes and answers.
#include "tests/simulation/codec_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/simulation/coded_states.h"
#include "tests/simulation/coded_table_testing.h"

namespace leeway::simulation {
namespace codec_ledger_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kId = 9;
constexpr std::uint32_t kNone = 0, kZstd = 1, kOnebit = 2;  // in the order of the description

SimTable TableOf(const std::string& updater) {
  return coded_table_testing::DenseTable("none", {"zstd", "onebit"}, updater);
}

class CodecLedgerTest : public testing::Test {
 protected:
  CodecLedgerTest() : history_(1, 2), ledger_(&history_) {
    for (WorkerLife& life : history_.lives) {
      life.incarnation = 1;
      life.known_as = {77};
    }
    ledger_.Know(kId, table_);
  }

  std::string Decide(std::uint64_t number, std::uint32_t before, std::uint32_t choice,
                     std::uint64_t clock, absl::Time told = absl::UnixEpoch()) {
    proto::ClusterMap map;
    map.codecs = {{.table = kId,
                   .number = number,
                   .before = before,
                   .choice = choice,
                   .clock = clock,
                   .decided = true}};
    return ledger_.OnMap(map, told);
  }
  // `choice`: kNone for a push that travels as it is.
  std::string Push(std::uint64_t clock, std::uint32_t choice,
                   std::uint32_t plain_under = 1u << kNone) {
    return ledger_.OnPush(kId, {.rank = 1,
                                .known_as = 77,
                                .clock = clock,
                                .codec = table_.codecs.choices[choice].id,
                                .plain_under = plain_under});
  }

  const SimTable table_ = TableOf("add");
  History history_;
  CodecLedger ledger_;
};

TEST_F(CodecLedgerTest, APushHasTheCodecOfItsClock) {
  EXPECT_EQ(Push(3, kNone), "");
  EXPECT_EQ(Decide(1, kNone, kOnebit, 5), "");
  EXPECT_EQ(Push(4, kNone), "");
  EXPECT_EQ(Push(5, kOnebit), "");
  EXPECT_THAT(Push(4, kOnebit), HasSubstr("clock 4 by onebit, where none holds"));
  EXPECT_THAT(Push(6, kZstd), HasSubstr("clock 6 by zstd, where onebit holds"));
  EXPECT_THAT(Push(7, kNone), HasSubstr("clock 7 without a codec, where onebit holds"));
}

TEST_F(CodecLedgerTest, APushMayTravelAsItIsWhereItsCodecAllowsThat) {
  EXPECT_EQ(Decide(1, kNone, kZstd, 5), "");
  EXPECT_EQ(Push(5, kNone, 1u << kNone | 1u << kZstd), "");
  EXPECT_THAT(Push(6, kNone, 1u << kNone), HasSubstr("without a codec, where zstd holds"));
}

TEST_F(CodecLedgerTest, ADecisionDoesNotComeAfterPushesOfItsClocks) {
  EXPECT_EQ(Push(7, kNone), "");
  EXPECT_EQ(Decide(1, kNone, kOnebit, 8), "");
  EXPECT_EQ(Push(20, kOnebit), "");
  EXPECT_THAT(Decide(2, kOnebit, kZstd, 20), HasSubstr("comes too late: worker 1 has pushed"));
}

TEST_F(CodecLedgerTest, AKilledWorkerIsNotAsked) {
  EXPECT_EQ(Push(20, kNone), "");
  history_.lives[1].killed = 1;
  EXPECT_EQ(Decide(1, kNone, kOnebit, 8), "");
}

TEST_F(CodecLedgerTest, ASwitchIsDecidedOnceAndFollowsOnTheOneBefore) {
  EXPECT_EQ(Decide(1, kNone, kOnebit, 5), "");
  EXPECT_EQ(Decide(1, kNone, kOnebit, 5), "");
  EXPECT_THAT(Decide(1, kNone, kOnebit, 6), HasSubstr("is decided anew"));
  EXPECT_THAT(Decide(2, kNone, kZstd, 9), HasSubstr("does not follow"));
  EXPECT_EQ(Decide(3, kZstd, kOnebit, 12), "");
  EXPECT_EQ(ledger_.decided(), 3u);
}

// A switch may be decided when workers are beyond its clock, as long as they keep back what they
// have for the table.
TEST_F(CodecLedgerTest, ASwitchIsKnownWhenItIsToldAndHoldsFromItsClockOn) {
  const absl::Time told = absl::UnixEpoch();
  Decide(1, kNone, kOnebit, 5, told);
  EXPECT_TRUE(ledger_.SwitchedBy(kId, 5, told + absl::Seconds(1)));
  EXPECT_FALSE(ledger_.SwitchedBy(kId, 4, told + absl::Seconds(1)));
  EXPECT_FALSE(ledger_.SwitchedBy(kId, 5, told));
}

TEST_F(CodecLedgerTest, AServerMayNotKnowTheLastSwitchesYet) {
  const auto at = [](int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); };
  Decide(1, kNone, kOnebit, 5, at(10));
  Decide(2, kOnebit, kZstd, 9, at(20));
  EXPECT_THAT(ledger_.ChoicesAt(kId, 4, at(0)), ElementsAre(kNone));
  EXPECT_THAT(ledger_.ChoicesAt(kId, 9, at(0)), ElementsAre(kNone, kOnebit, kZstd));
  EXPECT_THAT(ledger_.ChoicesAt(kId, 9, at(15)), ElementsAre(kOnebit, kZstd));
  EXPECT_THAT(ledger_.ChoicesAt(kId, 9, at(25)), ElementsAre(kZstd));
}

TEST(CodedStatesTest, AnAnswerShowsWhichWayAGradientHasGone) {
  const SimTable table = TableOf("gradient");
  std::vector<float> push(40, 1.0f);
  push[0] = 3;
  CodedStates states;
  const auto either = states.Next(table, kId, 0, push, 1, std::vector{kOnebit, kZstd});
  ASSERT_THAT(either, SizeIs(2));
  EXPECT_EQ(either[1], push);
  EXPECT_NE(either[0], push);
  // The residual of onebit goes along with the next lossless message.
  const auto after = states.Next(table, kId, 0, push, 1, std::vector{kZstd});
  ASSERT_THAT(after, SizeIs(2));
  EXPECT_NE(after[0], push);
  EXPECT_FLOAT_EQ(after[0][0] + either[0][0], 6);
  EXPECT_EQ(after[1], push);
  states.OnAnswered(table, 0, either[0]);
  EXPECT_THAT(states.Next(table, kId, 0, push, 1, std::vector{kZstd}), SizeIs(1));
}

TEST(CodedStatesTest, GivesUpWhereThereAreTooManyWays) {
  const SimTable table = TableOf("gradient");
  CodedStates states;
  std::vector<CodedStates::Values> either = {{}};
  for (int i = 0; i < 8; ++i) {
    either =
        states.Next(table, kId, 0, std::vector<float>(40, 1.0f), 1, std::vector{kOnebit, kZstd});
  }
  EXPECT_THAT(either, IsEmpty());
}

}  // namespace
}  // namespace codec_ledger_test
}  // namespace leeway::simulation
