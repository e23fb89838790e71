// Pushes from memory of Worker::Allocate, over shared memory to servers in processes of their own:
// once a ticket has completed in any way, no server sees later writes to that memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leeway/worker.h"
#include "tests/commands/cluster.h"

namespace leeway::tests {
namespace {

constexpr std::size_t kElements = 900'001;  // several blocks, the last of odd length
constexpr int kWorkers = 3;
constexpr int kSteps = 15;
constexpr float kSpoilt = 1e9f;

Config WorkerConfig(const Cluster& cluster, int servers, int workers) {
  Config config;
  config.role = Role::kWorker;
  config.scheduler = cluster.scheduler_address();
  config.num_servers = static_cast<std::uint32_t>(servers);
  config.num_workers = static_cast<std::uint32_t>(workers);
  config.van = "shm";
  config.log_level = "error";
  return config;
}

Environment Shm(int replication) {
  return {{"LEEWAY_VAN", "shm"},
          {"LEEWAY_REPLICATION", absl::StrCat(replication)},
          {"LEEWAY_FAILURE_TIMEOUT_MS", "60000"}};
}

// Expects that all elements are `wanted`; the message has the number and the first of others.
void ExpectAll(std::span<const float> values, float wanted) {
  const auto wrong = std::count_if(values.begin(), values.end(),
                                   [wanted](float value) { return value != wanted; });
  const auto first =
      std::find_if(values.begin(), values.end(), [wanted](float v) { return v != wanted; });
  EXPECT_EQ(wrong, 0) << "of " << values.size() << ", the first at " << first - values.begin()
                      << ": " << (wrong > 0 ? *first : 0) << " instead of " << wanted;
}

// Stops a server, and returns once it stands still, which is some time after the signal.
void Stop(Command* server) {
  server->Signal(SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_ALL, 0, &info, WSTOPPED), 0);
}

struct Case {
  Consistency consistency;
  int replication;
};

class ExportedMemoryTest : public testing::TestWithParam<Case> {};

void Train(Worker* worker, const Consistency& consistency) {
  TableSpec spec = TableSpec::Dense("w", {kElements});
  spec.consistency = consistency;
  const auto table = worker->CreateTable(spec);
  ASSERT_TRUE(table.ok()) << table.status();
  const auto array = worker->Allocate(kElements * sizeof(float));
  ASSERT_TRUE(array.ok()) << array.status();
  const std::span<float> gradient = array->as<float>();
  std::vector<float> pulled(kElements);
  float all = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const float mine = static_cast<float>(step * (worker->rank() + 1));
    std::fill(gradient.begin(), gradient.end(), mine);
    ASSERT_TRUE(worker->Wait(table->Push(std::span<const float>(gradient))).ok());
    std::fill(gradient.begin(), gradient.end(), kSpoilt);
    ASSERT_TRUE(worker->Clock().ok());
    all += static_cast<float>(step * kWorkers * (kWorkers + 1) / 2);
    if (!consistency.is_bsp()) continue;
    ASSERT_TRUE(worker->Wait(table->Pull(std::span<float>(pulled))).ok());
    ExpectAll(pulled, all);
  }
  ASSERT_TRUE(worker->Barrier().ok());
  ASSERT_TRUE(worker->Wait(table->Pull(std::span<float>(pulled))).ok());
  ExpectAll(pulled, all);
}

TEST_P(ExportedMemoryTest, WritesAfterATicketHasCompletedReachNobody) {
  constexpr int kServers = 2;
  const Cluster cluster(kServers, kWorkers, Shm(GetParam().replication));
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&] {
      const auto worker = Worker::Connect(WorkerConfig(cluster, kServers, kWorkers));
      ASSERT_TRUE(worker.ok()) << worker.status();
      Train(worker->get(), GetParam().consistency);
    });
  }
  for (std::thread& thread : threads) thread.join();
}
std::string NameOf(const testing::TestParamInfo<Case>& param) {
  const Consistency& consistency = param.param.consistency;
  const bool asp = consistency == Consistency::Asp();
  return absl::StrCat(consistency.is_bsp() ? "Bsp"
                      : asp                ? "Asp"
                                           : "Ssp",
                      "Replication", param.param.replication);
}
INSTANTIATE_TEST_SUITE_P(Policies, ExportedMemoryTest,
                         testing::Values(Case{Consistency::Bsp(), 1}, Case{Consistency::Ssp(1), 1},
                                         Case{Consistency::Asp(), 1}, Case{Consistency::Bsp(), 2},
                                         Case{Consistency::Ssp(1), 2}, Case{Consistency::Asp(), 2}),
                         NameOf);

