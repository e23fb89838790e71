#include "scheduler/members/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/sim/sim_world.h"

namespace leeway::scheduler {
namespace liveness_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Two servers and a worker on virtual time, all connected; FindDead is called as the scheduler
// does.
class LivenessTest : public ::testing::Test, private ClusterLife {
 protected:
  LivenessTest() {
    config_.replication = 2;
    for (std::uint64_t incarnation : {10, 11})
      servers_.push_back(Admit(Role::kServer, incarnation));
    worker_ = Admit(Role::kWorker, 12);
    members_.UpdateComplete();
    liveness_ = std::make_unique<Liveness>(&config_, runner_->loop(), &members_,
                                           static_cast<ClusterLife*>(this));
    for (Node* const node : members_.Alive()) liveness_->Heard(node);
  }
  Node* Admit(Role role, std::uint64_t incarnation) {
    proto::Join join;
    join.role = role;
    join.num_servers = 2;
    join.num_workers = 1;
    if (role == Role::kServer) join.endpoints = {"sim://server/0"};
    van::Identity identity;
    identity.role = role;
    identity.incarnation = incarnation;
    Node* const node = *members_.Admit(join, identity);
    node->peer = incarnation;
    return node;
  }
  // Lets time pass in which only `beating` are heard.
  void Pass(absl::Duration time, const std::vector<Node*>& beating) {
    for (absl::Duration passed; passed < time; passed += config_.heartbeat_interval) {
      for (Node* const node : beating) liveness_->Heard(node);
      world_.RunFor(config_.heartbeat_interval);
      liveness_->FindDead();
    }
  }
  std::vector<Node*> All() const { return {servers_[0], servers_[1], worker_}; }
  void Break(Node* node) {
    node->peer = 0;
    liveness_->Suspect(*node);
  }

  bool running() const override { return running_; }
  absl::Status Ready() const override { return absl::OkStatus(); }
  bool loading() const override { return false; }
  bool IsLastReplica(std::uint32_t rank) const override { return last_.contains(rank); }
  void Retire(Node* node, Node::State state, const std::string& why) override {
    dead_.push_back(node);
    why_ = why;
    members_.Retire(node, state, why);
    liveness_->Forget(node);
  }
  void OnReaderSilent(const Node& reader) override {
    silent_readers_.push_back(reader.id);
    members_.readers().Forget(reader.id);
  }
  void Fail(const absl::Status&) override {}

