// Flips one bit on its way, in each of many lives of a cluster: between workers and servers,
// servers and servers, or nodes and scheduler; in a payload, a header or the framing. No value is
// wrong, nothing crashes or hangs, and the receiver counts the change.
//
// LEEWAY_TEST_FLIPS is the number of lives of each kind. LEEWAY_TEST_CHECKSUM=off shows that the
// test can fail: it does without checksums.
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"
#include "runtime/memory/sanitized.h"
#include "tests/integrity/flipping_proxy.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

constexpr std::uint32_t kServers = 2, kWorkers = 2;
constexpr std::uint64_t kClocks = 4;
constexpr std::uint64_t kDense = 30'000;
constexpr std::uint64_t kSparse = 500, kWidth = 3;

int Flips(int by_default) {
  const char* set = std::getenv("LEEWAY_TEST_FLIPS");
  int flips = 0;
  if (set != nullptr && absl::SimpleAtoi(set, &flips)) return flips;
  return runtime::kSanitized ? by_default / 3 : by_default;
}

std::string ChecksumSetting() {
  const char* set = std::getenv("LEEWAY_TEST_CHECKSUM");
  return set == nullptr ? "on" : set;
}

// The number that worker `rank` adds to element `i` in iteration `clock`: all differ.
std::int64_t Amount(std::uint64_t rank, std::uint64_t clock, std::uint64_t i) {
  return static_cast<std::int64_t>((rank + 1) * 1'000'003 + clock * 10'007 + i * 31);
}

std::int64_t Sum(std::uint64_t clocks, std::uint64_t i) {
  std::int64_t sum = 0;
  for (std::uint64_t rank = 0; rank < kWorkers; ++rank) {
    for (std::uint64_t clock = 0; clock < clocks; ++clock) sum += Amount(rank, clock, i);
  }
  return sum;
}

std::vector<std::int64_t> Amounts(std::uint64_t rank, std::uint64_t clock, std::uint64_t count) {
  std::vector<std::int64_t> amounts(count);
  for (std::uint64_t i = 0; i < count; ++i) amounts[i] = Amount(rank, clock, i);
  return amounts;
}

absl::Status CheckSums(const std::vector<std::int64_t>& values, std::uint64_t clocks) {
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] == Sum(clocks, i)) continue;
    return absl::DataLossError(absl::StrCat("element ", i, " is ", values[i], " after ", clocks,
                                            " clocks, not ", Sum(clocks, i)));
  }
  return absl::OkStatus();
}

// Adds to a dense and a sparse table, and checks every sum of every clock.
absl::Status Train(Worker* worker) {
  absl::StatusOr<Table> dense = worker->CreateTable(TableSpec::Dense("d", {kDense}, DType::kInt64));
  if (!dense.ok()) return dense.status();
  absl::StatusOr<Table> sparse = worker->CreateTable(TableSpec::Sparse("s", kWidth, DType::kInt64));
  if (!sparse.ok()) return sparse.status();
  std::vector<std::uint64_t> keys(kSparse);
  for (std::uint64_t i = 0; i < kSparse; ++i) keys[i] = i * i;
  const std::span<const std::uint64_t> all(keys);
  std::vector<std::int64_t> values(kDense), rows(kSparse * kWidth);
  for (std::uint64_t clock = 0; clock < kClocks; ++clock) {
    const auto to_dense = Amounts(worker->rank(), clock, kDense);
    const auto to_sparse = Amounts(worker->rank(), clock, kSparse * kWidth);
    const Ticket pushes[] = {dense->Push(std::span<const std::int64_t>(to_dense)),
                             sparse->Push(all, std::span<const std::int64_t>(to_sparse))};
    if (absl::Status status = worker->Wait(pushes); !status.ok()) return status;
    if (absl::Status status = worker->Clock(); !status.ok()) return status;
    const Ticket pulls[] = {dense->Pull(std::span<std::int64_t>(values)),
                            sparse->Pull(all, std::span<std::int64_t>(rows))};
    if (absl::Status status = worker->Wait(pulls); !status.ok()) return status;
    if (absl::Status status = CheckSums(values, clock + 1); !status.ok()) return status;
    if (absl::Status status = CheckSums(rows, clock + 1); !status.ok()) return status;
  }
  return absl::OkStatus();
}

