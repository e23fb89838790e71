// Shard handlers in servers that are processes of their own and die in the midst of calls: each
// call takes effect once, and its answer tells of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leeway/worker.h"
#include "tests/commands/cluster.h"

namespace leeway::tests {
namespace shard_handlers_test {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kServers = 3, kWorkers = 2;
constexpr std::uint64_t kShows = 16;
constexpr int kSeats = 100;  // of each show: examples/my_handler/seats.cc

// The seats that one worker has bought, by show.
using Bought = std::vector<std::vector<int>>;

void Buy(const Config& config, std::atomic<int>* calls, Bought* bought,
         std::vector<std::int64_t>* sold) {
  const auto worker = Worker::Connect(config);
  ASSERT_TRUE(worker.ok()) << worker.status();
  TableSpec spec = TableSpec::Sparse("sold", 1, DType::kInt64);
  spec.updater.name = "add";
  spec.consistency = Consistency::Asp();
  const auto table = (*worker)->CreateTable(spec);
  ASSERT_TRUE(table.ok()) << table.status();
  bought->resize(kShows);
  std::set<std::uint64_t> open;
  for (std::uint64_t show = 0; show < kShows; ++show) open.insert(show);
  while (!open.empty()) {
    std::vector<std::string> seats(kShows);
    std::vector<Ticket> tickets(kShows);
    for (const std::uint64_t show : open) {
      tickets[show] = table->Call(show, "sell", absl::StrCat(show), &seats[show]);
    }
    for (const std::uint64_t show : std::set(open)) {
      const absl::Status status = (*worker)->Wait(tickets[show]);
      ++*calls;
      if (absl::IsOutOfRange(status)) {
        open.erase(show);
        continue;
      }
      ASSERT_TRUE(status.ok()) << status;
      (*bought)[show].push_back(std::stoi(seats[show]));
    }
  }
  ASSERT_TRUE((*worker)->Barrier().ok());
  std::vector<std::uint64_t> shows(kShows);
  for (std::uint64_t show = 0; show < kShows; ++show) shows[show] = show;
  sold->resize(kShows);
  ASSERT_TRUE((*worker)->Wait(table->Pull(shows, std::span(*sold))).ok());
  if ((*worker)->rank() != 0) return;
  const absl::Status wrong = (*worker)->Wait(table->Call(1, "sell", "which?", nullptr));
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("no number"));
  std::vector<std::string> answers;
  EXPECT_FALSE((*worker)->Wait(table->CallAll("sell", "1", &answers)).ok());
}

TEST(ShardHandlersTest, EachCallTakesEffectOnceThoughItsServerIsKilled) {
  Cluster cluster(kServers, kWorkers,
                  {{"LEEWAY_REPLICATION", "2"},
                   {"LEEWAY_PLUGINS", LEEWAY_HANDLER_PLUGIN},
                   {"LEEWAY_SUSPICION_MS", "100"}});
  Config config;
  config.role = Role::kWorker;
  config.scheduler = cluster.scheduler_address();
  config.num_servers = kServers;
  config.num_workers = kWorkers;
  config.log_level = "error";
  std::atomic<int> calls = 0;
  Bought bought[kWorkers];
  std::vector<std::int64_t> sold[kWorkers];
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&, i] { Buy(config, &calls, &bought[i], &sold[i]); });
  }
  while (calls < static_cast<int>(kShows) * kSeats / 4) std::this_thread::yield();
  cluster.server(0)->Signal(SIGKILL);
  for (std::thread& thread : threads) thread.join();
  if (HasFailure()) return;
  for (std::uint64_t show = 0; show < kShows; ++show) {
    std::multiset<int> seats;
    for (const Bought& of_worker : bought) {
      seats.insert(of_worker[show].begin(), of_worker[show].end());
      // A worker's own calls are in order.
      EXPECT_TRUE(std::is_sorted(of_worker[show].begin(), of_worker[show].end()));
    }
    EXPECT_EQ(seats.size(), static_cast<std::size_t>(kSeats)) << "show " << show;
    EXPECT_EQ(std::set(seats.begin(), seats.end()).size(), seats.size()) << "show " << show;
  }
  for (const std::vector<std::int64_t>& totals : sold) EXPECT_THAT(totals, Each(kSeats));
}

}  // namespace shard_handlers_test
}  // namespace leeway::tests