  Config config_;
  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("scheduler");
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("loop");
  MembershipTable members_{2, 1};
  std::vector<Node*> servers_;
  Node* worker_ = nullptr;
  bool running_ = true;
  std::set<std::uint32_t> last_;  // ranks with the last replica of a shard
  std::vector<const Node*> dead_;
  std::vector<std::uint32_t> silent_readers_;
  std::string why_;
  std::unique_ptr<Liveness> liveness_;
};

TEST_F(LivenessTest, ASilentNodeIsDeadAfterTheFailureTimeout) {
  Pass(config_.failure_timeout, {servers_[0], worker_});
  EXPECT_THAT(dead_, IsEmpty());
  Pass(2 * config_.heartbeat_interval, {servers_[0], worker_});
  EXPECT_THAT(dead_, ElementsAre(servers_[1]));
  EXPECT_THAT(why_, HasSubstr("LEEWAY_FAILURE_TIMEOUT_MS"));
}

TEST_F(LivenessTest, NoNodeDiesWhenTheClusterEnds) {
  running_ = false;
  Pass(2 * config_.failure_timeout, {servers_[0], worker_});
  EXPECT_THAT(dead_, IsEmpty());
}

TEST_F(LivenessTest, WithoutAnyServerTheSchedulerIsCutOff) {
  Pass(2 * config_.failure_timeout, {});
  EXPECT_THAT(dead_, IsEmpty());
  Pass(config_.failure_timeout, All());
  EXPECT_THAT(dead_, IsEmpty());
  Pass(2 * config_.failure_timeout, {});
  Pass(config_.scheduler_timeout, {});
  EXPECT_EQ(dead_.size(), 3u);
}

TEST_F(LivenessTest, AServerWhoseConnectionsBrokeIsDeadAfterTheSuspicion) {
  Break(servers_[1]);
  Pass(config_.suspicion + 2 * config_.heartbeat_interval, {servers_[0], worker_});
  EXPECT_THAT(dead_, ElementsAre(servers_[1]));
  EXPECT_THAT(why_, HasSubstr("LEEWAY_SUSPICION_MS"));
}

TEST_F(LivenessTest, AServerThatIsHeardAgainIsNoLongerSuspected) {
  Break(servers_[1]);
  Pass(config_.suspicion + 2 * config_.heartbeat_interval, All());
  EXPECT_THAT(dead_, IsEmpty());
}

// Its process has ended without leaving.
TEST_F(LivenessTest, AWorkerWhoseConnectionsBrokeIsDeadAfterTheSuspicion) {
  config_.replication = 1;
  Break(worker_);
  Pass(config_.suspicion + 2 * config_.heartbeat_interval, {servers_[0], servers_[1]});
  EXPECT_THAT(dead_, ElementsAre(worker_));
  EXPECT_THAT(why_, HasSubstr("LEEWAY_SUSPICION_MS"));
}

TEST_F(LivenessTest, AWorkerIsNotSuspectedWhereNoServerIsConnectedEither) {
  for (Node* const server : servers_) server->peer = 0;
  Break(worker_);
  Pass(config_.suspicion + 2 * config_.heartbeat_interval, {servers_[0], servers_[1]});
  EXPECT_THAT(dead_, IsEmpty());
}

// As after a restart of the scheduler: the worker comes back before the servers, and dies.
TEST_F(LivenessTest, AWorkerIsSuspectedAgainOnceAServerIsConnected) {
  config_.suspicion = absl::Milliseconds(700);
  for (Node* const server : servers_) server->peer = 0;
  Break(worker_);
  Pass(absl::Seconds(3), servers_);
  servers_[0]->peer = 10;
  Pass(absl::Seconds(1), servers_);  // in which the worker may come back, too
  EXPECT_THAT(dead_, IsEmpty());
  Pass(absl::Seconds(1), servers_);
  EXPECT_THAT(dead_, ElementsAre(worker_));
  EXPECT_THAT(why_, HasSubstr("LEEWAY_SUSPICION_MS"));
}

TEST_F(LivenessTest, AServerIsSuspectedAgainOnceOthersHaveItsShards) {
  config_.suspicion = absl::Milliseconds(700);
  last_ = {1};
  Break(servers_[1]);
  Pass(absl::Seconds(3), {servers_[0], worker_});
  EXPECT_THAT(dead_, IsEmpty());
  last_ = {};
  Pass(absl::Seconds(2), {servers_[0], worker_});
  EXPECT_THAT(dead_, ElementsAre(servers_[1]));
  EXPECT_THAT(why_, HasSubstr("LEEWAY_SUSPICION_MS"));
}

TEST_F(LivenessTest, AWorkerIsSuspectedAgainOnceTheClusterIsComplete) {
  config_.suspicion = absl::Milliseconds(700);
  members_.Restore({}, members_.next_id(), /*complete=*/false);
  Break(worker_);
  Pass(absl::Seconds(3), servers_);
  EXPECT_THAT(dead_, IsEmpty());
  members_.UpdateComplete();
  Pass(absl::Seconds(2), servers_);
  EXPECT_THAT(dead_, ElementsAre(worker_));
}

TEST_F(LivenessTest, TheLastReplicaIsNotSuspected) {
  last_ = {1};
  Break(servers_[1]);
  Pass(config_.suspicion + 2 * config_.heartbeat_interval, {servers_[0], worker_});
  EXPECT_THAT(dead_, IsEmpty());
}

TEST_F(LivenessTest, ASilentReaderIsReportedAsOne) {
  van::Identity identity;
  identity.role = Role::kReader;
  identity.incarnation = 99;
  Node* const admitted = *members_.readers().Admit(identity);
  liveness_->Heard(admitted);
  const std::uint32_t reader = admitted->id;
  Pass(config_.failure_timeout + 2 * config_.heartbeat_interval, All());
  EXPECT_THAT(silent_readers_, ElementsAre(reader));
  EXPECT_THAT(dead_, IsEmpty());
}

TEST_F(LivenessTest, BeingHeardPutsOffTheDeadlineOfThatNodeAlone) {
  Pass(config_.failure_timeout - absl::Seconds(2), {servers_[0]});
  Pass(absl::Seconds(4), {servers_[0], servers_[1]});
  EXPECT_THAT(dead_, ElementsAre(worker_));
  EXPECT_LE(servers_[1]->SilentFor(runner_->loop()->Now()), config_.heartbeat_interval);
}

TEST_F(LivenessTest, TheForgottenAreNeverSilent) {
  liveness_->Forget(worker_);
  Pass(10 * config_.failure_timeout, {servers_[0], servers_[1]});
  EXPECT_THAT(dead_, IsEmpty());
  EXPECT_EQ(worker_->SilentFor(runner_->loop()->Now()), absl::ZeroDuration());
}

// What most nodes sent meanwhile has not been read yet.
TEST_F(LivenessTest, AStoppedSchedulerDeclaresNoNodeDead) {
  Pass(absl::Seconds(2), All());
  world_.RunFor(absl::Hours(1));
  liveness_->Heard(servers_[0]);
  liveness_->FindDead();
  EXPECT_THAT(dead_, IsEmpty());
  Pass(config_.failure_timeout - absl::Seconds(2), {servers_[0]});
  EXPECT_THAT(dead_, IsEmpty());
  Pass(absl::Seconds(4), {servers_[0]});
  EXPECT_THAT(dead_, ElementsAre(servers_[1], worker_));
}

TEST_F(LivenessTest, NamesTheMostSilentWorker) {
  Pass(config_.heartbeat_interval, {servers_[0], servers_[1]});
  const std::string text = members_.MostSilentWorker(runner_->loop()->Now());
  EXPECT_THAT(text, StartsWith("worker 0"));
  EXPECT_THAT(text, HasSubstr(", last heard "));
}

}  // namespace liveness_test
}  // namespace leeway::scheduler
