// What a data thread tells people: its status, and who holds up whom in the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "ps/data/rates.h"
#include "ps/data/stragglers.h"
#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(RatesTest, AreOfTheLastSeconds) {
  Rates rates;
  Counters counters;
  van::Counters van;
  EXPECT_EQ(rates.Of(At(0), counters, van).seconds, 0) << "nothing has been noted";
  for (int second = 0; second < 100; ++second) {
    rates.Note(At(second), counters, van);
    counters.pushes_applied += second < 50 ? 1'000'000 : 10;  // long ago there were more
    counters.pulls_served += 20;
    van.bytes_received += 300;
    van.bytes_sent += 4000;
  }
  const Rates::PerSecond of = rates.Of(At(100), counters, van);
  EXPECT_NEAR(of.seconds, 6, 0.01);
  EXPECT_NEAR(of.pushes, 10, 1e-9);
  EXPECT_NEAR(of.pulls, 20, 1e-9);
  EXPECT_NEAR(of.bytes_in, 300, 1e-9);
  EXPECT_NEAR(of.bytes_out, 4000, 1e-9);
}

TEST(RatesTest, TooShortATimeIsNoRate) {
  Rates rates;
  Counters counters;
  rates.Note(At(1), counters, {});
  counters.pushes_applied = 1;
  EXPECT_EQ(rates.Of(At(1), counters, {}).pushes, 0);
  EXPECT_EQ(rates.Of(At(1.01), counters, {}).seconds, 0);
  EXPECT_NEAR(rates.Of(At(1.5), counters, {}).pushes, 2, 1e-9);
}

class StatusTest : public ::testing::Test {
 protected:
  nlohmann::json Status() { return nlohmann::json::parse(bench_.thread().StatusJson()); }
  std::vector<std::string> LinesWithin(absl::Duration time) {
    ::testing::internal::CaptureStderr();
    bench_.world().RunFor(time);
    return absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  }
  // Worker 0, in clock 5, pulls what worker 1, in clock 0, holds up.
  std::uint32_t Straggler() {
    const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Ssp(1)));
    bench_.Tick(0, 5);
    for (std::uint64_t block : {0, 1}) bench_.Send(0, bench_.DensePull(0, table, 5, block));
    EXPECT_FALSE(bench_.GotReply(0));
    return table;
  }

  Bench bench_;
};

TEST_F(StatusTest, SaysWhoHoldsUpWhomAndSinceWhen) {
  EXPECT_THAT(Status()["waits"], IsEmpty());
  const std::uint32_t table = Straggler();
  bench_.world().RunFor(absl::Seconds(3));
  const nlohmann::json waits = Status()["waits"];
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]["table"], table);
  EXPECT_EQ(waits[0]["pulls"], 2);
  EXPECT_EQ(waits[0]["clock"], 4);
  EXPECT_EQ(waits[0]["for_ms"], 3000);
  EXPECT_EQ(waits[0]["workers_behind"], 1);
  EXPECT_EQ(waits[0]["behind"], (nlohmann::json{{{"worker", 1}, {"clock", 0}}}));
  bench_.Tick(1, 5);
  EXPECT_THAT(Status()["waits"], IsEmpty());
}

TEST_F(StatusTest, TheWorkerThatHoldsUpOthersIsLoggedOnceAMinute) {
  Straggler();
  EXPECT_THAT(LinesWithin(absl::Seconds(4.9)), IsEmpty());
  EXPECT_THAT(LinesWithin(absl::Seconds(2)),
              ElementsAre(EndsWith("warning 2 pulls of table w have waited for clock 4 for 5s: "
                                   "worker 1 is at clock 0")));
  EXPECT_THAT(LinesWithin(absl::Seconds(50)), IsEmpty());
  EXPECT_THAT(LinesWithin(absl::Seconds(20)), ElementsAre(EndsWith("worker 1 is at clock 0")));
  bench_.Tick(1, 5);
  EXPECT_THAT(LinesWithin(absl::Minutes(10)), IsEmpty());
}

