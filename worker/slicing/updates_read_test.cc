#include "worker/slicing/updates_read.h"

#include "gtest/gtest.h"

namespace leeway::worker {
namespace {

// A push is never said to be older than what its worker had read.
TEST(UpdatesReadTest, AnEarlierAnswerThatComesLaterChangesNothing) {
  for (const bool dense : {true, false}) {
    UpdatesRead read(dense);
    const Piece first = {.shard = 1, .block = 7}, other = {.shard = 2, .block = 8};
    EXPECT_EQ(read.Of(first), 0u);
    read.Note(first, 5);
    read.Note(first, 4);
    EXPECT_EQ(read.Of(first), 5u);
    EXPECT_EQ(read.Of(other), 0u);
    read.Note(first, 6);
    EXPECT_EQ(read.Of(first), 6u);
  }
}

}  // namespace
}  // namespace leeway::worker
