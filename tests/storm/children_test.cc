// Tests the waiting for processes that write nothing.
#include "tests/storm/children.h"

#include <gtest/gtest.h>

namespace leeway::storm::children_test {

TEST(ChildrenTest, WaitsNoLongerForASilentChildThanItWasTold) {
  Children children;
  launch::ProcessSpec spec;
  spec.name = "silent";
  spec.arguments = {"sleep", "20"};
  const absl::StatusOr<Child*> child =
      children.Start(spec, [](launch::Stream, absl::string_view) {});
  ASSERT_TRUE(child.ok()) << child.status();
  // The first would otherwise end with the child's output, the second much later.
  children.Poll(absl::Milliseconds(1));
  children.Poll(absl::Milliseconds(1));
  EXPECT_TRUE((*child)->running());
}

}  // namespace leeway::storm::children_test
