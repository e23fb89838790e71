// How often heartbeats come, and those of a process that was stopped or starved.
#include "node/heartbeat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proto/encoding/encoding.h"
#include "proto/messages/messages.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"

namespace leeway::node::heartbeat_test {
namespace {

constexpr char kScheduler[] = "sim://scheduler/0";

// A loop whose time can go on without it.
class StoppedLoop final : public runtime::Loop {
 public:
  StoppedLoop(runtime::Loop* loop, const absl::Duration* stopped)
      : loop_(loop), stopped_(stopped) {}
  absl::Time Now() const override { return loop_->Now() + *stopped_; }
  void Post(runtime::Task task) override { loop_->Post(std::move(task)); }
  runtime::TimerId After(absl::Duration delay, runtime::Task task) override {
    return loop_->After(delay, std::move(task));
  }
  bool Cancel(runtime::TimerId timer) override { return loop_->Cancel(timer); }
  std::uint64_t Random() override { return loop_->Random(); }
  void AddSource(runtime::Source* source) override { loop_->AddSource(source); }
  void RemoveSource(runtime::Source* source) override { loop_->RemoveSource(source); }

 private:
  runtime::Loop* const loop_;
  const absl::Duration* const stopped_;
};

class StoppedRunner final : public runtime::LoopRunner {
 public:
  StoppedRunner(std::unique_ptr<runtime::LoopRunner> runner, const absl::Duration* stopped)
      : runner_(std::move(runner)), loop_(runner_->loop(), stopped) {}
  runtime::Loop* loop() override { return &loop_; }
  void Stop() override { runner_->Stop(); }
  void Join() override { runner_->Join(); }

 private:
  const std::unique_ptr<runtime::LoopRunner> runner_;
  StoppedLoop loop_;
};

class StoppedHost final : public runtime::Host {
 public:
  explicit StoppedHost(std::unique_ptr<runtime::Host> host) : host_(std::move(host)) {}
  std::unique_ptr<runtime::LoopRunner> Spawn(const std::string& name) override {
    return std::make_unique<StoppedRunner>(host_->Spawn(name), &stopped);
  }
  runtime::FileSystem* files() override { return host_->files(); }
  std::uint64_t Random() override { return host_->Random(); }
  absl::Time WallTime() override { return host_->WallTime(); }

  absl::Duration stopped;  // for so long altogether

 private:
  const std::unique_ptr<runtime::Host> host_;
};

// Answers beats.
class Scheduler final : public van::Handler {
 public:
  Scheduler(runtime::SimWorld* world, van::SimNetwork* network)
      : host_(world->NewHost("scheduler")),
        factory_(network->NewFactory("scheduler")),
        runner_(host_->Spawn("loop")) {
    van_ = factory_->New(runner_->loop(), {.role = Role::kScheduler, .node = 1, .incarnation = 5},
                         {}, this);
    EXPECT_TRUE(van_->Listen(kScheduler).ok());
  }
  bool answers = true;
  int beats = 0;

 private:
  void OnPeerUp(van::PeerId, const van::Identity&) override {}
  void OnPeerDown(van::PeerId, const absl::Status&) override {}
  void OnMessage(van::PeerId peer, van::Message raw) override {
    const auto message = proto::Decode(raw.header, {});
    ASSERT_TRUE(message.ok()) << message.status();
    const auto* beat = std::get_if<proto::Heartbeat>(&*message);
    if (beat == nullptr) return;
    ++beats;
    if (!answers) return;
    EXPECT_TRUE(van_->Send(peer, {.header = proto::Encode(proto::HeartbeatAck{beat->number}),
                                  .payload = {}})
                    .ok());
  }

  const std::unique_ptr<runtime::Host> host_;
  const std::unique_ptr<van::Factory> factory_;
  const std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<van::Van> van_;
};

class HeartbeatTest : public testing::Test {
 protected:
  HeartbeatTest() {
    Heartbeat::Reports reports;
    reports.silent = [this](absl::Duration length) { silent_ = std::max(silent_, length); };
    reports.heard_again = [] {};
    reports.answered = [this](absl::Time) { ++answered_; };
    reports.broken = [] {};
    reports.connected_again = [] {};
    reports.given_up = [](const absl::Status& why) { FAIL() << why; };
    Heartbeat::Setup setup;
    setup.scheduler = kScheduler;
    setup.scheduler_incarnation = 5;
    setup.identity = {.role = Role::kWorker, .node = 7, .incarnation = 9};
    setup.interval = absl::Milliseconds(500);
    setup.failure_timeout = absl::Seconds(3);
    setup.host = &host_;
    setup.owner = owner_->loop();
    setup.factory = factory_.get();
    heartbeat_.emplace(std::move(setup), std::move(reports));
    world_.RunFor(absl::Milliseconds(5250));  // between two beats
  }

  runtime::SimWorld world_{1};
  van::SimNetwork network_{&world_};
  Scheduler scheduler_{&world_, &network_};
  StoppedHost host_{world_.NewHost("node")};
  const std::unique_ptr<van::Factory> factory_ = network_.NewFactory("node");
  const std::unique_ptr<runtime::LoopRunner> owner_ = host_.Spawn("owner");
  int answered_ = 0;
  absl::Duration silent_;
  std::optional<Heartbeat> heartbeat_;
};

// A stopped process does not listen, so that time is no silence of the scheduler.
TEST_F(HeartbeatTest, TimeInWhichTheProcessStoodStillIsNoSilenceOfTheScheduler) {
  EXPECT_GT(answered_, 5);
  host_.stopped += absl::Minutes(10);
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(silent_, absl::ZeroDuration());
  EXPECT_GT(answered_, 10);
  scheduler_.answers = false;
  world_.RunFor(absl::Seconds(10));
  EXPECT_GT(silent_, absl::Seconds(3));
  EXPECT_LT(silent_, absl::Seconds(11));
}

TEST_F(HeartbeatTest, BeatsComeTwiceAsOftenWhileOneIsUnanswered) {
  EXPECT_LE(scheduler_.beats, 12);
  scheduler_.answers = false;
  scheduler_.beats = 0;
  world_.RunFor(absl::Milliseconds(2500));
  EXPECT_GE(scheduler_.beats, 8);
}

}  // namespace
}  // namespace leeway::node::heartbeat_test
