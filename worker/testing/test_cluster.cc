#include "worker/testing/test_cluster.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/encoding/encoding.h"

namespace leeway::worker {
namespace {

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
  if (const auto* reply = std::get_if<proto::Reply>(&message);
      reply != nullptr && payload.size() == 1) {
    out.receive_token = proto::ReceiveTokenOf(reply->id);
  }
  van->Send(peer, std::move(out)).IgnoreError();  // the peer may have gone
}

}  // namespace

// ---- the scheduler ----

ScriptedScheduler::ScriptedScheduler(runtime::Loop* loop, van::Factory* factory,
                                     const proto::Welcome& welcome, const std::string& address)
    : welcome_(welcome) {
  van_ = factory->New(
      loop, {.role = Role::kScheduler, .node = 1, .incarnation = 1, .cluster = kTestCluster}, {},
      this);
  EXPECT_TRUE(van_->Listen(address).ok());
}

void ScriptedScheduler::Send(van::PeerId peer, const proto::AnyMessage& message,
                             absl::string_view text) {
  std::vector<runtime::Buffer> payload;
  if (!text.empty()) payload.push_back(runtime::Buffer::CopyOf(text));
  SendTo(van_.get(), peer, message, std::move(payload));
}

void ScriptedScheduler::Publish() { Tell(map); }

void ScriptedScheduler::Tell(const proto::AnyMessage& message) {
  for (const van::PeerId peer : joined_) Send(peer, message);
}

void ScriptedScheduler::AddTable(const TableSpec& spec) {
  const auto id = static_cast<std::uint32_t>(tables_.size() + 1);
  tables_.try_emplace(spec.name, id, spec);
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
  reply.table_settings = settings;
  return reply;
}

void ScriptedScheduler::OnMessage(van::PeerId peer, van::Message raw) {
  const proto::AnyMessage message = Decoded(raw);
  if (std::holds_alternative<proto::Join>(message)) {
    ++joins;
    if (std::find(joined_.begin(), joined_.end(), peer) == joined_.end()) joined_.push_back(peer);
    Send(peer, welcome_);
    if (map.epoch > 0) Send(peer, map);
  } else if (const auto* ack = std::get_if<proto::MapAck>(&message)) {
    if (ack->version == 0) Send(peer, map);
  } else if (const auto* beat = std::get_if<proto::Heartbeat>(&message)) {
    ++beats;
    Send(peer, proto::HeartbeatAck{beat->number});
  } else if (const auto* create = std::get_if<proto::CreateTable>(&message)) {
    ++table_requests;
    AddTable(create->spec);
    if (answer_tables) Send(peer, ReplyTo(create->request, create->spec.name));
  } else if (const auto* open = std::get_if<proto::OpenTable>(&message)) {
    ++table_requests;
    if (answer_tables) Send(peer, ReplyTo(open->request, open->name));
  } else if (const auto* enter = std::get_if<proto::BarrierEnter>(&message)) {
    barriers.push_back(*enter);
    if (release_barriers) {
      Send(peer, proto::BarrierRelease{enter->name, enter->group, enter->number, absl::OkStatus()});
    }
  } else if (const auto* admin = std::get_if<proto::Admin>(&message)) {
    admins.push_back(*admin);
    if (answer_admins) {
      Send(peer, proto::AdminReply{admin->request, absl::OkStatus()}, admin_text);
    }
  } else if (const auto* status = std::get_if<proto::StatusRequest>(&message)) {
    Send(peer, proto::StatusReply{status->request}, status_text);
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
    tick_ = *tick;
    AckTick();
  } else if (const auto* enter = std::get_if<proto::EnterClock>(&message)) {
    enters.push_back(*enter);
    if (!enter_at.has_value()) return;
    SendTo(van_.get(), peer, proto::EnterClockReply{.clock = *enter_at, .epoch = enter->epoch});
  } else if (const auto* call = std::get_if<proto::Call>(&message)) {
    if (!handler) return;
    const absl::StatusOr<std::string> reply = handler(std::string(raw.payload[0].text()));
    SendTo(van_.get(), peer, proto::CallReply{call->request, reply.status()},
           {runtime::Buffer::CopyOf(reply.ok() ? *reply : std::string())});
  } else if (const auto* request = std::get_if<proto::Request>(&message)) {
    OnRequest(*request, {raw.payload.data(), raw.payload.size()});
  } else if (const auto* batch = std::get_if<proto::PushBatch>(&message)) {
    batches.push_back(*batch);
    std::size_t begin = 0;
    for (const proto::BatchedPush& push : batch->pushes) {
      const std::size_t bytes = push.elements * SizeOf(batch->dtype);
      const runtime::Buffer values = raw.payload[0].Part(begin, bytes);
      OnRequest(proto::RequestOf(*batch, push), {&values, 1});
      begin += bytes;
    }
  }
}

