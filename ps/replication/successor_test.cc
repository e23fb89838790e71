#include "ps/replication/successor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace leeway::ps::successor_test {
namespace {

using testing::ElementsAre;

LogEntry Entry(std::uint64_t index) {
  LogEntry entry;
  entry.header.index = index;
  return entry;
}

// Entries that come during a state transfer wait for its pieces, and later ones for them, though
// the window lets one entry through at a time.
TEST(SuccessorTest, EntriesFollowThePiecesInTheirOrder) {
  runtime::ByteBudget budget{.bytes_max = 1 << 20};
  Successor successor({}, /*stream=*/1, {.window_bytes = 1}, &budget);
  std::vector<std::uint64_t> sent;
  std::uint64_t acknowledged = 0;
  const auto pump = [&] {
    successor.Pump(absl::UnixEpoch(), [&](LogEntry* entry) {
      sent.push_back(entry->header.index);
      return true;
    });
  };
  const auto acknowledge = [&] {
    successor.sender().TakeAck(++acknowledged, 0, absl::UnixEpoch());
    pump();
  };
  successor.BeginTransfer(Entry(100), {Entry(101), Entry(102)});
  pump();
  successor.Append(Entry(1));
  successor.Append(Entry(2));
  acknowledge();
  acknowledge();
  // All pieces are under way, but not all entries that waited for them.
  successor.Append(Entry(3));
  EXPECT_GT(budget.bytes, 0u);
  while (!successor.CaughtUp()) acknowledge();
  EXPECT_THAT(sent, ElementsAre(100, 101, 102, 1, 2, 3));
  EXPECT_EQ(budget.bytes, 0u);
}

}  // namespace
}  // namespace leeway::ps::successor_test
