#include "ps/testing/chain_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/chain.h"
#include "proto/messages/layout.h"

namespace leeway::ps {

Config ChainBench::DefaultConfig() {
  Config config;
  config.resend_interval = absl::Milliseconds(20);
  config.heartbeat_interval = absl::Milliseconds(50);
  config.failure_timeout = absl::Milliseconds(500);
  return config;
}

ChainBench::ChainBench(const Options& options)
    : options_(options), world_(options.seed), servers_(options.servers) {
  map.epoch = 0;
  map.owners.assign(options.shards, {});
  for (std::uint32_t rank = 0; rank < options.servers; ++rank) StartServer(rank);
  for (std::uint32_t rank = 0; rank < options.workers; ++rank) AddWorker(/*late=*/false);
}

ChainBench::~ChainBench() {
  workers_.clear();
  for (Server& server : servers_) server.thread.reset();
}

void ChainBench::StartServer(std::uint32_t rank) {
  Server& server = servers_[rank];
  server.host = world_.NewHost(HostOf(rank));
  server.runner = server.host->Spawn("data");
  server.factory = network_.NewFactory(HostOf(rank));
  DataThread::Setup setup;
  setup.config = options_.config;
  setup.incarnation = 500 + rank;
  setup.loop = server.runner->loop();
  setup.factory = server.factory.get();
  setup.options = options_.data;
  setup.tell_scheduler = [this](proto::AnyMessage message) {
    if (const auto* ready = std::get_if<proto::ReplicaReady>(&message)) ready_.insert(ready->shard);
    if (const auto* link = std::get_if<proto::LinkReport>(&message)) link_reports.push_back(*link);
  };
  const std::vector<std::uint64_t>& limits = options_.table_bytes_max;
  server.memory = std::make_unique<TableMemory>(rank < limits.size() ? limits[rank] : 0);
  setup.table_memory = server.memory.get();
  setup.give_up = [this](const absl::Status& why) {
    if (!gives_up) ADD_FAILURE() << why;
    given_up.push_back(why);
  };
  server.thread = std::make_unique<DataThread>(setup);
  absl::StatusOr<std::string> endpoint = server.thread->Listen(server.factory->AnyAddress(""));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  proto::Welcome welcome;
  welcome.node = 2 + rank;
  welcome.rank = rank;
  welcome.cluster = kCluster;
  welcome.block_bytes = kBlock * sizeof(float);
  welcome.replication = options_.replication;
  welcome.failure_timeout_ms =
      static_cast<std::uint32_t>(absl::ToInt64Milliseconds(options_.config.failure_timeout));
  server.thread->SetPlace(welcome);
  map.servers.push_back(
      {.node = 2 + rank, .rank = rank, .endpoints = {*endpoint}, .incarnation = 500 + rank});
}

void ChainBench::AddWorker(bool late) {
  const auto rank = static_cast<std::uint32_t>(workers_.size());
  const van::Identity identity{
      .role = Role::kWorker, .node = 100 + rank, .incarnation = 1000 + rank, .cluster = kCluster};
  map.workers.push_back(
      {.node = 100 + rank, .rank = rank, .incarnation = 1000 + rank, .late = late});
  workers_.push_back(
      std::make_unique<ChainWorker>(&world_, &network_, WorkerHostOf(rank), identity, rank));
}

std::uint32_t ChainBench::AddReader() {
  const auto rank = static_cast<std::uint32_t>(workers_.size());
  const van::Identity identity{.role = Role::kReader,
                               .node = (1u << 31) + rank,
                               .incarnation = 1000 + rank,
                               .cluster = kCluster};
  workers_.push_back(
      std::make_unique<ChainWorker>(&world_, &network_, WorkerHostOf(rank), identity, rank));
  return rank;
}

void ChainBench::KillWorker(std::uint32_t rank) {
  world_.Kill(WorkerHostOf(rank));
  network_.Kill(WorkerHostOf(rank));
  workers_[rank].reset();
  map.workers[rank].state = proto::WorkerState::kDead;
}

std::uint32_t ChainBench::Install(const Consistency& consistency) {
  TableSpec spec = TableSpec::Dense("", {kBlocks * kBlock});
  spec.consistency = consistency;
  return Install(spec);
}

std::uint32_t ChainBench::Install(TableSpec spec) {
  const auto id = static_cast<std::uint32_t>(tables_.size() + 1);
  spec.name = absl::StrCat("t", id);
  tables_.push_back(spec);
  for (Server& server : servers_) {
    const absl::Status installed = server.thread->InstallTable(id, spec, *MakeUpdater(spec));
    EXPECT_TRUE(installed.ok()) << installed;
  }
  return id;
}

// ---- the map ----

void ChainBench::SetChain(std::vector<std::uint32_t> members, std::vector<std::uint32_t> joining) {
  map.replicas.clear();
  for (std::uint32_t shard = 0; shard < map.owners.size(); ++shard) {
    map.owners[shard] = {.server_rank = members.empty() ? proto::kNoServer : members[0]};
    for (std::size_t i = 1; i < members.size(); ++i) {
      map.replicas.push_back({.shard = shard, .place = {.server_rank = members[i]}});
    }
    for (const std::uint32_t rank : joining) {
      map.replicas.push_back({.shard = shard, .place = {.server_rank = rank}, .joining = true});
    }
  }
  ++map.epoch;
}

void ChainBench::DropFromChains(std::uint32_t server) {
  std::vector<std::uint32_t> members, joining;
  const proto::Chain chain = proto::ChainOf(map, 0);  // all are alike
  for (const auto& place : chain.members) {
    if (place.server_rank != server) members.push_back(place.server_rank);
  }
  for (const auto& place : chain.joining) {
    if (place.server_rank != server && !members.empty()) joining.push_back(place.server_rank);
  }
  SetChain(members, joining);
}

void ChainBench::Publish() {
  ++map.version;
  std::vector<std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < servers_.size(); ++rank) all.push_back(rank);
  PublishTo(all);
}

