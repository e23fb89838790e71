#include "ps/testing/test_support.h"

#include <gtest/gtest.h>

#include <span>
#include <utility>
#include <variant>

#include "proto/encoding/encoding.h"
#include "proto/messages/layout.h"

namespace leeway::ps {

// ---- FakeVan ----

absl::StatusOr<std::string> FakeVan::Listen(absl::string_view address) {
  return std::string(address);
}

absl::StatusOr<van::PeerId> FakeVan::Connect(absl::string_view, absl::Duration) {
  return absl::UnimplementedError("connects to nobody");
}

absl::Status FakeVan::Send(van::PeerId peer, van::Message message, van::SendDone) {
  if (dropped_.contains(peer)) return absl::FailedPreconditionError("no such peer");
  for (const runtime::Buffer& frame : message.payload) {
    if (frame.size() > message_bytes_max) return absl::InvalidArgumentError("a frame is too long");
  }
  sent_[peer].push_back(std::move(message));
  return absl::OkStatus();
}

void FakeVan::Disconnect(van::PeerId peer, absl::Status why) { dropped_[peer] = std::move(why); }

std::string FakeVan::AddressOf(van::PeerId peer) const {
  return absl::StrCat("fake://peer/", peer);
}

std::vector<van::Message> FakeVan::TakeSent(van::PeerId peer) {
  return std::exchange(sent_[peer], {});
}

std::optional<absl::Status> FakeVan::Dropped(van::PeerId peer) const {
  auto it = dropped_.find(peer);
  if (it == dropped_.end()) return std::nullopt;
  return it->second;
}

std::unique_ptr<van::Van> FakeFactory::New(runtime::Loop*, const van::Identity& identity,
                                           const van::Limits&, van::Handler* handler) {
  auto made = std::make_unique<FakeVan>(handler);
  made->SetIdentity(identity);
  last = made.get();
  return made;
}

// ---- Answer ----

const proto::Reply& Answer::reply() const { return std::get<proto::Reply>(message); }

std::vector<float> Answer::floats() const {
  if (payload.empty()) return {};
  const std::span<const float> values = payload.back().as<float>();
  return {values.begin(), values.end()};
}

std::string Answer::text() const { return std::string(payload.at(0).text()); }

// ---- Bench ----

Bench::Bench(Options options)
    : options_(options),
      host_(world_.NewHost("server")),
      runner_(host_->Spawn("data")),
      table_memory_(options.table_bytes_max) {
  DataThread::Setup setup;
  setup.config.held_bytes_max = options.held_bytes_max;
  setup.config.message_bytes_max = options.message_bytes_max;
  setup.incarnation = 5;
  setup.loop = runner_->loop();
  setup.factory = &factory_;
  setup.options.test_only_never_hold = options.never_hold;
  setup.table_memory = &table_memory_;
  thread_ = std::make_unique<DataThread>(setup);
  van().message_bytes_max = options.message_bytes_max;

  proto::Welcome welcome;
  welcome.node = 2;
  welcome.cluster = kCluster;
  welcome.block_bytes = kBlock * sizeof(float);
  thread_->SetPlace(welcome);

  map.epoch = 1;
  map.owners.assign(options.num_shards, {});
  map.servers.push_back({.node = 2});
  for (std::uint32_t rank = 0; rank < options.num_workers; ++rank) {
    map.workers.push_back({.node = 10 + rank, .rank = rank, .incarnation = IncarnationOf(rank)});
    Disconnect(rank, /*connect_again=*/true);
  }
  Publish();
}

std::uint32_t Bench::Install(const TableSpec& spec) {
  absl::StatusOr<std::unique_ptr<Updater>> updater = MakeUpdater(spec);
  EXPECT_TRUE(updater.ok()) << updater.status();
  const std::uint32_t id = ++tables_;
  if (spec.consistency.is_bsp()) held_tables_.insert(id);
  const absl::Status installed = thread_->InstallTable(id, spec, *std::move(updater));
  EXPECT_TRUE(installed.ok()) << installed;
  return id;
}

void Bench::Publish() {
  ++map.version;
  thread_->TakeMap(std::make_shared<const proto::ClusterMap>(map));
}

void Bench::SetState(std::uint32_t rank, proto::WorkerState state) {
  map.workers[rank].state = state;
  Publish();
}

van::PeerId Bench::ConnectAs(const van::Identity& identity) {
  const van::PeerId peer = ++last_peer_;
  van().handler()->OnPeerUp(peer, identity);
  return peer;
}

void Bench::Disconnect(std::uint32_t rank, bool connect_again) {
  if (auto it = peers_.find(rank); it != peers_.end()) {
    van().handler()->OnPeerDown(it->second, absl::UnavailableError("cut"));
    peers_.erase(it);
  }
  if (!connect_again) return;
  peers_[rank] = ConnectAs({.role = Role::kWorker,
                            .node = map.workers[rank].node,
                            .incarnation = map.workers[rank].incarnation,
                            .cluster = kCluster,
                            .capabilities = 0});
}

void Bench::Number(proto::Request* request) {
  Numbers& numbers = numbers_[request->id.worker][request->id.shard];
  const bool held = held_tables_.contains(request->table);
  request->id.sequence = ++numbers.last;
  request->after = std::exchange(numbers.last_of_class[held], request->id.sequence);
}

proto::Request Bench::DensePush(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                                std::uint64_t block) {
  proto::Request request = DensePull(rank, table, clock, block);
  request.op = proto::Op::kPush;
  return request;
}

proto::Request Bench::DensePull(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                                std::uint64_t block) {
  proto::Request request;
  request.id.worker = rank;
  request.id.incarnation = map.workers[rank].incarnation;
  request.id.shard = proto::ShardOfBlock(table, block, options_.num_shards);
  request.epoch = map.epoch;
  request.table = table;
  Number(&request);
  request.op = proto::Op::kPull;
  request.clock = clock;
  request.block = block;
  request.elements = kBlock;
  return request;
}

proto::Request Bench::SparsePull(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                                 std::uint32_t shard, std::uint64_t keys) {
  proto::Request request;
  request.id.worker = rank;
  request.id.incarnation = map.workers[rank].incarnation;
  request.id.shard = shard;
  request.epoch = map.epoch;
  request.table = table;
  Number(&request);
  request.kind = TableKind::kSparse;
  request.op = proto::Op::kPull;
  request.clock = clock;
  request.keys = keys;
  return request;
}

Payload Bench::Values(const std::vector<float>& values) {
  return {runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float))};
}

