// A push whose clock is not open yet waits at the server; an operation that waits too long says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::waiting_push {
namespace {

class WaitingPush : public PromiseTest {};

TEST_F(WaitingPush, SaysThatItsClockIsNotOpen) {
  StartAll(Base(1, 2, 1));
  const Table table = Create(Dense(Consistency::Backup(2, 2)));
  Clock(0);
  const absl::Status late = Wait(PushPull(0, table, 1, absl::Seconds(1)));
  EXPECT_EQ(late.code(), absl::StatusCode::kUnknown) << late;
  EXPECT_THAT(std::string(late.message()),
              testing::HasSubstr("table 't' is backup:2/2: a push of clock 1 waits there until so "
                                 "many workers have ended the clocks before"));
  Clock(1);
  EXPECT_TRUE(Wait(Push(0, table, 1)).ok());
}

}  // namespace
}  // namespace leeway::simulation::waiting_push