void ScriptedServer::OnRequest(const proto::Request& request,
                               std::span<const runtime::Buffer> payload) {
  Seen seen{request, {}};
  for (const runtime::Buffer& frame : payload) {
    seen.payload.emplace_back(frame.bytes().begin(), frame.bytes().end());
  }
  arrived.push_back(seen);
  if (intercept && intercept(request)) return;
  Take(std::move(seen));
}

ScriptedServer::Key ScriptedServer::KeyOf(const proto::Request& request) const {
  const auto found = bsp.find(request.table);
  return {request.id.shard, found == bsp.end() || found->second};
}

void ScriptedServer::Take(Seen seen) {
  Admission& shard = shards_[KeyOf(seen.request)];
  if (seen.request.id.sequence <= shard.admitted) return Answer(seen.request);
  shard.early.insert_or_assign(seen.request.id.sequence, std::move(seen));
  while (!shard.early.empty() && shard.early.begin()->second.request.after <= shard.admitted) {
    const Seen now = std::move(shard.early.begin()->second);
    shard.early.erase(shard.early.begin());
    shard.admitted = now.request.id.sequence;
    Admit(shard, now);
    Answer(now.request);
  }
  if (tick_.has_value()) AckTick();
}

void ScriptedServer::Admit(Admission& shard, const Seen& seen) {
  admitted.push_back(seen);
  if (seen.request.kind == TableKind::kDense) {
    blocks[seen.request.block].resize(seen.request.elements);
    shard_of_block_[seen.request.block] = seen.request.id.shard;
  }
  if (provisional && KeyOf(seen.request).second && seen.request.op == proto::Op::kPush) {
    shard.held.push_back(seen);
    return;
  }
  Apply(seen);
  if (proto::HasPush(seen.request.op)) shard.committed = seen.request.id.sequence;
}

// A tick counts once all pushes that it names are there.
bool ScriptedServer::TickCounts() const {
  if (!tick_.has_value()) return false;
  return std::all_of(tick_->watermarks.begin(), tick_->watermarks.end(), [this](const auto& mark) {
    const auto shard = shards_.find({mark.shard, mark.held});
    return shard != shards_.end() && shard->second.admitted >= mark.sequence;
  });
}

void ScriptedServer::AckTick() {
  if (!TickCounts()) return;
  Say(proto::ClockAck{.clock = tick_->clock, .stable = stable_, .epoch = tick_->epoch});
}

void ScriptedServer::Close(std::uint64_t clock) {
  for (auto& [key, shard] : shards_) {
    std::vector<Seen> later;
    for (Seen& seen : shard.held) {
      if (seen.request.clock >= clock) {
        later.push_back(std::move(seen));
        continue;
      }
      Apply(seen);
      shard.committed = seen.request.id.sequence;
    }
    shard.held = std::move(later);
  }
  stable_ = clock;
  if (tick_.has_value() && !silent_stable) AckTick();
}

void ScriptedServer::CloseUpToTick() {
  if (TickCounts()) Close(tick_->clock);
}

void ScriptedServer::ForgetHeld() {
  for (auto& [key, shard] : shards_) {
    shard.held.clear();
    shard.admitted = shard.committed;
  }
}

void ScriptedServer::TakeOver(const ScriptedServer& old, std::uint32_t shard) {
  stable_ = 0;
  for (const bool held : {false, true}) {
    Admission& mine = shards_[{shard, held}];
    mine = {};
    const auto theirs = old.shards_.find({shard, held});
    if (theirs == old.shards_.end()) continue;
    mine.admitted = mine.committed = theirs->second.committed;
  }
  for (const auto& [block, values] : old.blocks) {
    if (old.shard_of_block_.at(block) != shard) continue;
    blocks[block] = values;
    shard_of_block_[block] = shard;
  }
}

void ScriptedServer::Say(const proto::AnyMessage& message) { SendTo(van_.get(), peer_, message); }

