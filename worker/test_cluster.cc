#include "worker/test_cluster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/codec.h"

namespace leeway::worker {
namespace {

constexpr std::uint64_t kCluster = 99;

proto::AnyMessage Decoded(van::Message& message) {
  absl::StatusOr<proto::AnyMessage> decoded =
      proto::Decode(message.header, {message.payload.data(), message.payload.size()});
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? *std::move(decoded) : proto::AnyMessage();
}

void SendTo(van::Van* van, van::PeerId peer, const proto::AnyMessage& message,
            std::vector<runtime::Buffer> payload = {}) {
  van::Message out;
  out.header = proto::Encode(message);
  out.payload.assign(payload.begin(), payload.end());
  van->Send(peer, std::move(out)).IgnoreError();  // the peer may have gone
}

}  // namespace

// ---- the scheduler ----

ScriptedScheduler::ScriptedScheduler(runtime::Loop* loop, van::Factory* factory,
                                     const proto::Welcome& welcome, const std::string& address)
    : welcome_(welcome) {
  van_ = factory->New(
      loop, {.role = Role::kScheduler, .node = 1, .incarnation = 1, .cluster = kCluster}, {}, this);
  EXPECT_TRUE(van_->Listen(address).ok());
}

void ScriptedScheduler::Send(van::PeerId peer, const proto::AnyMessage& message) {
  SendTo(van_.get(), peer, message);
}

void ScriptedScheduler::Publish() { Tell(map); }

void ScriptedScheduler::Tell(const proto::AnyMessage& message) {
  for (const van::PeerId peer : joined_) Send(peer, message);
}

proto::TableReply ScriptedScheduler::ReplyTo(std::uint64_t request, const std::string& name) {
  proto::TableReply reply;
  reply.request = request;
  const auto found = tables_.find(name);
  if (found == tables_.end()) {
    reply.result = absl::NotFoundError(absl::StrCat("no table '", name, "'"));
    return reply;
  }
  reply.table = found->second.first;
  reply.spec = found->second.second;
  reply.combine = combine;
  return reply;
}

void ScriptedScheduler::OnMessage(van::PeerId peer, van::Message raw) {
  const proto::AnyMessage message = Decoded(raw);
  if (std::holds_alternative<proto::Join>(message)) {
    if (std::find(joined_.begin(), joined_.end(), peer) == joined_.end()) joined_.push_back(peer);
    Send(peer, welcome_);
    if (map.epoch > 0) Send(peer, map);
  } else if (const auto* ack = std::get_if<proto::MapAck>(&message)) {
    if (ack->version == 0) Send(peer, map);
  } else if (const auto* beat = std::get_if<proto::Heartbeat>(&message)) {
    Send(peer, proto::HeartbeatAck{beat->number});
  } else if (const auto* create = std::get_if<proto::CreateTable>(&message)) {
    ++table_requests;
    const auto id = static_cast<std::uint32_t>(tables_.size() + 1);
    tables_.try_emplace(create->spec.name, id, create->spec);
    if (answer_tables) Send(peer, ReplyTo(create->request, create->spec.name));
  } else if (const auto* open = std::get_if<proto::OpenTable>(&message)) {
    ++table_requests;
    if (answer_tables) Send(peer, ReplyTo(open->request, open->name));
  } else if (const auto* enter = std::get_if<proto::BarrierEnter>(&message)) {
    barriers.push_back(*enter);
    if (release_barriers) {
      Send(peer, proto::BarrierRelease{enter->name, enter->group, enter->number, absl::OkStatus()});
    }
  } else if (std::holds_alternative<proto::Leave>(message)) {
    left = true;
    Send(peer, proto::LeaveAck{});
  }
}

// ---- a server ----

ScriptedServer::ScriptedServer(runtime::Loop* loop, van::Factory* factory,
                               const van::Identity& identity, const std::string& address)
    : loop_(loop), factory_(factory), identity_(identity), address_(address) {
  Restart();
}

void ScriptedServer::Restart() {
  van_.reset();
  van_ = factory_->New(loop_, identity_, {}, this);
  EXPECT_TRUE(van_->Listen(address_).ok());
}

void ScriptedServer::OnMessage(van::PeerId peer, van::Message raw) {
  proto::AnyMessage message = Decoded(raw);
  if (const auto* tick = std::get_if<proto::ClockTick>(&message)) {
    ticks.push_back(*tick);
    if (drop_tick && drop_tick(*tick)) return;
    SendTo(van_.get(), peer, proto::ClockAck{tick->clock});
  } else if (const auto* call = std::get_if<proto::Call>(&message)) {
    if (!handler) return;
    const absl::StatusOr<std::string> reply = handler(std::string(raw.payload[0].text()));
    SendTo(van_.get(), peer, proto::CallReply{call->request, reply.status()},
           {runtime::Buffer::CopyOf(reply.ok() ? *reply : std::string())});
  } else if (const auto* request = std::get_if<proto::Request>(&message)) {
    Seen seen{*request, {}};
    for (const runtime::Buffer& frame : raw.payload) {
      seen.payload.emplace_back(frame.bytes().begin(), frame.bytes().end());
    }
    arrived.push_back(seen);
    if (intercept && intercept(*request)) return;
    Take(std::move(seen));
  }
}

void ScriptedServer::Take(Seen seen) {
  Admission& shard = shards_[seen.request.id.shard];
  if (seen.request.id.sequence < shard.next) return Answer(seen.request);
  shard.early.emplace(seen.request.id.sequence, std::move(seen));
  while (!shard.early.empty() && shard.early.begin()->first == shard.next) {
    const Seen now = std::move(shard.early.begin()->second);
    shard.early.erase(shard.early.begin());
    ++shard.next;
    Admit(now);
    Answer(now.request);
  }
}

void ScriptedServer::Admit(const Seen& seen) {
  admitted.push_back(seen);
  const proto::Request& request = seen.request;
  const auto floats = [](const std::vector<std::byte>& bytes) {
    return reinterpret_cast<const float*>(bytes.data());
  };
  if (request.kind == TableKind::kDense) {
    std::vector<float>& block = blocks[request.block];
    block.resize(request.elements);
    for (std::size_t i = 0; proto::HasPush(request.op) && i < request.elements; ++i) {
      block[i] += floats(seen.payload[0])[i];
    }
    return;
  }
  const auto* keys = reinterpret_cast<const std::uint64_t*>(seen.payload[0].data());
  for (std::size_t k = 0; k < request.keys; ++k) {
    std::vector<float>& row = rows[keys[k]];
    row.resize(row_width);
    for (std::size_t i = 0; proto::HasPush(request.op) && i < row_width; ++i) {
      row[i] += floats(seen.payload[1])[k * row_width + i];
    }
  }
}

void ScriptedServer::Answer(const proto::Request& request) { Reply(request, absl::OkStatus()); }

void ScriptedServer::Reply(const proto::Request& request, const absl::Status& result) {
  proto::Reply reply;
  reply.id = request.id;
  reply.result = result;
  reply.op = request.op;
  reply.kind = request.kind;
  reply.dtype = request.dtype;
  reply.clock = reply.slowest_clock = request.clock;
  std::vector<float> values;
  if (result.ok() && proto::HasPull(request.op)) {
    if (request.kind == TableKind::kDense) {
      values = blocks[request.block];
    } else {
      for (const Seen& seen : admitted) {
        if (!(seen.request.id == request.id)) continue;
        const auto* keys = reinterpret_cast<const std::uint64_t*>(seen.payload[0].data());
        for (std::size_t k = 0; k < request.keys; ++k) {
          values.insert(values.end(), rows[keys[k]].begin(), rows[keys[k]].end());
        }
      }
      reply.keys = request.keys;
    }
    reply.elements = values.size();
  }
  if (edit) edit(request, &reply);
  std::vector<runtime::Buffer> payload;
  if (reply.result.ok() && proto::HasPull(request.op)) {
    values.resize(reply.elements);
    payload.push_back(runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float)));
  }
  SendTo(van_.get(), peer_, reply, std::move(payload));
}

