#include "runtime/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leeway::runtime {
namespace {

using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override {
    SetLogLevel(LogLevel::kInfo);
    SetLogName("");
  }
  template <class Action>
  static std::string Captured(Action action) {
    ::testing::internal::CaptureStderr();
    action();
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogTest, ALineHasTimeLevelAndName) {
  SetLogName("server 1");
  EXPECT_THAT(
      Captured([] { LogWarning("worker ", 3, " is late"); }),
      MatchesRegex("....-..-..T..:..:......[+-]..:.. warning server 1: worker 3 is late\n"));
}

TEST_F(LogTest, WithoutANameThereIsNone) {
  EXPECT_THAT(Captured([] { LogError("no"); }), MatchesRegex("[^ ]+ error no\n"));
}

TEST_F(LogTest, LinesBelowTheLevelAreSilent) {
  EXPECT_EQ(Captured([] { LogDebug("x"); }), "");
  SetLogLevel(LogLevel::kError);
  EXPECT_EQ(Captured([] { LogWarning("x"); }), "");
  SetLogLevel(LogLevel::kOff);
  EXPECT_EQ(Captured([] { LogError("x"); }), "");
  SetLogLevel(LogLevel::kDebug);
  EXPECT_NE(Captured([] { LogDebug("x"); }), "");
}

TEST_F(LogTest, OneLineStaysOneLine) {
  EXPECT_THAT(Captured([] { LogInfo("peer said \"a\nb\""); }),
              MatchesRegex("[^\n]*peer said [^\n]*a\\\\nb[^\n]*\n"));
}

TEST_F(LogTest, LevelsHaveNames) {
  EXPECT_EQ(ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("info"), LogLevel::kInfo);
  EXPECT_EQ(ParseLogLevel("warning"), LogLevel::kWarning);
  EXPECT_EQ(ParseLogLevel("error"), LogLevel::kError);
  EXPECT_EQ(ParseLogLevel("off"), LogLevel::kOff);
  EXPECT_EQ(ParseLogLevel("verbose"), std::nullopt);
}

}  // namespace
}  // namespace leeway::runtime