LocalCluster::Setup SetupFor(LocalCluster::Net net, FlippingProxy* proxy, VanTotals* totals) {
  LocalCluster::Setup setup;
  setup.servers = kServers;
  setup.workers = kWorkers;
  setup.net = net;
  setup.config.replication = 2;
  setup.config.num_shards = 4;
  setup.config.block_bytes = 64 << 10;
  setup.config.heartbeat_interval = absl::Milliseconds(200);
  setup.config.resend_interval = absl::Milliseconds(500);
  setup.config.request_timeout = absl::Seconds(100);
  setup.config.checksum = ChecksumSetting();
  setup.wrap = [proxy, totals](std::unique_ptr<van::Factory> inner) {
    return NewProxiedFactory(std::move(inner), proxy, totals);
  };
  return setup;
}

struct Life {
  absl::Status status;        // of the cluster, and of the first worker that failed
  std::uint64_t crossed = 0;  // bytes until the last value was checked
};

Life Live(LocalCluster::Net net, FlippingProxy* proxy, VanTotals* totals) {
  Life life;
  auto cluster = LocalCluster::Start(SetupFor(net, proxy, totals));
  if (!cluster.ok()) return {cluster.status()};
  std::mutex mutex;
  const absl::Status run = (*cluster)->RunWorkers([&](Worker* worker) {
    absl::Status status = Train(worker);
    const std::lock_guard<std::mutex> lock(mutex);
    life.status.Update(status);
    if (life.crossed == 0) life.crossed = proxy->crossed_bytes();
  });
  life.status.Update(run);
  life.status.Update((*cluster)->Finish());
  return life;
}

// At most `uncounted_max` flips may leave no trace in our counters.
void ExpectNoFlipDoesHarm(LocalCluster::Net net, int flips, int uncounted_max) {
  runtime::Random random(1 + static_cast<std::uint64_t>(net));
  std::uint64_t crossed = 0;
  {
    FlippingProxy proxy;
    VanTotals totals;
    const Life life = Live(net, &proxy, &totals);
    ASSERT_TRUE(life.status.ok()) << life.status;
    EXPECT_EQ(totals.checksums_failed, 0u);
    crossed = life.crossed;
  }
  int flipped = 0;
  std::vector<std::string> uncounted;
  for (int i = 0; flipped < flips && i < 2 * flips + 10; ++i) {
    FlippingProxy proxy;
    VanTotals totals;
    // Half of them early: where nodes join, and where there is little payload.
    const std::uint64_t among = random.Below(2) == 0 ? crossed : crossed / 50;
    proxy.FlipAfter(random.Below(among), static_cast<int>(random.Below(8)));
    const Life life = Live(net, &proxy, &totals);
    ASSERT_TRUE(life.status.ok()) << i << ": " << proxy.Where() << ": " << life.status;
    if (!proxy.flipped()) continue;  // fewer bytes crossed this time
    ++flipped;
    if (totals.checksums_failed + totals.handshakes_failed == 0) uncounted.push_back(proxy.Where());
  }
  EXPECT_LE(uncounted.size(), static_cast<std::size_t>(uncounted_max))
      << absl::StrJoin(uncounted, "\n");
  EXPECT_EQ(flipped, flips);
}

TEST(FlippedBitsTest, OverTcp) { ExpectNoFlipDoesHarm(LocalCluster::Net::kTcp, Flips(45), 0); }

// ZeroMQ does not report faults in its own framing, which is less than a twentieth of the bytes
// here.
TEST(FlippedBitsTest, OverZmq) {
  const int flips = Flips(15);
  ExpectNoFlipDoesHarm(LocalCluster::Net::kZmqTcp, flips, 2 + flips / 20);
}

}  // namespace
}  // namespace leeway::tests