void ScriptedServer::Apply(const Seen& seen) {
  if (seen.request.codec != 0) return;  // the scripted server has no codecs, and does not decode
  const proto::Request& request = seen.request;
  const auto floats = [](const std::vector<std::byte>& bytes) {
    return reinterpret_cast<const float*>(bytes.data());
  };
  if (request.kind == TableKind::kDense) {
    std::vector<float>& block = blocks[request.block];
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

void ScriptedServer::Answer(const proto::Request& request) {
  if (!mute || !mute(request)) Reply(request, absl::OkStatus());
}

void ScriptedServer::Reply(const proto::Request& request, const absl::Status& result) {
  proto::Reply reply;
  reply.id = request.id;
  reply.result = result;
  reply.op = request.op;
  reply.kind = request.kind;
  reply.dtype = request.dtype;
  reply.clock = reply.slowest_clock = request.clock;
  reply.provisional = provisional && result.ok() && request.op == proto::Op::kPush &&
                      KeyOf(request).second &&
                      request.id.sequence > shards_[KeyOf(request)].committed;
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
  if (reply.has_answer()) payload.push_back(runtime::Buffer::CopyOf("answer"));
  SendTo(van_.get(), peer_, reply, std::move(payload));
}

// ---- the cluster ----

proto::Welcome TestCluster::MakeWelcome() const {
  proto::Welcome welcome;
  welcome.node = 10;
  welcome.cluster = kTestCluster;
  welcome.num_servers = options_.servers;
  welcome.num_workers = 1;
  welcome.heartbeat_interval_ms = 1000;
  welcome.failure_timeout_ms =
      static_cast<std::uint32_t>(absl::ToInt64Milliseconds(options_.failure_timeout));
  welcome.block_bytes = options_.block_bytes;
  welcome.clock = options_.start_clock;
  return welcome;
}

void TestCluster::CrashScheduler() {
  network.Kill("scheduler");
  world.Kill("scheduler");
}

void TestCluster::StartScheduler(const std::string& address) {
  const proto::ClusterMap map = scheduler->map;
  Process* process = Start(address.substr(6, address.find('/', 6) - 6));
  scheduler = std::make_unique<ScriptedScheduler>(process->runner->loop(), process->factory.get(),
                                                  MakeWelcome(), address);
  scheduler->map = map;
}

TestCluster::TestCluster(TestClusterOptions options)
    : world(options.seed), network(&world), options_(std::move(options)) {
  Process* process = Start("scheduler");
  scheduler = std::make_unique<ScriptedScheduler>(process->runner->loop(), process->factory.get(),
                                                  MakeWelcome());
  scheduler->map.version = scheduler->map.epoch = 1;
  for (std::uint32_t rank = 0; rank < options_.servers; ++rank) {
    process = Start(absl::StrCat("server", rank));
    const std::string address = absl::StrCat("sim://server", rank, "/data");
    servers.push_back(std::make_unique<ScriptedServer>(process->runner->loop(),
                                                       process->factory.get(),
                                                       van::Identity{.role = Role::kServer,
                                                                     .node = rank + 2,
                                                                     .incarnation = rank + 100,
                                                                     .cluster = kTestCluster},
                                                       address));
    scheduler->map.servers.push_back(
        {.node = rank + 2, .rank = rank, .endpoints = {address}, .incarnation = rank + 100});
  }
  for (std::uint32_t shard = 0; shard < options_.shards; ++shard) {
    scheduler->map.owners.push_back({.server_rank = shard % options_.servers, .thread = 0});
  }

  scheduler->map.workers.push_back({.node = 10, .rank = 0, .late = options_.late});

  config.role = Role::kWorker;
  config.scheduler = "sim://scheduler/main";
  config.num_servers = options_.servers;
  config.failure_timeout = options_.failure_timeout;
  if (options_.configure) options_.configure(&config);
  process = Start("worker");
  van::Factory* const factory = process->factory.get();
  core = std::make_unique<Core>(
      Core::Setup{.config = config,
                  .host = process->host.get(),
                  .loop = process->runner->loop(),
                  .factory = options_.wrap ? options_.wrap(factory) : factory});
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
  for (const auto& server : servers) server->bsp[table->id] = spec.consistency.is_bsp();
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

void TestCluster::Crash(std::uint32_t rank) {
  const std::string name = absl::StrCat("server", rank);
  network.Kill(name);
  world.Kill(name);
}

void TestCluster::PublishNewEpoch() {
  ++scheduler->map.version;
  ++scheduler->map.epoch;
  scheduler->Publish();
}

void TestCluster::KillServer(std::uint32_t rank, const std::string& reason) {
  Crash(rank);
  scheduler->Tell(proto::NodeDown{.node = rank + 2,
                                  .role = Role::kServer,
                                  .rank = rank,
                                  .incarnation = rank + 100,
                                  .left = false,
                                  .reason = reason,
                                  .epoch = scheduler->map.epoch + 1});
  scheduler->map.servers[rank].alive = false;
  PublishNewEpoch();
}

void TestCluster::FailOver(std::uint32_t rank) {
  std::vector<proto::ServerEntry>& all = scheduler->map.servers;
  all[rank].alive = false;
  std::uint32_t next = rank;
  while (!all[next].alive) next = (next + 1) % static_cast<std::uint32_t>(all.size());
  for (std::uint32_t shard = 0; shard < scheduler->map.owners.size(); ++shard) {
    if (scheduler->map.owners[shard].server_rank != rank) continue;
    servers[next]->TakeOver(*servers[rank], shard);
    scheduler->map.owners[shard].server_rank = next;
  }
  KillServer(rank, "not heard for 10s");
}

void TestCluster::ExpectNoHoles() {
  for (const std::unique_ptr<ScriptedServer>& server : servers) {
    std::map<std::uint32_t, std::set<std::uint64_t>> seen;
    for (const ScriptedServer::Seen& one : server->admitted) {
      EXPECT_TRUE(seen[one.request.id.shard].insert(one.request.id.sequence).second);
    }
    for (const auto& [shard, numbers] : seen) EXPECT_EQ(*numbers.rbegin(), numbers.size());
  }
}

}  // namespace leeway::worker