Payload Bench::Keys(const std::vector<std::uint64_t>& keys) {
  return {runtime::Buffer::CopyOf(keys.data(), keys.size() * sizeof(std::uint64_t))};
}

void Bench::Send(std::uint32_t rank, const proto::AnyMessage& message, Payload payload) {
  SendFrom(PeerOf(rank), message, std::move(payload));
}

void Bench::SendFrom(van::PeerId peer, const proto::AnyMessage& message, Payload payload) {
  SendRaw(peer, {.header = proto::Encode(message), .payload = std::move(payload)});
}

void Bench::SendRaw(van::PeerId peer, van::Message message) {
  van().handler()->OnMessage(peer, std::move(message));
}

void Bench::Tick(std::uint32_t rank, std::uint64_t clock) {
  proto::ClockTick tick;
  tick.worker = rank;
  tick.incarnation = map.workers[rank].incarnation;
  tick.epoch = map.epoch;
  tick.clock = clock;
  for (const auto& [shard, numbers] : numbers_[rank]) {
    for (const bool held : {false, true}) {
      const std::uint64_t last = numbers.last_of_class[held];
      if (last != 0) tick.watermarks.push_back({.sequence = last, .shard = shard, .held = held});
    }
  }
  Send(rank, tick);
}

std::vector<Answer> Bench::TakeFrom(van::PeerId peer) {
  std::vector<Answer> answers = std::exchange(receiver_[peer], {});
  for (van::Message& message : van().TakeSent(peer)) {
    absl::StatusOr<proto::AnyMessage> decoded = proto::Decode(
        message.header, std::span<runtime::Buffer>(message.payload.data(), message.payload.size()));
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    if (!decoded.ok()) continue;
    if (const auto* acks = std::get_if<proto::PushAcks>(&*decoded)) {
      for (const proto::PushAck& ack : acks->acks) answers.push_back({ReplyOf(*acks, ack), {}});
    } else {
      answers.push_back({*std::move(decoded), std::move(message.payload)});
    }
  }
  return answers;
}

Answer Bench::TakeReply(std::uint32_t rank) {
  std::vector<Answer> answers = Take(rank);
  std::erase_if(answers, [](const Answer& answer) {
    return std::holds_alternative<proto::ClockAck>(answer.message);
  });
  EXPECT_EQ(answers.size(), 1u) << "replies of worker " << rank;
  if (answers.size() != 1) return {proto::Reply{.result = absl::InternalError("none")}, {}};
  return std::move(answers[0]);
}

bool Bench::GotReply(std::uint32_t rank) {
  std::vector<Answer> answers = Take(rank);
  bool got = false;
  for (const Answer& answer : answers) {
    got = got || std::holds_alternative<proto::Reply>(answer.message);
  }
  receiver_[PeerOf(rank)] = std::move(answers);
  return got;
}

absl::Status Bench::PushNow(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                            float value, std::uint64_t block) {
  Send(rank, DensePush(rank, table, clock, block), Filled(value));
  return TakeReply(rank).reply().result;
}

std::vector<float> Bench::PullNow(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                                  std::uint64_t block) {
  Send(rank, DensePull(rank, table, clock, block));
  const Answer answer = TakeReply(rank);
  EXPECT_TRUE(answer.reply().result.ok()) << answer.reply().result;
  return answer.floats();
}

TableSpec AddTable(const std::string& name, const Consistency& consistency) {
  TableSpec spec = TableSpec::Dense(name, {2 * Bench::kBlock});
  spec.consistency = consistency;
  return spec;
}

}  // namespace leeway::ps
