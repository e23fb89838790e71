// Tests of the blocking layer with real threads and loops, among scripted peers over inproc.
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/log/log.h"
#include "runtime/loop/real_loop.h"
#include "van/zmq/zmq_transport.h"
#include "worker/client/client.h"
#include "worker/client/leavers.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    proto::Welcome welcome;
    welcome.node = 10;
    welcome.cluster = kTestCluster;
    welcome.num_servers = welcome.num_workers = 1;
    welcome.heartbeat_interval_ms = 1000;
    welcome.failure_timeout_ms = 600'000;
    welcome.block_bytes = 4096;
    OnPeers([&] {
      scheduler_ = std::make_unique<ScriptedScheduler>(runner_->loop(), factory_.get(), welcome,
                                                       "inproc://scheduler");
      scheduler_->map.version = scheduler_->map.epoch = 1;
      scheduler_->map.servers.push_back({.node = 2, .rank = 0, .endpoints = {"inproc://server"}});
      scheduler_->map.owners.resize(2);
      scheduler_->map.workers.push_back({.node = 10, .rank = 0});
      server_ = std::make_unique<ScriptedServer>(
          runner_->loop(), factory_.get(),
          van::Identity{
              .role = Role::kServer, .node = 2, .incarnation = 5, .cluster = kTestCluster},
          "inproc://server");
    });
  }

  ~SessionTest() override {
    worker_.reset();
    OnPeers([&] {
      server_.reset();
      scheduler_.reset();
    });
  }

  // Runs `task` on the peers' loop and waits for it.
  void OnPeers(const std::function<void()>& task) {
    std::promise<void> done;
    runner_->loop()->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  void Connect() {
    Config config;
    config.role = Role::kWorker;
    config.scheduler = "inproc://scheduler";
    config.request_timeout = absl::Seconds(60);
    absl::StatusOr<std::unique_ptr<Worker>> worker =
        Client::ConnectWith(config, host_.get(), factory_.get());
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }

  Table Open(const TableSpec& spec) {
    absl::StatusOr<Table> table = worker_->CreateTable(spec);
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? *table : Table();
  }

  std::unique_ptr<runtime::Host> host_ = runtime::NewRealHost();
  std::unique_ptr<van::Factory> factory_ = van::NewZmqFactory(van::ZmqScheme::kInproc);
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("peers");
  std::unique_ptr<ScriptedScheduler> scheduler_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(SessionTest, PushesAndPullsFromManyThreads) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {3000}));
  const std::vector<float> ones(3000, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<float> got(3000);
      for (int i = 0; i < 50; ++i) {
        const Ticket push = table.Push(std::span<const float>(ones));
        const Ticket pull = table.Pull(std::span<float>(got));
        EXPECT_TRUE(worker_->Wait(push).ok());
        EXPECT_TRUE(worker_->Wait(pull).ok());
        EXPECT_GE(got[0], static_cast<float>(i + 1));  // its own pushes at least
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> got(3000);
  EXPECT_TRUE(worker_->Wait(table.Pull(std::span<float>(got))).ok());
  EXPECT_EQ(got, std::vector<float>(3000, 200));
  EXPECT_GT(worker_->stats().waited, absl::ZeroDuration());
}

TEST_F(SessionTest, ACallbackRunsBeforeItsWaitReturnsAndMaySubmit) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {16}));
  const std::vector<float> ones(16, 1);
  std::atomic<int> called = 0;
  std::promise<void> end;
  absl::Status waited_in_callback;
  Options options;
  options.done = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    ++called;
    Options next;
    next.done = [&](const absl::Status&) { end.set_value(); };
    // The answer does not come before the wait, though the helper drives meanwhile.
    OnPeers([&] { server_->intercept = [](const proto::Request&) { return true; }; });
    const Ticket second = table.Push(std::span<const float>(ones), next);
    waited_in_callback = worker_->Wait(second);
    OnPeers([&] {
      server_->intercept = nullptr;
      server_->Restart();  // the worker connects and asks again
    });
  };
  EXPECT_TRUE(worker_->Wait(table.Push(std::span<const float>(ones), options)).ok());
  EXPECT_EQ(called, 1);
  EXPECT_EQ(waited_in_callback.code(), absl::StatusCode::kFailedPrecondition);
  end.get_future().wait();  // no thread waits within the library: its helper drives
}

