#include "runtime/loop/log_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/sim/sim_world.h"

namespace leeway::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

// The limit is three lines in ten seconds, on virtual time.
class LogLimiterTest : public ::testing::Test {
 protected:
  ~LogLimiterTest() override { SetLogLevel(LogLevel::kInfo); }

  void Flood(absl::string_view kind, int from, int to) {
    for (int i = from; i < to; ++i) limiter_->Warning(kind, absl::StrCat(kind, " ", i));
  }
  template <class Action>
  static std::vector<std::string> Lines(Action action) {
    ::testing::internal::CaptureStderr();
    action();
    return absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  }

  SimWorld world_{1};
  std::unique_ptr<Host> host_ = world_.NewHost("host");
  std::unique_ptr<LoopRunner> runner_ = host_->Spawn("loop");
  std::unique_ptr<LogLimiter> limiter_ = std::make_unique<LogLimiter>(
      runner_->loop(), LogLimiter::Limits{.lines = 3, .interval = absl::Seconds(10)});
};

TEST_F(LogLimiterTest, TheFirstLinesOfAKindPass) {
  EXPECT_THAT(Lines([&] { Flood("dropped", 0, 1000); }),
              ElementsAre(EndsWith("dropped 0"), EndsWith("dropped 1"), EndsWith("dropped 2")));
}

TEST_F(LogLimiterTest, TheRestIsCountedAndToldWhenTheIntervalIsOverThoughNothingMoreHappens) {
  Lines([&] { Flood("dropped", 0, 1000); });
  EXPECT_THAT(Lines([&] { world_.RunFor(absl::Seconds(9)); }), IsEmpty());
  EXPECT_THAT(Lines([&] { world_.RunFor(absl::Seconds(2)); }),
              ElementsAre(EndsWith("dropped 999 (and 996 more like this in the last 10s)")));
  EXPECT_THAT(Lines([&] { world_.RunFor(absl::Hours(1)); }), IsEmpty()) << "told once";
}

TEST_F(LogLimiterTest, ASingleLineThatWasLeftOutComesAsItIs) {
  Lines([&] { Flood("dropped", 0, 4); });
  EXPECT_THAT(Lines([&] { world_.RunFor(absl::Seconds(11)); }), ElementsAre(EndsWith("dropped 3")));
}

TEST_F(LogLimiterTest, KindsDoNotCountAgainstEachOther) {
  Lines([&] { Flood("dropped", 0, 1000); });
  EXPECT_THAT(Lines([&] { Flood("stalled", 0, 1); }), ElementsAre(EndsWith("stalled 0")));
}

TEST_F(LogLimiterTest, AnEndlessFloodIsFewLines) {
  std::size_t lines = 0;
  for (int second = 0; second < 100; ++second) {
    lines += Lines([&] {
               Flood("dropped", 0, 1000);
               world_.RunFor(absl::Seconds(1));
             }).size();
  }
  EXPECT_LE(lines, 10 * (3 + 1) + 4);
  EXPECT_GE(lines, 30);
}

TEST_F(LogLimiterTest, SuppressedLinesAreCountedAtTheEnd) {
  Lines([&] { Flood("dropped", 0, 10); });
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Lines([&] { limiter_.reset(); }),
              ElementsAre(EndsWith("dropped 9 (and 6 more like this in the last 1s)")));
}

TEST_F(LogLimiterTest, BelowTheLevelNothingIsCounted) {
  SetLogLevel(LogLevel::kError);
  EXPECT_THAT(Lines([&] {
                Flood("dropped", 0, 1000);
                world_.RunFor(absl::Seconds(20));
              }),
              IsEmpty());
}

}  // namespace
}  // namespace leeway::runtime