// ---- the cluster ----

TestCluster::TestCluster(TestClusterOptions options)
    : world(options.seed), network(&world), options_(std::move(options)) {
  proto::Welcome welcome;
  welcome.node = 10;
  welcome.cluster = kCluster;
  welcome.num_servers = options_.servers;
  welcome.num_workers = 1;
  welcome.heartbeat_interval_ms = 1000;
  welcome.failure_timeout_ms = 600'000;
  welcome.block_bytes = options_.block_bytes;
  Process* process = Start("scheduler");
  scheduler =
      std::make_unique<ScriptedScheduler>(process->runner->loop(), process->factory.get(), welcome);
  scheduler->map.version = scheduler->map.epoch = 1;
  for (std::uint32_t rank = 0; rank < options_.servers; ++rank) {
    process = Start(absl::StrCat("server", rank));
    const std::string address = absl::StrCat("sim://server", rank, "/data");
    servers.push_back(std::make_unique<ScriptedServer>(process->runner->loop(),
                                                       process->factory.get(),
                                                       van::Identity{.role = Role::kServer,
                                                                     .node = rank + 2,
                                                                     .incarnation = rank + 100,
                                                                     .cluster = kCluster},
                                                       address));
    scheduler->map.servers.push_back({.node = rank + 2, .rank = rank, .endpoints = {address}});
  }
  for (std::uint32_t shard = 0; shard < options_.shards; ++shard) {
    scheduler->map.owners.push_back({.server_rank = shard % options_.servers, .thread = 0});
  }

  config.role = Role::kWorker;
  config.scheduler = "sim://scheduler/main";
  config.num_servers = options_.servers;
  config.failure_timeout = absl::Minutes(10);
  if (options_.configure) options_.configure(&config);
  process = Start("worker");
  core = std::make_unique<Core>(Core::Setup{.config = config,
                                            .host = process->host.get(),
                                            .loop = process->runner->loop(),
                                            .factory = process->factory.get()});
}

