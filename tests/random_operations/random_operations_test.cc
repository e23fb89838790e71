// One million random operations on a real cluster equal a plain in-memory model.
//
// Three workers, each in its own thread, push, pull and push-pull on tables of every updater and
// dtype, dense and sparse, with many operations under way; every pulled value is compared with the
// model. Beside that all workers add to shared integer tables, whose sums prove that no push was
// lost or applied twice.
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"
#include "runtime/memory/sanitized.h"
#include "tests/random_operations/random_table.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

constexpr std::uint32_t kServers = 2, kWorkers = 3;
// Over all workers. Sanitizers find their faults from the beginning or never.
constexpr std::uint64_t kOperations = runtime::kSanitized ? 200'000 : 1'000'000;
constexpr std::size_t kUnderWay = 64;  // operations of a worker
constexpr std::uint64_t kSharedKeys = 100;

// Adds random amounts to random keys that other workers add to as well.
class SharedCounters {
 public:
  explicit SharedCounters(Table table) : table_(std::move(table)), mine_(kSharedKeys) {}

  Pending Submit(runtime::Random* random) {
    struct CallState {
      std::vector<std::uint64_t> keys;
      std::vector<std::int64_t> amounts;
    };
    auto call = std::make_shared<CallState>();
    for (std::uint64_t i = 0; i < 4; ++i) {
      call->keys.push_back(random->Below(kSharedKeys));
      call->amounts.push_back(static_cast<std::int64_t>(random->Below(1000)));
      mine_[call->keys.back()] += call->amounts.back();
    }
    Ticket ticket = table_.Push(std::span<const std::uint64_t>(call->keys),
                                std::span<const std::int64_t>(call->amounts));
    return {ticket, [call] { return std::string(); }};
  }

  const std::vector<std::int64_t>& mine() const { return mine_; }
  const Table& table() const { return table_; }

 private:
  Table table_;
  std::vector<std::int64_t> mine_;
};

struct WorkerResult {
  std::string failure;
  std::vector<std::int64_t> added;
  std::vector<std::int64_t> sums;  // pulled after all workers were done
};

// Waits until only `leave` are under way; returns the first mismatch. Buffers are freed only once
// their operations have completed, also after other failures.
std::string Finish(Worker* worker, std::deque<Pending>* pending, std::size_t leave) {
  std::string wrong;
  while (pending->size() > (wrong.empty() ? leave : 0)) {
    const absl::Status status = worker->Wait(pending->front().ticket);
    const std::string mismatch = status.ok() ? pending->front().mismatch() : status.ToString();
    if (wrong.empty()) wrong = mismatch;
    pending->pop_front();
  }
  return wrong;
}

std::string RunOperations(Worker* worker, std::uint64_t count, SharedCounters* shared) {
  auto tables = CreateRandomTables(worker, absl::StrCat("worker", worker->rank()));
  if (!tables.ok()) return tables.status().ToString();
  runtime::Random random(worker->rank() + 1);
  std::deque<Pending> pending;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t which = random.Below(tables->size() + 1);
    pending.push_back(which == tables->size() ? shared->Submit(&random)
                                              : (*tables)[which]->Submit(&random));
    if (std::string wrong = Finish(worker, &pending, kUnderWay); !wrong.empty()) return wrong;
  }
  return Finish(worker, &pending, 0);
}

WorkerResult RunWorker(Worker* worker) {
  WorkerResult result;
  TableSpec spec = TableSpec::Sparse("shared", 1, DType::kInt64);
  spec.consistency = Consistency::Asp();
  auto table = worker->CreateTable(spec);
  if (!table.ok()) return {table.status().ToString(), {}, {}};
  SharedCounters shared(*table);
  result.failure = RunOperations(worker, kOperations / kWorkers, &shared);
  if (!result.failure.empty()) return result;
  if (auto status = worker->Barrier(Group::kWorkers, "done", absl::Minutes(10)); !status.ok()) {
    return {status.ToString(), {}, {}};
  }
  result.added = shared.mine();
  result.sums.resize(kSharedKeys);
  std::vector<std::uint64_t> keys(kSharedKeys);
  for (std::uint64_t i = 0; i < kSharedKeys; ++i) keys[i] = i;
  const Ticket ticket =
      table->Pull(std::span<const std::uint64_t>(keys), std::span<std::int64_t>(result.sums));
  if (auto status = worker->Wait(ticket); !status.ok()) result.failure = status.ToString();
  return result;
}

TEST(RandomOperationsTest, AMillionEqualAPlainModel) {
  LocalCluster::Setup setup;
  setup.servers = kServers;
  setup.workers = kWorkers;
  setup.config.block_bytes = 4096;
  setup.config.request_timeout = absl::Minutes(5);
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();

  std::vector<WorkerResult> results(kWorkers);
  ASSERT_TRUE((*cluster)
                  ->RunWorkers([&](Worker* worker) { results[worker->rank()] = RunWorker(worker); })
                  .ok());

  std::vector<std::int64_t> total(kSharedKeys);
  for (const WorkerResult& result : results) {
    ASSERT_EQ(result.failure, "");
    for (std::size_t i = 0; i < kSharedKeys; ++i) total[i] += result.added[i];
  }
  for (const WorkerResult& result : results) EXPECT_EQ(result.sums, total);
  EXPECT_TRUE((*cluster)->Finish().ok());
}

}  // namespace
}  // namespace leeway::tests
