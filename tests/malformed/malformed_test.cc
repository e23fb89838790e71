// Sends thousands of malformed messages to a running scheduler and its servers, which does not
// disturb the training beside them.
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/malformed/attacker.h"
#include "tests/support/local_cluster.h"
#include "tools/admin/inquiry.h"

namespace leeway::tests {
namespace {

constexpr int kMessages = 5000;
constexpr std::uint32_t kServers = 2, kWorkers = 3;
constexpr std::uint64_t kElements = 1000;
constexpr int kStepsARound = 10;

// Training goes on in rounds until the attack is over; worker 0 decides for all when to end.
class Rounds {
 public:
  explicit Rounds(const std::atomic<bool>* over) : over_(over) {}
  // Worker 0 calls it before the barrier of round `round`, all workers after it.
  void Decide() {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_.push_back(over_->load());
  }
  bool Last(std::size_t round) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_[round];
  }

 private:
  const std::atomic<bool>* over_;
  std::mutex mutex_;
  std::vector<bool> last_;
};

// BSP on integers: after step n every element must be exactly n times the sum of the workers'
// values.
void Train(Worker* worker, Rounds* rounds, std::atomic<std::int64_t>* steps_taken) {
  TableSpec spec = TableSpec::Dense("counts", {kElements}, DType::kInt64);
  spec.consistency = Consistency::Bsp();
  auto table = worker->CreateTable(spec);
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<std::int64_t> mine(kElements, worker->rank() + 1);
  std::vector<std::int64_t> values(kElements);
  std::int64_t step = 0;
  for (std::size_t round = 0;; ++round) {
    for (int i = 0; i < kStepsARound; ++i, ++step) {
      const absl::Status pulled = worker->Wait(table->Pull(std::span<std::int64_t>(values)));
      ASSERT_TRUE(pulled.ok()) << pulled;
      ASSERT_THAT(values, testing::Each(step * (1 + 2 + 3)));
      const absl::Status pushed = worker->Wait(table->Push(std::span<const std::int64_t>(mine)));
      ASSERT_TRUE(pushed.ok()) << pushed;
      ASSERT_TRUE(worker->Clock().ok());
    }
    if (worker->rank() == 0) rounds->Decide();
    const absl::Status met = worker->Barrier();
    ASSERT_TRUE(met.ok()) << met;
    if (rounds->Last(round)) break;
  }
  *steps_taken = step;
}

std::vector<std::string> ServerAddresses(const LocalCluster& cluster) {
  std::vector<std::string> addresses;
  const auto status = nlohmann::json::parse(cluster.SchedulerStatus());
  for (const auto& server : status["servers"]) {
    for (const auto& endpoint : server["endpoints"]) addresses.push_back(endpoint);
  }
  return addresses;
}

// The status of the scheduler and of each server, with their counters of the attack.
std::vector<std::string> Statuses(const LocalCluster& cluster) {
  std::vector<std::string> all = {cluster.SchedulerStatus()};
  for (auto& answer : tools::AskForStatus(ServerAddresses(cluster), Role::kServer,
                                          absl::Seconds(30), cluster.WorkerConfig())) {
    EXPECT_TRUE(answer.ok()) << answer.status();
    all.push_back(*std::move(answer));
  }
  return all;
}

void ExpectNoticed(const nlohmann::json& network) {
  EXPECT_GT(network["offenders_dropped"], 1000) << network;
  EXPECT_GT(network["handshakes_failed"], 10) << network;
  EXPECT_GT(network["refused_versions"], 10) << network;
}

TEST(MalformedTest, FiveThousandMessagesOfEveryKindHarmNothing) {
  ASSERT_GE(AttackKinds(), 12);
  LocalCluster::Setup setup;
  setup.servers = kServers;
  setup.workers = kWorkers;
  setup.net = LocalCluster::Net::kZmqTcp;
  setup.config.log_level = "off";
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();

  std::atomic<bool> over = false;
  std::atomic<std::int64_t> steps = 0;
  int sent = 0;
  std::thread attack;
  std::once_flag once;
  Rounds rounds(&over);
  std::vector<std::string> statuses;
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    std::call_once(once, [&] {
      attack = std::thread([&, addresses = ServerAddresses(**cluster)]() mutable {
        EXPECT_EQ(addresses.size(), kServers);
        addresses.push_back((*cluster)->scheduler_address());
        {
          Attacker attacker(1);
          for (int i = 0; i < kMessages; ++i) {
            sent += attacker.Attack(
                i % AttackKinds(),
                addresses[static_cast<std::size_t>(i / AttackKinds()) % addresses.size()]);
          }
        }  // returns once everything has been sent
        over = true;
      });
    });
    Train(worker, &rounds, &steps);
    if (worker->rank() == 0) statuses = Statuses(**cluster);
  });
  attack.join();
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(sent, kMessages);
  EXPECT_GE(steps, kStepsARound);
  ASSERT_EQ(statuses.size(), 1 + kServers);
  ExpectNoticed(nlohmann::json::parse(statuses[0])["counters"]);
  for (std::size_t i = 1; i < statuses.size(); ++i) {
    ExpectNoticed(nlohmann::json::parse(statuses[i])["van"]);
  }
  const absl::Status ended = (*cluster)->Finish();
  EXPECT_TRUE(ended.ok()) << ended;
}

}  // namespace
}  // namespace leeway::tests