TEST_F(SessionTest, TellsOthersWhenATicketIsDone) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {8}));
  const std::vector<float> ones(8, 1);
  std::atomic<int> told = 0;
  Options options;
  options.done = [&](const absl::Status&) { EXPECT_EQ(told, 0); };
  for (const Options& with : {Options{}, options}) {
    told = 0;
    const Ticket push = table.Push(std::span<const float>(ones), with);
    worker_->WhenDone(push, [&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(worker_->Done(push));
      EXPECT_FALSE(worker_->Wait(table.Push(std::span<const float>())).ok()) << "no waiting here";
      ++told;
    });
    EXPECT_TRUE(worker_->Wait(push).ok());
    while (told == 0) std::this_thread::yield();
    worker_->WhenDone(push, [&](const absl::Status&) { ++told; });
    EXPECT_EQ(told, 2) << "at once";
  }
  worker_->WhenDone(table.Push(std::span<const float>()), [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    ++told;
  });
  EXPECT_EQ(told, 3);
}

TEST_F(SessionTest, WaitingForABspPushPullBeforeItsClockEndsEndsIt) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {16}));
  OnPeers([&] { server_->intercept = [](const proto::Request&) { return true; }; });
  const std::vector<float> ones(16, 1);
  auto got = std::make_unique<std::vector<float>>(16);
  const Ticket ticket = table.PushPull(std::span<const float>(ones), std::span<float>(*got));
  const absl::Status early = worker_->Wait(ticket);
  EXPECT_EQ(early.code(), absl::StatusCode::kUnknown);  // its push is under way
  EXPECT_THAT(std::string(early.message()), HasSubstr("Clock()"));
  got.reset();  // nothing is written to it later
  OnPeers([&] {
    server_->intercept = nullptr;
    server_->Restart();  // the worker connects and asks again
  });
  EXPECT_TRUE(worker_->Clock().ok());
  EXPECT_EQ(worker_->clock(), 1u);
  EXPECT_EQ(worker_->Wait(ticket), early);
  std::vector<float> after(16);
  EXPECT_TRUE(worker_->Wait(table.Pull(std::span<float>(after))).ok());
}

TEST_F(SessionTest, TheTicketHasErrorsKnownAtOnce) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {16}));
  const std::vector<double> wrong(16);
  absl::Status called;
  Options options;
  options.done = [&](const absl::Status& status) { called = status; };
  const Ticket ticket = table.Push(std::span<const double>(wrong), options);
  EXPECT_TRUE(worker_->Done(ticket));
  EXPECT_EQ(worker_->Wait(ticket).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(called.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(worker_->Wait(Ticket()).ok());
  EXPECT_EQ(worker_->Wait(Table().Pull(std::span<float>())).code(),
            absl::StatusCode::kFailedPrecondition);
}

// 9 twice, with integers that wrap around when they are added up.
TEST_F(SessionTest, RowsOfAKeyThatWrapAroundAreToldOrRefused) {
  Connect();
  TableSpec spec = TableSpec::Sparse("counts", 1, DType::kInt64);
  const Table counts = Open(spec);
  spec.name = "refuses";
  spec.nonfinite = NonFinite::kRefuse;
  const Table refuses = Open(spec);
  std::vector<bool> told;
  OnPeers([&] {
    server_->intercept = [&](const proto::Request& request) {
      told.push_back(request.rows_wrapped);
      return false;
    };
  });
  const std::vector<std::uint64_t> keys = {9, 9};
  std::vector<std::int64_t> values = {std::numeric_limits<std::int64_t>::max(), 1};
  const auto push = [&](const Table& table) {
    return worker_->Wait(
        table.Push(std::span<const std::uint64_t>(keys), std::span<const std::int64_t>(values)));
  };
  EXPECT_TRUE(push(counts).ok());
  const absl::Status refused = push(refuses);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("table 'refuses'"), HasSubstr("key 9"), HasSubstr("wrap around"),
                    HasSubstr("TableSpec::nonfinite")));
  values[1] = -1;
  EXPECT_TRUE(push(refuses).ok());
  OnPeers([&] { EXPECT_THAT(told, ElementsAre(true, false)); });
}

