#include "worker/client/log_name.h"

#include <gtest/gtest.h>

#include "runtime/log/log.h"

namespace leeway::worker {
namespace {

TEST(LogNameTest, HasTheRanksOfTheWorkersOfTheProcess) {
  ASSERT_EQ(runtime::LogName(), "");
  {
    LogName first;
    first.SetRank(3);
    EXPECT_EQ(runtime::LogName(), "worker 3");
    {
      LogName second;
      second.SetRank(1);
      EXPECT_EQ(runtime::LogName(), "workers 1, 3");
    }
    EXPECT_EQ(runtime::LogName(), "worker 3");
    first.SetRank(4);
    EXPECT_EQ(runtime::LogName(), "worker 4");
  }
  EXPECT_EQ(runtime::LogName(), "");
}

TEST(LogNameTest, KeepsAnotherNameOfTheProcess) {
  runtime::SetLogName("trainer");
  {
    LogName name;
    name.SetRank(3);
    EXPECT_EQ(runtime::LogName(), "trainer");
  }
  EXPECT_EQ(runtime::LogName(), "trainer");
  runtime::SetLogName("");
}

}  // namespace
}  // namespace leeway::worker