// One server, and a worker that has pushed ones from an Array once.
class ExportedToOneServerTest : public testing::Test {
 protected:
  void SetUp() override {
    worker_ = Worker::Connect(WorkerConfig(cluster_, 1, 1));
    ASSERT_TRUE(worker_.ok()) << worker_.status();
    TableSpec spec = TableSpec::Dense("w", {kElements});
    spec.consistency = Consistency::Asp();
    table_ = (*worker_)->CreateTable(spec);
    ASSERT_TRUE(table_.ok()) << table_.status();
    array_ = (*worker_)->Allocate(kElements * sizeof(float));
    ASSERT_TRUE(array_.ok()) << array_.status();
    Fill(1);
    ASSERT_TRUE((*worker_)->Wait(Push()).ok());
  }
  std::span<float> gradient() { return array_->as<float>(); }
  void Fill(float with) { std::fill(gradient().begin(), gradient().end(), with); }
  Ticket Push(Options options = {}) {
    return table_->Push(std::span<const float>(gradient()), options);
  }

  Cluster cluster_{1, 1, Shm(1)};
  absl::StatusOr<std::unique_ptr<Worker>> worker_;
  absl::StatusOr<Table> table_;
  absl::StatusOr<Array> array_;
};

// The server is stopped while a push waits in the worker's memory; when it goes on the user has
// written other values there.
TEST_F(ExportedToOneServerTest, AFailedTicketGivesTheMemoryBackAndThePushKeepsItsValues) {
  Fill(8);
  Stop(cluster_.server(0));
  Options options;
  options.timeout = absl::Milliseconds(500);
  const absl::Time start = absl::Now();
  const absl::Status failed = (*worker_)->Wait(Push(options));
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnknown) << failed;
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  Fill(kSpoilt);
  cluster_.server(0)->Signal(SIGCONT);

  // A push past its deadline is resent until it is answered, and a pull follows it.
  std::vector<float> pulled(kElements);
  const absl::Status pull = (*worker_)->Wait(table_->Pull(std::span<float>(pulled)));
  ASSERT_TRUE(pull.ok()) << pull;
  ExpectAll(pulled, 9);

  Fill(2);
  ASSERT_TRUE((*worker_)->Wait(Push()).ok());
  ASSERT_TRUE((*worker_)->Wait(table_->Pull(std::span<float>(pulled))).ok());
  ExpectAll(pulled, 11);
}

TEST_F(ExportedToOneServerTest, TheTicketsOfADeadOneEndAndTheMemoryIsTheUsersAgain) {
  Stop(cluster_.server(0));
  Options options;
  options.timeout = absl::Seconds(1);
  const Ticket ticket = Push(options);
  cluster_.server(0)->Signal(SIGKILL);
  EXPECT_FALSE((*worker_)->Wait(ticket).ok());
  Fill(3);
  ExpectAll(gradient(), 3);
}

TEST(ArrayTest, IsZeroedAlignedAndMovable) {
  Cluster cluster(1, 1, Shm(1));
  const auto worker = Worker::Connect(WorkerConfig(cluster, 1, 1));
  ASSERT_TRUE(worker.ok()) << worker.status();
  std::vector<Array> arrays;
  for (const std::uint64_t bytes : {1u, 100u, 16'384u, 1'000'000u}) {
    auto array = (*worker)->Allocate(bytes);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array->data()) % 4096, 0u);
    EXPECT_THAT(array->as<char>(), testing::Each(0));
    EXPECT_EQ(array->as<double>().size(), bytes / 8);
    void* const data = array->data();
    arrays.push_back(*std::move(array));
    EXPECT_EQ(arrays.back().data(), data);
    EXPECT_EQ(array->bytes(), 0u);
    EXPECT_EQ(array->data(), nullptr);
  }
  EXPECT_EQ((*worker)->Allocate(0)->data(), nullptr);
  EXPECT_EQ((*worker)->Allocate(std::uint64_t{1} << 62).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*worker)->Allocate(~std::uint64_t{0}).status().code(),
            absl::StatusCode::kResourceExhausted);
  for (int i = 0; i < 300; ++i) {  // more than can be shared
    auto array = (*worker)->Allocate(20'000);
    ASSERT_TRUE(array.ok()) << i << ": " << array.status();
    arrays.push_back(*std::move(array));
    arrays.back().as<char>()[19'999] = 'x';
  }
}

}  // namespace
}  // namespace leeway::tests