// It waits for workers that are to come.
TEST_F(StatusTest, SaysThatTooFewWorkersAreLivingToCloseAClock) {
  const std::uint32_t table =
      bench_.Install(AddTable("w", Consistency::Parse("backup:9/9,wait").value()));
  bench_.Tick(0, 1);
  bench_.Tick(1, 1);
  bench_.Send(0, bench_.DensePull(0, table, 1));
  const char* const why = "2 workers are living, and a clock closes when 9 have ended it";
  EXPECT_EQ(Status()["waits"][0]["why"], why);
  EXPECT_THAT(LinesWithin(absl::Seconds(7)), ElementsAre(EndsWith(why)));
}

TEST_F(StatusTest, NobodyIsNamedWhereNobodyWaitsLong) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Ssp(1)));
  ::testing::internal::CaptureStderr();
  for (std::uint64_t clock = 1; clock < 20; ++clock) {
    bench_.Tick(0, clock + 4);
    bench_.Send(0, bench_.DensePull(0, table, clock + 4));
    bench_.world().RunFor(absl::Seconds(4));
    bench_.Tick(1, clock + 4);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(StragglerLinesTest, AreOfAllThreadsOfAServerTogether) {
  StragglerLines lines;
  EXPECT_TRUE(lines.Take(At(100)));
  EXPECT_FALSE(lines.Take(At(159)));
  EXPECT_TRUE(lines.Take(At(160)));
}

TEST_F(StatusTest, AWorkerIsAsFarAsTheLastOfItsShards) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  const proto::Request overtaken = bench_.DensePush(0, table, 0);
  bench_.Tick(0, 3);
  EXPECT_EQ(Status()["workers"][0], (nlohmann::json{{"worker", 0}, {"clock", 0}}));
  bench_.Send(0, overtaken, Bench::Filled(1));
  EXPECT_EQ(Status()["workers"][0], (nlohmann::json{{"worker", 0}, {"clock", 3}}));
}

TEST_F(StatusTest, TablesHaveTheStalenessOfTheirReplies) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  EXPECT_EQ(Status()["tables"][0]["staleness"], nlohmann::json::object());
  bench_.PullNow(0, table, 0);
  bench_.PullNow(0, table, 0);
  bench_.Tick(0, 3);
  bench_.Take(0);
  bench_.PullNow(0, table, 3);
  bench_.Tick(0, 500);
  bench_.Take(0);
  bench_.PullNow(0, table, 500);
  EXPECT_EQ(Status()["tables"][0]["staleness"], (nlohmann::json{{"0", 2}, {"3", 1}, {"64+", 1}}));
}

TEST_F(StatusTest, TablesSayAllTheMemoryThatTheyTake) {
  TableSpec spec = AddTable("w", Consistency::Asp());
  spec.updater.name = "adam";  // two values of state for each element
  const std::uint32_t table = bench_.Install(spec);
  EXPECT_EQ(Status()["tables"][0]["memory_bytes"], 0);
  EXPECT_TRUE(bench_.PushNow(0, table, 0, 1).ok());
  EXPECT_EQ(Status()["tables"][0]["memory_bytes"], 3 * Bench::kBlock * sizeof(float));
}

TEST_F(StatusTest, RatesAndStallsAreInTheStatus) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  bench_.world().RunFor(absl::Seconds(10));
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(bench_.PushNow(0, table, 0, 1).ok());
  const nlohmann::json status = Status();
  const double seconds = status["rates"]["seconds"];
  EXPECT_NEAR(seconds, 5, 1.1);
  EXPECT_NEAR(status["rates"]["pushes"].get<double>() * seconds, 60, 1e-6);
  EXPECT_EQ(status["rates"]["pulls"], 0);
  EXPECT_EQ(status["stalled"], nlohmann::json::array());
}

}  // namespace
}  // namespace leeway::ps