TEST_F(SessionTest, DeadlinesHoldWhileTheServerIsSilent) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {16}));
  OnPeers([&] { server_->intercept = [](const proto::Request&) { return true; }; });
  std::vector<float> got(16);
  Options options;
  options.timeout = absl::Milliseconds(50);
  const absl::Status status = worker_->Wait(table.Pull(std::span<float>(got), options));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 0 thread 0 (inproc://server)"));
}

TEST_F(SessionTest, ATableThatOutlivesItsWorkerFails) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {16}));
  EXPECT_TRUE(worker_->Leave().ok());
  EXPECT_TRUE(worker_->Leave().ok());
  EXPECT_EQ(worker_->Clock().code(), absl::StatusCode::kFailedPrecondition);
  bool left = false;
  OnPeers([&] { left = scheduler_->left; });
  EXPECT_TRUE(left);

  std::vector<float> got(16);
  Worker* const worker = worker_.get();
  EXPECT_EQ(worker->Wait(table.Pull(std::span<float>(got))).code(),
            absl::StatusCode::kFailedPrecondition);
  worker_.reset();
  absl::Status called;
  Options options;
  options.done = [&](const absl::Status& status) { called = status; };
  (void)table.Pull(std::span<float>(got), options);
  EXPECT_EQ(called.code(), absl::StatusCode::kFailedPrecondition);
}

// The answer that Leave waits for runs a callback that destroys the worker.
TEST_F(SessionTest, AWorkerThatIsDestroyedWhileItLeavesLeavesInOrder) {
  Connect();
  const Table table = Open(TableSpec::Dense("w", {16}));
  OnPeers([&] { server_->intercept = [](const proto::Request&) { return true; }; });
  const std::vector<float> ones(16, 1);
  Options options;
  options.done = [&](const absl::Status&) { worker_.reset(); };
  table.Push(std::span<const float>(ones), options);
  Worker* const worker = worker_.get();
  std::thread leaves([&] {
    const absl::Status left = worker->Leave();
    EXPECT_TRUE(left.ok()) << left;
  });
  while (worker->Barrier(Group::kWorkers).ok()) {  // until it leaves
  }
  OnPeers([&] {
    server_->intercept = nullptr;
    server_->Restart();  // the worker connects and asks again
  });
  leaves.join();
  WaitForLeavers();
  OnPeers([&] { EXPECT_TRUE(scheduler_->left); });
}

TEST_F(SessionTest, GivesUpOnAMissingScheduler) {
  Config config;
  config.role = Role::kWorker;
  config.scheduler = "inproc://nobody";
  config.connect_timeout = absl::Milliseconds(100);
  const absl::StatusOr<std::unique_ptr<Worker>> worker =
      Client::ConnectWith(config, host_.get(), factory_.get());
  EXPECT_EQ(worker.status().code(), absl::StatusCode::kDeadlineExceeded) << worker.status();
  EXPECT_THAT(std::string(worker.status().message()), HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS"));

  config.role = Role::kServer;
  EXPECT_EQ(Client::ConnectWith(config, host_.get(), factory_.get()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ConnectTest, LogsNoMoreThanTheLogLevelAllows) {
  Config config;
  config.scheduler = "127.0.0.1:1";
  config.connect_timeout = absl::Milliseconds(20);
  for (const auto& [name, level] : {std::pair("error", runtime::LogLevel::kWarning),
                                    std::pair("warning", runtime::LogLevel::kInfo)}) {
    config.log_level = name;
    EXPECT_FALSE(Worker::Connect(config).ok());
    EXPECT_FALSE(runtime::LogEnabled(level)) << name;
  }
  runtime::SetLogLevel(runtime::LogLevel::kInfo);
}

}  // namespace
}  // namespace leeway::worker
