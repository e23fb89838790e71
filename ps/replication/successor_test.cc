#include "ps/replication/successor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace leeway::ps::downstream_test {
namespace {

using testing::ElementsAre;

Item Entry(std::uint64_t index) {
  Item item;
  item.header.index = index;
  return item;
}

// Entries that come during a fill wait for its pieces, and later ones for them, though the window
// lets one item through at a time.
TEST(DownstreamTest, EntriesFollowThePiecesInTheirOrder) {
  runtime::ByteBudget budget{.bytes_max = 1 << 20};
  Downstream downstream({}, /*stream=*/1, {.window_bytes = 1}, &budget);
  std::vector<std::uint64_t> sent;
  std::uint64_t acknowledged = 0;
  const auto pump = [&] {
    downstream.Pump(absl::UnixEpoch(), [&](Item* item) {
      sent.push_back(item->header.index);
      return true;
    });
  };
  const auto acknowledge = [&] {
    downstream.outbox().TakeAck(++acknowledged, 0, absl::UnixEpoch());
    pump();
  };
  downstream.Fill(Entry(100), {Entry(101), Entry(102)});
  pump();
  downstream.Append(Entry(1));
  downstream.Append(Entry(2));
  acknowledge();
  acknowledge();
  // All pieces are under way, but not all entries that waited for them.
  downstream.Append(Entry(3));
  EXPECT_GT(budget.bytes, 0u);
  while (!downstream.CaughtUp()) acknowledge();
  EXPECT_THAT(sent, ElementsAre(100, 101, 102, 1, 2, 3));
  EXPECT_EQ(budget.bytes, 0u);
}

}  // namespace
}  // namespace leeway::ps::downstream_test
