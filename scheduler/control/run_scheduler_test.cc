// RunScheduler with real sockets, threads and signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "node/membership.h"
#include "runtime/log/log.h"
#include "runtime/loop/real_loop.h"
#include "runtime/testing/temp_folder.h"
#include "scheduler/control/scheduler.h"
#include "scheduler/state/state_keeper.h"
#include "van/tcp/tcp_transport.h"

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An address that nothing listens on: a port that was free a moment ago.
std::string FreeAddress(runtime::Host* host, van::Factory* factory) {
  class Nobody final : public van::Handler {
    void OnPeerUp(van::PeerId, const van::Identity&) override {}
    void OnPeerDown(van::PeerId, const absl::Status&) override {}
    void OnMessage(van::PeerId, van::Message) override {}
  } nobody;
  const auto runner = host->Spawn("probe");
  std::promise<std::string> address;
  runner->loop()->Post([&] {
    const auto van = factory->New(runner->loop(), van::Identity(), van::Limits(), &nobody);
    address.set_value(van->Listen("tcp://127.0.0.1:0").value_or(""));
  });
  return address.get_future().get();
}

// A member over TCP that waits for the map and then does what the test says.
class RealNode final : private node::Membership::Listener {
 public:
  RealNode(runtime::Host* host, van::Factory* factory, const Config& config, Role role,
           std::uint64_t incarnation)
      : runner_(host->Spawn("node")) {
    node::Membership::Setup setup;
    setup.config = config;
    setup.role = role;
    setup.incarnation = incarnation;
    if (role == Role::kServer) setup.endpoints = {"tcp://127.0.0.1:1"};
    setup.host = host;
    setup.loop = runner_->loop();
    setup.factory = factory;
    runner_->loop()->Post([this, setup = std::move(setup)]() mutable {
      node::Membership::Listener* const listener = this;
      membership_ = std::make_unique<node::Membership>(std::move(setup), listener);
      membership_->Start();
    });
  }
  ~RealNode() override {
    runner_->loop()->Post([this] {
      membership_.reset();
      runner_->Stop();
    });
    runner_->Join();
  }
  absl::Status Leave() {
    std::promise<absl::Status> left;
    runner_->loop()->Post([&] {
      membership_->Leave(absl::Seconds(20),
                         [&](absl::Status status) { left.set_value(std::move(status)); });
    });
    return left.get_future().get();
  }
  void AwaitComplete() { complete_.get_future().wait(); }
  absl::Status AwaitOver() { return over_.get_future().get(); }

 private:
  void OnWelcome(const proto::Welcome&) override {}
  void OnMap(std::shared_ptr<const proto::ClusterMap> map) override {
    membership_->AckMap(map->version);
    if (map->epoch == 1 && !std::exchange(is_complete_, true)) complete_.set_value();
  }
  void OnNodeDown(const proto::NodeDown&) override {}
  void OnSchedulerMessage(proto::AnyMessage) override {}
  void OnOver(const absl::Status& why) override { over_.set_value(why); }

  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<node::Membership> membership_;
  bool is_complete_ = false;
  std::promise<void> complete_;
  std::promise<absl::Status> over_;
};

// The signal that a test sends is for RunScheduler alone, not for threads that would die of it.
struct SigtermBlocked {
  SigtermBlocked() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
};

class RunSchedulerTest : public ::testing::Test {
 protected:
  RunSchedulerTest() {
    runtime::SetLogLevel(runtime::LogLevel::kError);
    config_.role = Role::kScheduler;
    config_.scheduler = FreeAddress(host_.get(), factory_.get());
  }
  ~RunSchedulerTest() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }

  const SigtermBlocked sigterm_blocked_;  // before there is any thread
  std::unique_ptr<runtime::Host> host_ = runtime::NewRealHost();
  std::unique_ptr<van::Factory> factory_ = van::NewTcpFactory();
  Config config_;
};

TEST_F(RunSchedulerTest, EndsInOrderWhenTheLastWorkerHasLeft) {
  auto result = std::async(std::launch::async, [this] { return RunScheduler(config_); });
  RealNode server(host_.get(), factory_.get(), config_, Role::kServer, 101);
  RealNode worker(host_.get(), factory_.get(), config_, Role::kWorker, 102);
  server.AwaitComplete();
  worker.AwaitComplete();
  EXPECT_TRUE(worker.Leave().ok());
  EXPECT_TRUE(server.AwaitOver().ok());
  EXPECT_TRUE(result.get().ok());
}

TEST_F(RunSchedulerTest, SigtermEndsTheClusterAndTellsWhy) {
  auto result = std::async(std::launch::async, [this] { return RunScheduler(config_); });
  RealNode server(host_.get(), factory_.get(), config_, Role::kServer, 101);
  RealNode worker(host_.get(), factory_.get(), config_, Role::kWorker, 102);
  worker.AwaitComplete();
  kill(getpid(), SIGTERM);
  EXPECT_THAT(std::string(worker.AwaitOver().message()), HasSubstr("SIGTERM"));
  EXPECT_THAT(std::string(server.AwaitOver().message()), HasSubstr("SIGTERM"));
  EXPECT_EQ(result.get().code(), absl::StatusCode::kCancelled);
}

TEST_F(RunSchedulerTest, APortInUseIsNamedWithWhatToChange) {
  auto first = std::async(std::launch::async, [this] { return RunScheduler(config_); });
  RealNode server(host_.get(), factory_.get(), config_, Role::kServer, 101);
  RealNode worker(host_.get(), factory_.get(), config_, Role::kWorker, 102);
  worker.AwaitComplete();
  const absl::Status second = RunScheduler(config_);
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.message()),
              AllOf(HasSubstr("LEEWAY_SCHEDULER"), HasSubstr(config_.scheduler)));
  EXPECT_TRUE(worker.Leave().ok());
  EXPECT_TRUE(first.get().ok());
}

TEST_F(RunSchedulerTest, ABadConfigurationIsRefusedBeforeAnythingStarts) {
  config_.num_workers = 0;
  EXPECT_FALSE(RunScheduler(config_).ok());
}

TEST_F(RunSchedulerTest, ACheckpointThatIsNotThereIsNamed) {
  config_.restore = "/nowhere/ckpt-00000007";
  const absl::Status status = RunScheduler(config_);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("LEEWAY_RESTORE=/nowhere/ckpt-00000007"));
}

// It may be a state that is to be gone on with.
TEST_F(RunSchedulerTest, AStateThatIsNoFileIsNotTakenForANewCluster) {
  namespace fs = std::filesystem;
  const runtime::TempFolder temp_folder;
  const std::string& root = temp_folder.path();
  const auto why_not = [&] {
    const auto runner = host_->Spawn("loop");
    StateKeeper keeper(
        host_.get(), runner->loop(), root, [] { return 0; }, [] { return State(); });
    return std::string(keeper.Open().status().message());
  };
  const fs::path state = fs::path(root) / "scheduler-state";
  fs::create_symlink(fs::path(root) / "gone", state);
  EXPECT_THAT(why_not(), AllOf(HasSubstr("LEEWAY_SCHEDULER_STATE="), HasSubstr(state.string())));
  fs::remove(state);
  EXPECT_THAT(why_not(), IsEmpty());
  const std::string partial = runtime::TemporaryName(state.string());
  ASSERT_EQ(::mkfifo(partial.c_str(), 0600), 0);
  EXPECT_THAT(why_not(), AllOf(HasSubstr("LEEWAY_SCHEDULER_STATE="), HasSubstr(partial)));
}

}  // namespace
}  // namespace leeway::scheduler
