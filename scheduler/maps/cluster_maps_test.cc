#include "scheduler/maps/cluster_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "runtime/sim/sim_world.h"

namespace leeway::scheduler {
namespace cluster_maps_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A server and a worker on virtual time; the server acknowledges each map at once if it `acks_`.
class ClusterMapsTest : public ::testing::Test, private ClusterMaps::Source {
 protected:
  ClusterMapsTest() : server_(Admit(Role::kServer, 10)), worker_(Admit(Role::kWorker, 11)) {}
  Node* Admit(Role role, std::uint64_t incarnation) {
    proto::Join join;
    join.role = role;
    join.num_servers = 1;
    join.num_workers = 1;
    if (role == Role::kServer) join.endpoints = {"sim://server/0"};
    van::Identity identity;
    identity.role = role;
    identity.incarnation = incarnation;
    return *members_.Admit(join, identity);
  }
  void Complete() {
    members_.UpdateComplete();
    chains_.resize(1);
    chains_[0].members = {{0, 0}};
    maps_.ChangeAndPublish();
  }
  void Run(absl::Duration time = absl::Milliseconds(10)) { world_.RunFor(time); }
  std::vector<const Node*> Sent() { return std::exchange(sent_, {}); }

  bool running() const override { return true; }
  const std::vector<proto::Chain>& Chains() const override { return chains_; }
  std::vector<proto::CodecSwitch> Codecs() const override { return {}; }
  std::vector<proto::TableSettings> Settings() const override { return {}; }
  void OnNewVersion(std::uint64_t version) override { versions_.push_back(version); }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("scheduler");
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("loop");
  MembershipTable members_{1, 1};
  std::vector<proto::Chain> chains_;
  std::vector<std::uint64_t> versions_;
  std::vector<const Node*> sent_;
  bool acks_ = true;
  ClusterMaps maps_{runner_->loop(), &members_, this, absl::Seconds(2),
                    [this](const Node& node, const proto::ClusterMap& map) {
                      sent_.push_back(&node);
                      if (!acks_ || node.role != Role::kServer) return;
                      runner_->loop()->Post([this, version = map.version] {
                        maps_.publisher()->OnAck(*server_, version, runner_->loop()->Now());
                      });
                    }};
  Node* const server_;
  Node* const worker_;
};

TEST_F(ClusterMapsTest, NoMapIsPublishedBeforeTheClusterIsComplete) {
  maps_.ChangeAndPublish();
  EXPECT_FALSE(maps_.publish_pending());
  Run();
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_THAT(versions_, SizeIs(1));
}

TEST_F(ClusterMapsTest, ChangesOfOneTurnAreOneMap) {
  Complete();
  maps_.ChangeAndPublish();
  EXPECT_TRUE(maps_.publish_pending());
  EXPECT_FALSE(maps_.ServersHaveNewest());
  Run();
  EXPECT_THAT(Sent(), ElementsAre(server_, worker_));
  EXPECT_TRUE(maps_.ServersHaveNewest());
  EXPECT_EQ(versions_.back(), maps_.newest()->version);
}

TEST_F(ClusterMapsTest, WorkersWaitForServers) {
  acks_ = false;
  Complete();
  Run();
  EXPECT_THAT(Sent(), ElementsAre(server_));
  EXPECT_FALSE(maps_.publish_pending());
  EXPECT_FALSE(maps_.ServersHaveNewest());
}

TEST_F(ClusterMapsTest, MapsOfOneEpochFollowAfterAPause) {
  Complete();
  Run();
  Sent();
  maps_.PublishNow();  // the rest begins
  worker_->state = Node::State::kLeft;
  maps_.ChangeAndPublish();
  EXPECT_TRUE(maps_.publish_pending());
  Run(absl::Microseconds(500));
  EXPECT_TRUE(maps_.publish_pending());
  Run();
  EXPECT_FALSE(maps_.publish_pending());
}

TEST_F(ClusterMapsTest, AnUrgentMapReachesWorkersWithoutTheServers) {
  acks_ = false;
  Complete();
  maps_.Hurry();
  Run();
  EXPECT_THAT(Sent(), ElementsAre(server_));
  Run(2 * kUrgentPatience);
  EXPECT_THAT(Sent(), ElementsAre(worker_));
}

}  // namespace cluster_maps_test
}  // namespace leeway::scheduler
