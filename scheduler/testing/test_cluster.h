// A cluster on virtual time for tests: the real scheduler, and nodes that are the real
// node::Membership with a short script around it.
#ifndef LEEWAY_SCHEDULER_TESTING_TEST_CLUSTER_H_
#define LEEWAY_SCHEDULER_TESTING_TEST_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "leeway/config.h"
#include "node/membership.h"
#include "runtime/sim/sim_world.h"
#include "scheduler/control/scheduler.h"
#include "van/sim/sim_van.h"

namespace leeway::scheduler {

inline constexpr char kSchedulerHost[] = "scheduler";

// For matchers of strings, which do not take Abseil's views.
inline std::string Text(const absl::Status& status) { return std::string(status.message()); }

// One simulated process with a membership. Servers acknowledge maps, install every table that they
// do not refuse, and complete state transfers at once; workers repeat requests that are not
// answered, as the client library does.
class TestNode final : private node::Membership::Listener {
 public:
  TestNode(runtime::SimWorld* world, van::SimNetwork* network, std::string name, Role role,
           Config config);
  ~TestNode() override;

  void CreateTable(std::uint64_t request, const TableSpec& spec);
  void OpenTable(std::uint64_t request, const std::string& name);
  void Enter(const std::string& name, std::uint64_t number,
             absl::Duration timeout = absl::ZeroDuration());
  void Leave();
  void AskForMap();
  // Its data thread, or a server, has told it where the scheduler is.
  void Follow(const proto::SchedulerMoved& moved) { membership_->OnSchedulerMoved(moved); }
  // Sends a message once.
  void Say(const proto::AnyMessage& message);

  // Its observations.
  std::optional<proto::Welcome> welcome;
  std::shared_ptr<const proto::ClusterMap> map;
  std::vector<std::shared_ptr<const proto::ClusterMap>> seen;
  std::vector<proto::NodeDown> downs;
  std::map<std::uint64_t, proto::TableReply> tables;                       // by request
  std::map<std::pair<std::string, std::uint64_t>, absl::Status> barriers;  // by name, number
  std::set<std::uint32_t> installed;
  std::vector<proto::RestoreShards> loads;  // that it was asked for
  std::vector<proto::LeadNow> leads;
  std::vector<std::uint64_t> prepares;  // checkpoints' numbers
  std::vector<proto::CheckpointCut> cuts;
  std::optional<absl::Status> over;
  std::optional<absl::Status> left;
  int welcomes = 0, overs = 0, maps = 0;
  bool maps_only_grew = true;

  // How a server behaves.
  bool acknowledges_maps = true;
  bool answers_installs = true;
  bool reports_ready = true;
  bool answers_loads = true;
  absl::Status load_result;
  absl::Status refusal;

  int epochs = 0;  // seen

  // Sends the reports that were held back while `reports_ready` was false.
  void ReportReady() {
    reports_ready = true;
    SayReady();
  }

  std::uint64_t epoch() const { return map == nullptr ? 0 : map->epoch; }
  const std::string& name() const { return name_; }

 private:
  void OnWelcome(const proto::Welcome& it) override;
  void OnMap(std::shared_ptr<const proto::ClusterMap> it) override;
  void OnNodeDown(const proto::NodeDown& down) override { downs.push_back(down); }
  void OnSchedulerMessage(proto::AnyMessage message) override;
  void OnOver(const absl::Status& why) override;
  void SayReady();
  void SayUntil(const proto::AnyMessage& message, std::function<bool()> answered);

  const std::string name_;
  std::uint64_t seen_epoch_ = 0;
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<node::Membership> membership_;
};

// A tool that asks one thing of the scheduler.
class TestTool final : private van::Handler {
 public:
  TestTool(runtime::SimWorld* world, van::SimNetwork* network, std::string command,
           std::vector<std::string> arguments);

  std::optional<absl::Status> answer;
  std::string json;

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity&) override;
  void OnPeerDown(van::PeerId, const absl::Status& why) override;
  void OnMessage(van::PeerId, van::Message raw) override;

  const proto::Admin admin_;
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<van::Van> van_;
};

class TestCluster {
 public:
  explicit TestCluster(std::uint64_t seed = 1, std::uint32_t servers = 2,
                       std::uint32_t workers = 2);
  ~TestCluster();

  void StartScheduler();
  void KillScheduler();
  // "server0", "worker0", "worker1", … in order of their start; `edit` changes its configuration.
  TestNode* Start(Role role, const std::function<void(Config*)>& edit = nullptr);
  // An elastic server that does not take the tables that it is given: it is being taken in until it
  // does (TestNode::answers_installs).
  TestNode* StartWithoutTables();
  void StartAll();
  void Kill(TestNode* node);

  // Every running node knows the complete map.
  bool Complete() const;
  void RunUntilComplete();
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit = absl::Minutes(5));
  void LeaveAllWorkers();
  std::unique_ptr<TestTool> Ask(std::string command, std::vector<std::string> arguments = {});
  // The scheduler's counter, from its status.
  std::uint64_t MessagesSent() const;

  runtime::SimWorld world;
  van::SimNetwork network;
  Config config;
  std::unique_ptr<runtime::Host> host;
  std::unique_ptr<van::Factory> factory;
  std::unique_ptr<runtime::LoopRunner> runner;
  std::unique_ptr<Scheduler> scheduler;
  std::optional<absl::Status> over;  // the scheduler's result
  std::vector<std::unique_ptr<TestNode>> nodes;
  std::vector<TestNode*> servers, workers, readers;  // by order of start
  std::set<const TestNode*> killed;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TESTING_TEST_CLUSTER_H_
