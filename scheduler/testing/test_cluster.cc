#include "scheduler/testing/test_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"

namespace leeway::scheduler {

TestNode::TestNode(runtime::SimWorld* world, van::SimNetwork* network, std::string name, Role role,
                   Config config)
    : name_(std::move(name)),
      host_(world->NewHost(name_)),
      factory_(network->NewFactory(name_)),
      runner_(host_->Spawn("role")) {
  node::Membership::Setup setup;
  setup.config = std::move(config);
  setup.role = role;
  setup.incarnation = host_->Random();
  if (role == Role::kServer) {
    for (std::uint32_t thread = 0; thread < setup.config.server_threads; ++thread) {
      setup.endpoints.push_back(absl::StrCat("sim://", name_, "/", thread));
    }
  }
  setup.host = host_.get();
  setup.loop = runner_->loop();
  setup.factory = factory_.get();
  node::Membership::Listener* const listener = this;
  membership_ = std::make_unique<node::Membership>(std::move(setup), listener);
  runner_->loop()->Post([this] { membership_->Start(); });
}

TestNode::~TestNode() { membership_.reset(); }

void TestNode::OnWelcome(const proto::Welcome& it) {
  ++welcomes;
  welcome = it;
}

void TestNode::OnMap(std::shared_ptr<const proto::ClusterMap> it) {
  maps_only_grew = maps_only_grew && (map == nullptr || it->version > map->version);
  map = std::move(it);
  seen.push_back(map);
  ++maps;
  epochs += map->epoch > seen_epoch_;
  seen_epoch_ = map->epoch;
  if (!acknowledges_maps) return;
  // As if data threads had to take it first.
  runner_->loop()->After(absl::Milliseconds(1), [this, version = map->version] {
    if (!over.has_value()) membership_->AckMap(version);
  });
  SayReady();
}

// Reports replicas here as caught up, until the map shows them as members.
void TestNode::SayReady() {
  if (!reports_ready || map == nullptr || !welcome.has_value() || over.has_value()) return;
  bool said = false;
  for (const proto::ShardReplica& replica : map->replicas) {
    if (!replica.joining || replica.place.server_rank != welcome->rank) continue;
    if (map->servers[welcome->rank].node != welcome->node) continue;
    said = true;
    runner_->loop()->After(absl::Milliseconds(2), [this, epoch = map->epoch, replica] {
      Say(proto::ReplicaReady{.epoch = epoch, .shard = replica.shard});
    });
  }
  if (!said) return;
  runner_->loop()->After(absl::Seconds(1), [this, version = map->version] {
    if (map->version == version) SayReady();
  });
}

void TestNode::OnSchedulerMessage(proto::AnyMessage message) {
  if (const auto* install = std::get_if<proto::InstallTable>(&message)) {
    if (!answers_installs) return;
    if (refusal.ok()) installed.insert(install->table);
    Say(proto::InstallTableReply{.table = install->table, .result = refusal});
  } else if (const auto* restore = std::get_if<proto::RestoreShards>(&message)) {
    loads.push_back(*restore);
    if (!answers_loads) return;
    Say(proto::RestoreShardsReply{.request = restore->request, .result = load_result});
  } else if (const auto* lead = std::get_if<proto::LeadNow>(&message)) {
    leads.push_back(*lead);
  } else if (const auto* prepare = std::get_if<proto::CheckpointPrepare>(&message)) {
    prepares.push_back(prepare->checkpoint);
    Say(proto::CheckpointPrepared{.checkpoint = prepare->checkpoint, .fastest_clock = 5});
  } else if (const auto* cut = std::get_if<proto::CheckpointCut>(&message)) {
    cuts.push_back(*cut);
  } else if (const auto* failed = std::get_if<proto::InstallTableReply>(&message)) {
    installed.erase(failed->table);
  } else if (const auto* reply = std::get_if<proto::TableReply>(&message)) {
    tables.emplace(reply->request, *reply);
  } else if (const auto* release = std::get_if<proto::BarrierRelease>(&message)) {
    barriers.emplace(std::make_pair(release->name, release->number), release->result);
  }
}

void TestNode::OnOver(const absl::Status& why) {
  ++overs;
  over = why;
}

void TestNode::Say(const proto::AnyMessage& message) {
  runner_->loop()->Post([this, message] { (void)membership_->Send(message); });
}

void TestNode::SayUntil(const proto::AnyMessage& message, std::function<bool()> answered) {
  if (answered() || over.has_value()) return;
  Say(message);
  runner_->loop()->After(absl::Milliseconds(500), [this, message, answered = std::move(answered)] {
    SayUntil(message, answered);
  });
}

void TestNode::CreateTable(std::uint64_t request, const TableSpec& spec) {
  SayUntil(proto::CreateTable{.request = request, .spec = spec},
           [this, request] { return tables.contains(request); });
}

void TestNode::OpenTable(std::uint64_t request, const std::string& table) {
  SayUntil(proto::OpenTable{.request = request, .name = table},
           [this, request] { return tables.contains(request); });
}

void TestNode::Enter(const std::string& barrier, std::uint64_t number, absl::Duration timeout) {
  proto::BarrierEnter enter;
  enter.name = barrier;
  enter.number = number;
  enter.timeout_ms = static_cast<std::uint64_t>(absl::ToInt64Milliseconds(timeout));
  SayUntil(enter, [this, barrier, number] { return barriers.contains({barrier, number}); });
}

void TestNode::Leave() {
  runner_->loop()->Post([this] {
    membership_->Leave(absl::Seconds(30),
                       [this](absl::Status status) { left = std::move(status); });
  });
}

void TestNode::AskForMap() {
  runner_->loop()->Post([this] { membership_->AskForMap(); });
}

TestTool::TestTool(runtime::SimWorld* world, van::SimNetwork* network, std::string command,
                   std::vector<std::string> arguments)
    : admin_{.request = 1, .command = std::move(command), .arguments = std::move(arguments)},
      host_(world->NewHost("tool")),
      factory_(network->NewFactory("tool")),
      runner_(host_->Spawn("tool")) {
  runner_->loop()->Post([this] {
    van::Identity identity;
    identity.role = Role::kTool;
    identity.incarnation = host_->Random();
    van_ = factory_->New(runner_->loop(), identity, van::Limits(), this);
    (void)van_->Connect(absl::StrCat("sim://", kSchedulerHost, "/0"), absl::Seconds(10));
  });
}

void TestTool::OnPeerUp(van::PeerId peer, const van::Identity&) {
  van::Message raw;
  raw.header = proto::Encode(admin_);
  (void)van_->Send(peer, std::move(raw));
}

void TestTool::OnPeerDown(van::PeerId, const absl::Status& why) {
  if (!answer.has_value()) answer = absl::UnavailableError(why.message());
}

void TestTool::OnMessage(van::PeerId, van::Message raw) {
  const auto message = proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  if (!message.ok()) return;
  if (const auto* reply = std::get_if<proto::AdminReply>(&*message)) {
    answer = reply->result;
    json = std::string(raw.payload[0].text());
  }
}

TestCluster::TestCluster(std::uint64_t seed, std::uint32_t num_servers, std::uint32_t num_workers)
    : world(seed), network(&world) {
  config.scheduler = absl::StrCat("sim://", kSchedulerHost, "/0");
  config.num_servers = num_servers;
  config.num_workers = num_workers;
}

TestCluster::~TestCluster() {
  nodes.clear();
  scheduler.reset();
}

void TestCluster::StartScheduler() {
  scheduler.reset();  // a killed one, before the loop it lived on
  host = world.NewHost(kSchedulerHost);
  factory = network.NewFactory(kSchedulerHost);
  runner = host->Spawn("scheduler");
  scheduler = std::make_unique<Scheduler>(host.get(), runner->loop(), factory.get(), config);
  runner->loop()->Post([this] {
    const absl::Status started = scheduler->Start([this](absl::Status status) {
      over = std::move(status);
      scheduler.reset();
    });
    if (!started.ok()) over = started;
  });
}

void TestCluster::KillScheduler() {
  world.Kill(kSchedulerHost);
  network.Kill(kSchedulerHost);
}

TestNode* TestCluster::Start(Role role, const std::function<void(Config*)>& edit) {
  std::vector<TestNode*>& same = role == Role::kServer   ? servers
                                 : role == Role::kReader ? readers
                                                         : workers;
  Config its = config;
  its.role = role;
  if (edit) edit(&its);
  nodes.push_back(std::make_unique<TestNode>(
      &world, &network, absl::StrCat(Name(role), same.size()), role, std::move(its)));
  same.push_back(nodes.back().get());
  return nodes.back().get();
}

TestNode* TestCluster::StartWithoutTables() {
  TestNode* const late = Start(Role::kServer, [](Config* its) { its->elastic = true; });
  late->answers_installs = false;
  EXPECT_TRUE(RunUntil([&] { return late->epoch() > 0; }));
  world.RunFor(absl::Seconds(1));
  return late;
}

void TestCluster::StartAll() {
  StartScheduler();
  while (servers.size() < config.num_servers) Start(Role::kServer);
  while (workers.size() < config.num_workers) Start(Role::kWorker);
}

void TestCluster::Kill(TestNode* node) {
  world.Kill(node->name());
  network.Kill(node->name());
  killed.insert(node);
}

bool TestCluster::Complete() const {
  return servers.size() >= config.num_servers && workers.size() >= config.num_workers &&
         std::all_of(nodes.begin(), nodes.end(), [this](const std::unique_ptr<TestNode>& node) {
           return node->epoch() > 0 || node->over.has_value() || killed.contains(node.get());
         });
}

void TestCluster::RunUntilComplete() {
  (void)RunUntil([this] { return Complete(); });
}

bool TestCluster::RunUntil(const std::function<bool()>& done, absl::Duration limit) {
  return world.RunUntil(done, limit).ok();
}

std::unique_ptr<TestTool> TestCluster::Ask(std::string command,
                                           std::vector<std::string> arguments) {
  return std::make_unique<TestTool>(&world, &network, std::move(command), std::move(arguments));
}

std::uint64_t TestCluster::MessagesSent() const {
  return nlohmann::json::parse(scheduler->StatusJson())["counters"]["messages_sent"];
}

void TestCluster::LeaveAllWorkers() {
  for (TestNode* worker : workers) {
    if (!killed.contains(worker)) worker->Leave();
  }
}

}  // namespace leeway::scheduler