void ChainBench::PublishTo(const std::vector<std::uint32_t>& servers) {
  auto copy = std::make_shared<const proto::ClusterMap>(map);
  for (const std::uint32_t rank : servers) {
    if (!alive(rank)) continue;
    servers_[rank].runner->loop()->Post([this, rank, copy] {
      thread(rank).TakeMap(copy, [this, rank, copy] { OnTaken(rank, copy->version); });
    });
  }
}

void ChainBench::OnTaken(std::uint32_t rank, std::uint64_t version) {
  servers_[rank].taken = version;
  for (std::uint32_t other = 0; other < servers_.size(); ++other) {
    if (alive(other) && servers_[other].taken < map.version) return;
  }
  if (std::exchange(published_, map.version) == map.version) return;
  for (auto& worker : workers_) {
    if (worker != nullptr) worker->TakeMap(map);
  }
}

void ChainBench::Kill(std::uint32_t server) {
  world_.Kill(HostOf(server));
  network_.Kill(HostOf(server));
  servers_[server].thread.reset();
  map.servers[server].alive = false;
  DropFromChains(server);
  Publish();
}

// ---- the script ----

proto::Request ChainBench::RequestOf(std::uint32_t table, proto::Op op, std::uint64_t clock,
                                     std::uint64_t block) const {
  proto::Request request;
  request.id.shard = proto::ShardOfBlock(table, block, options_.shards);
  request.table = table;
  request.timeout_ms = timeout_ms;
  request.op = op;
  request.clock = clock;
  request.block = block;
  request.elements = kBlock;
  return request;
}

ChainWorker::Key ChainBench::Push(std::uint32_t worker, std::uint32_t table, std::uint64_t clock,
                                  std::uint64_t block, float value, std::uint64_t read_updates) {
  const std::vector<float> values(kBlock, value);
  proto::Request request = RequestOf(table, proto::Op::kPush, clock, block);
  request.read_updates = read_updates;
  return workers_[worker]->Submit(std::move(request),
                                  {runtime::Buffer::CopyOf(values.data(), kBlock * sizeof(float))},
                                  tables_[table - 1].consistency.is_bsp());
}