TestCluster::~TestCluster() {
  core.reset();
  servers.clear();
  scheduler.reset();
}

TestCluster::Process* TestCluster::Start(const std::string& name) {
  auto process = std::make_unique<Process>();
  process->host = world.NewHost(name);
  process->factory = network.NewFactory(name);
  process->runner = process->host->Spawn("main");
  processes_.push_back(std::move(process));
  return processes_.back().get();
}

void TestCluster::RunUntil(const std::function<bool()>& done) {
  const absl::Status status = world.RunUntil(done, absl::Minutes(10));
  EXPECT_TRUE(status.ok()) << status;
}

void TestCluster::Connect() {
  bool ready = false;
  core->Start([&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    ready = true;
  });
  RunUntil([&] { return ready; });
}

std::shared_ptr<const TableInfo> TestCluster::MakeTable(const TableSpec& spec) {
  std::shared_ptr<const TableInfo> table;
  core->CreateTable(spec, absl::Minutes(1),
                    [&](absl::StatusOr<std::shared_ptr<const TableInfo>> result) {
                      ASSERT_TRUE(result.ok()) << result.status();
                      table = *result;
                    });
  RunUntil([&] { return table != nullptr; });
  return table;
}

std::shared_ptr<Operation> TestCluster::Push(const std::shared_ptr<const TableInfo>& table,
                                             const std::vector<std::uint64_t>& keys,
                                             const std::vector<float>& values, Core::Terms terms,
                                             bool copy) {
  Access access;
  access.table = table;
  access.kind = table->spec.kind;
  access.op = proto::Op::kPush;
  access.keys = keys;
  access.values = values.data();
  access.size = values.size();
  access.copy = copy;
  return core->Submit(Slice(access, core->poster()), terms, nullptr);
}

std::shared_ptr<Operation> TestCluster::Pull(const std::shared_ptr<const TableInfo>& table,
                                             const std::vector<std::uint64_t>& keys,
                                             std::vector<float>* values, Core::Terms terms) {
  Access access;
  access.table = table;
  access.kind = table->spec.kind;
  access.op = proto::Op::kPull;
  access.keys = keys;
  access.result = values->data();
  access.result_size = values->size();
  return core->Submit(Slice(access, core->poster()), terms, nullptr);
}

std::shared_ptr<Operation> TestCluster::PushPull(const std::shared_ptr<const TableInfo>& table,
                                                 const std::vector<float>& values,
                                                 std::vector<float>* result, Core::Terms terms) {
  Access access;
  access.table = table;
  access.kind = table->spec.kind;
  access.op = proto::Op::kPushPull;
  access.values = values.data();
  access.size = values.size();
  access.result = result->data();
  access.result_size = result->size();
  return core->Submit(Slice(access, core->poster()), terms, nullptr);
}

absl::Status TestCluster::Await(const std::shared_ptr<Operation>& operation) {
  RunUntil([&] { return operation->done(); });
  return operation->done() ? operation->status() : absl::InternalError("never done");
}

void TestCluster::KillServer(std::uint32_t rank, const std::string& reason) {
  const std::string name = absl::StrCat("server", rank);
  network.Kill(name);
  world.Kill(name);
  scheduler->Tell(proto::NodeDown{.node = rank + 2,
                                  .role = Role::kServer,
                                  .rank = rank,
                                  .incarnation = rank + 100,
                                  .left = false,
                                  .reason = reason,
                                  .epoch = scheduler->map.epoch + 1});
  ++scheduler->map.version;
  ++scheduler->map.epoch;
  scheduler->map.servers[rank].alive = false;
  scheduler->Publish();
}

void TestCluster::ExpectNoHoles() {
  for (const std::unique_ptr<ScriptedServer>& server : servers) {
    std::map<std::uint32_t, std::uint64_t> last;
    for (const ScriptedServer::Seen& seen : server->admitted) {
      EXPECT_EQ(seen.request.id.sequence, ++last[seen.request.id.shard]);
    }
  }
}

}  // namespace leeway::worker
