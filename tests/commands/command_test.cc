// Tests that programs started by tests end with all their processes.
#include "tests/commands/command.h"

#include <gtest/gtest.h>

namespace leeway::tests {
namespace {

// Orphans of a killed leader are adopted by the test and end a moment after it.
TEST(CommandTest, KilledWithItsWholeGroup) {
  for (int round = 0; round < 50; ++round) {
    {
      Command command({"/bin/sh", "-c", "sleep 1000 & sleep 1000 & sleep 1000 & echo up; wait"},
                      {});
      ASSERT_TRUE(command.Says("up"));
    }
    ASSERT_TRUE(NothingRuns()) << "round " << round;
  }
}

}  // namespace
}  // namespace leeway::tests