ChainWorker::Key ChainBench::Pull(std::uint32_t worker, std::uint32_t table, std::uint64_t clock,
                                  std::uint64_t block) {
  return workers_[worker]->Submit(RequestOf(table, proto::Op::kPull, clock, block), {},
                                  tables_[table - 1].consistency.is_bsp());
}

ChainWorker::Key ChainBench::Call(std::uint32_t worker, std::uint32_t table, std::uint64_t clock,
                                  const std::string& handler, const std::string& text) {
  proto::Request request = RequestOf(table, proto::Op::kCall, clock, 0);
  request.elements = 0;
  return workers_[worker]->Submit(std::move(request),
                                  {runtime::Buffer::CopyOf(handler), runtime::Buffer::CopyOf(text)},
                                  /*held=*/false);
}

ChainWorker::Key ChainBench::PushRows(std::uint32_t worker, std::uint32_t table,
                                      std::uint64_t clock, const std::vector<std::uint64_t>& keys,
                                      std::uint32_t width, float value) {
  const TableSpec& spec = tables_[table - 1];
  proto::Request request;
  request.id.shard = proto::ShardOfKey(keys.at(0), options_.shards);
  request.table = table;
  request.kind = spec.kind;
  request.op = proto::Op::kPush;
  request.clock = clock;
  request.keys = keys.size();
  request.elements = keys.size() * width;
  Payload payload = {runtime::Buffer::CopyOf(keys.data(), keys.size() * sizeof(std::uint64_t))};
  if (spec.kind == TableKind::kRagged) {
    const std::vector<std::uint32_t> widths(keys.size(), width);
    payload.push_back(runtime::Buffer::CopyOf(widths.data(), widths.size() * sizeof(width)));
  }
  const std::vector<float> values(request.elements, value);
  payload.push_back(runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float)));
  return workers_[worker]->Submit(request, std::move(payload), spec.consistency.is_bsp());
}

std::vector<std::uint64_t> ChainBench::KeysOf(std::uint32_t shard, std::size_t count) const {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; keys.size() < count; ++key) {
    if (proto::ShardOfKey(key, options_.shards) == shard) keys.push_back(key);
  }
  return keys;
}

void ChainBench::Until(const std::function<bool()>& done, const char* what) {
  const absl::Status status = world_.RunUntil(done, absl::Seconds(20));
  ASSERT_TRUE(status.ok()) << what << ": " << status;
}

bool ChainBench::Idle() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker == nullptr || worker->Idle(); });
}

void ChainBench::UntilIdle() {
  Until([this] { return Published() && Idle(); }, "until all is answered");
}

std::vector<float> ChainBench::ReadAll(std::uint32_t table, std::uint64_t clock) {
  std::vector<ChainWorker::Key> keys;
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    keys.push_back(Pull(0, table, clock, block));
  }
  UntilIdle();
  std::vector<float> values;
  for (const ChainWorker::Key& key : keys) {
    EXPECT_TRUE(worker(0).ResultOf(key).ok()) << worker(0).ResultOf(key);
    if (!worker(0).ResultOf(key).ok()) return {};
    values.push_back(worker(0).ValuesOf(key).at(0));
  }
  return values;
}

void ChainBench::ExpectReplicasEqual() {
  RunFor(absl::Seconds(1));  // what is under way arrives
  for (std::uint32_t shard = 0; shard < map.owners.size(); ++shard) {
    const proto::Chain chain = proto::ChainOf(map, shard);
    if (chain.members.empty()) continue;
    Shard& head = replica(chain.members[0].server_rank, shard)->shard();
    const std::uint64_t digest = head.Digest();
    for (const proto::ShardOwner& place : chain.members) {
      Replica* member = replica(place.server_rank, shard);
      EXPECT_EQ(member->shard().index(), head.index());
      EXPECT_EQ(member->committed(), head.index());
      EXPECT_EQ(member->shard().Digest(), digest)
          << "shard " << shard << " on server " << place.server_rank;
    }
  }
}

}  // namespace leeway::ps
