// A whole server in the simulator, under a scheduler that the test plays.
#include "ps/control/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "proto/encoding/encoding.h"
#include "proto/messages/layout.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"

namespace leeway::ps {
namespace {

using testing::HasSubstr;

// A process with one van that keeps everything it hears.
class Party : private van::Handler {
 public:
  Party(runtime::SimWorld* world, van::SimNetwork* network, const std::string& name,
        const van::Identity& identity)
      : host_(world->NewHost(name)),
        factory_(network->NewFactory(name)),
        runner_(host_->Spawn("loop")),
        van_(factory_->New(runner_->loop(), identity, {}, this)) {}
  // The van goes before the loop it lives on.
  ~Party() override { van_.reset(); }

  van::Van* operator->() { return van_.get(); }
  std::string Listen() {
    absl::StatusOr<std::string> address = van_->Listen(factory_->AnyAddress(""));
    EXPECT_TRUE(address.ok()) << address.status();
    return address.value_or("");
  }
  van::PeerId Connect(const std::string& address) {
    absl::StatusOr<van::PeerId> peer = van_->Connect(address, absl::Seconds(5));
    EXPECT_TRUE(peer.ok()) << peer.status();
    return peer.value_or(0);
  }
  void Send(van::PeerId peer, const proto::AnyMessage& message,
            std::vector<runtime::Buffer> payload = {}) {
    van::Message raw{.header = proto::Encode(message), .payload = {}};
    for (runtime::Buffer& frame : payload) raw.payload.push_back(std::move(frame));
    EXPECT_TRUE(van_->Send(peer, std::move(raw)).ok());
  }

  template <class T>
  struct Heard {
    van::PeerId peer;
    T message;
    std::vector<runtime::Buffer> payload;
  };
  template <class T>
  std::vector<Heard<T>> All() const {
    std::vector<Heard<T>> all;
    for (const auto& [peer, any, payload] : heard_) {
      if (const T* one = std::get_if<T>(&any)) all.push_back({peer, *one, payload});
    }
    return all;
  }
  template <class T>
  std::size_t Count() const {
    return All<T>().size();
  }

  // Called for each message as it comes.
  std::function<void(van::PeerId, const proto::AnyMessage&)> on_message;
  std::map<van::PeerId, absl::Status> down;

 private:
  void OnPeerUp(van::PeerId, const van::Identity&) override {}
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override { down[peer] = why; }
  void OnMessage(van::PeerId peer, van::Message raw) override {
    absl::StatusOr<proto::AnyMessage> any =
        proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
    ASSERT_TRUE(any.ok()) << any.status();
    heard_.push_back({peer, *any, {raw.payload.begin(), raw.payload.end()}});
    if (on_message) on_message(peer, *any);
  }

  struct Entry {
    van::PeerId peer;
    proto::AnyMessage message;
    std::vector<runtime::Buffer> payload;
  };
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<van::Van> van_;
  std::vector<Entry> heard_;
};

constexpr std::uint64_t kCluster = 77;
constexpr std::uint32_t kThreads = 3;

class ServerTest : public testing::Test {
 protected:
  ServerTest()
      : scheduler_(&world_, &network_, "scheduler", {Role::kScheduler, 1, 900, kCluster, 0}),
        host_(world_.NewHost("server")),
        factory_(network_.NewFactory("server")) {
    config_.role = Role::kServer;
    config_.scheduler = scheduler_.Listen();
    config_.server_threads = kThreads;
    scheduler_.on_message = [this](van::PeerId peer, const proto::AnyMessage& message) {
      AsScheduler(peer, message);
    };
  }

  void AsScheduler(van::PeerId peer, const proto::AnyMessage& message) {
    if (std::holds_alternative<proto::Join>(message)) {
      server_peer_ = peer;
      scheduler_.Send(peer, proto::Welcome{.node = 2,
                                           .rank = 0,
                                           .cluster = kCluster,
                                           .num_servers = 1,
                                           .num_workers = 1,
                                           .heartbeat_interval_ms = 1000,
                                           .failure_timeout_ms = 10000,
                                           .block_bytes = 4096});
    } else if (const auto* beat = std::get_if<proto::Heartbeat>(&message)) {
      scheduler_.Send(peer, proto::HeartbeatAck{beat->number});
    } else if (std::holds_alternative<proto::Leave>(message)) {
      scheduler_.Send(peer, proto::LeaveAck{});
    }
  }

  void StartServer() {
    server_ = std::make_unique<Server>(Server::Setup{.config = config_,
                                                     .host = host_.get(),
                                                     .factory = factory_.get(),
                                                     .options = {},
                                                     .on_welcome = {}});
    server_->Start([this](absl::Status why) { over_ = std::move(why); });
  }

  void Until(const std::function<bool()>& done) {
    const absl::Status status = world_.RunUntil(done, absl::Seconds(60));
    ASSERT_TRUE(status.ok()) << status;
  }

  // The map of a cluster of this server and one worker, whose node is 3.
  proto::ClusterMap Map(std::uint64_t version) {
    proto::ClusterMap map;
    map.version = version;
    map.epoch = 1;
    for (std::uint32_t shard = 0; shard < 6; ++shard) map.owners.push_back({0, shard % kThreads});
    map.servers.push_back({.node = 2,
                           .rank = 0,
                           .alive = true,
                           .endpoints = scheduler_.All<proto::Join>().at(0).message.endpoints});
    map.workers.push_back({.node = 3, .rank = 0, .incarnation = 33});
    return map;
  }

  runtime::SimWorld world_{7};
  van::SimNetwork network_{&world_};
  Party scheduler_;
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<van::Factory> factory_;
  Config config_;
  std::unique_ptr<Server> server_;
  van::PeerId server_peer_ = 0;
  std::optional<absl::Status> over_;
};

// The scheduler keeps the last report of a server.
TEST_F(ServerTest, ReportsTheShardsOfAllItsThreadsTogether) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  scheduler_.Send(server_peer_, Map(4));
  const auto newest = [&] {
    const auto reports = scheduler_.All<proto::LoadReport>();
    return reports.empty() ? std::size_t{0} : reports.back().message.shards.size();
  };
  Until([&] { return newest() == 6; });
  const std::size_t before = scheduler_.Count<proto::LoadReport>();
  world_.RunFor(absl::Seconds(5));
  EXPECT_LE(scheduler_.Count<proto::LoadReport>() - before, 6u);  // one each heartbeat interval
  EXPECT_EQ(newest(), 6u);
  proto::ClusterMap moved = Map(5);
  moved.epoch = 2;
  for (proto::ShardOwner& owner : moved.owners) owner = {proto::kNoServer, 0};
  scheduler_.Send(server_peer_, moved);
  Until([&] { return newest() == 0; });
}

TEST_F(ServerTest, ServesFromJoiningToTheEnd) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  const proto::ClusterMap map = Map(4);
  const std::set<std::string> endpoints(map.servers[0].endpoints.begin(),
                                        map.servers[0].endpoints.end());
  EXPECT_EQ(endpoints.size(), kThreads);

  scheduler_.Send(server_peer_, map);
  Until([&] { return scheduler_.Count<proto::MapAck>() > 0; });
  EXPECT_EQ(scheduler_.All<proto::MapAck>()[0].message.version, 4u);

  TableSpec spec = TableSpec::Dense("w", {5000});
  scheduler_.Send(server_peer_, proto::InstallTable{1, spec});
  Until([&] { return scheduler_.Count<proto::InstallTableReply>() == 1; });
  EXPECT_TRUE(scheduler_.All<proto::InstallTableReply>()[0].message.result.ok());

  // A worker pushes each block to the thread that owns it, closes the clock and reads it back.
  Party worker(&world_, &network_, "worker", {Role::kWorker, 3, 33, kCluster, 0});
  std::vector<van::PeerId> threads;
  for (const std::string& endpoint : map.servers[0].endpoints) {
    threads.push_back(worker.Connect(endpoint));
  }
  std::map<std::uint32_t, std::uint64_t> sequences;
  auto request = [&](proto::Op op, std::uint64_t clock, std::uint64_t block) {
    proto::Request made;
    made.id = {
        .incarnation = 33, .sequence = 0, .worker = 0, .shard = proto::ShardOfBlock(1, block, 6)};
    made.after = sequences[made.id.shard];
    made.id.sequence = ++sequences[made.id.shard];
    made.epoch = 1;
    made.table = 1;
    made.op = op;
    made.clock = clock;
    made.block = block;
    made.elements = proto::ElementsInBlock(spec, 4096, block);
    return made;
  };
  const std::uint64_t blocks = proto::NumBlocks(spec, 4096);
  ASSERT_EQ(blocks, 5u);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const proto::Request push = request(proto::Op::kPush, 0, block);
    const std::vector<float> values(push.elements, static_cast<float>(block + 1));
    worker.Send(threads[map.owners[push.id.shard].thread], push,
                {runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float))});
  }
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    proto::ClockTick tick{.worker = 0, .incarnation = 33, .epoch = 1, .clock = 1};
    for (const auto& [shard, sequence] : sequences) {
      if (map.owners[shard].thread == thread)
        tick.watermarks.push_back({.sequence = sequence, .shard = shard, .held = true});
    }
    worker.Send(threads[thread], tick);
  }
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const proto::Request pull = request(proto::Op::kPull, 1, block);
    worker.Send(threads[map.owners[pull.id.shard].thread], pull);
  }
  Until([&] { return worker.Count<proto::Reply>() == 2 * blocks; });
  float sum = 0;
  for (const auto& heard : worker.All<proto::Reply>()) {
    EXPECT_TRUE(heard.message.result.ok()) << heard.message.result;
    if (heard.message.op != proto::Op::kPull) continue;
    EXPECT_EQ(heard.message.staleness, 0u);
    for (float value : heard.payload.at(0).as<float>()) sum += value;
  }
  EXPECT_EQ(sum, 1024 * (1 + 2 + 3 + 4) + 904 * 5);
  EXPECT_EQ(worker.Count<proto::ClockAck>(), kThreads);

  scheduler_.Send(server_peer_, proto::Shutdown{});
  Until([&] { return over_.has_value(); });
  EXPECT_TRUE(over_->ok()) << *over_;
}

TEST_F(ServerTest, TablesThatCannotBeAreRefusedWithTheReason) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  TableSpec unknown = TableSpec::Dense("a", {10});
  unknown.updater.name = "no_such_updater";
  TableSpec conflicting = TableSpec::Dense("c", {10});
  scheduler_.Send(server_peer_, proto::InstallTable{1, unknown});
  scheduler_.Send(server_peer_, proto::InstallTable{2, conflicting});
  scheduler_.Send(server_peer_, proto::InstallTable{2, conflicting});
  conflicting.shape = {11};
  scheduler_.Send(server_peer_, proto::InstallTable{2, conflicting});
  Until([&] { return scheduler_.Count<proto::InstallTableReply>() == 4; });
  std::size_t equal = 0;
  for (const auto& heard : scheduler_.All<proto::InstallTableReply>()) {
    const absl::Status& result = heard.message.result;
    if (heard.message.table == 1) {
      EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);  // not: there is no such table
      EXPECT_THAT(result.message(), HasSubstr("no_such_updater"));
    } else if (result.ok()) {
      ++equal;
    } else {
      EXPECT_EQ(result.code(), absl::StatusCode::kAlreadyExists);
    }
  }
  EXPECT_EQ(equal, 2u);
}

TEST_F(ServerTest, ATableThatAnotherServerDidNotTakeIsForgotten) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  scheduler_.Send(server_peer_, proto::InstallTable{1, TableSpec::Dense("w", {10})});
  Until([&] { return scheduler_.Count<proto::InstallTableReply>() == 1; });
  scheduler_.Send(server_peer_,
                  proto::InstallTableReply{1, absl::NotFoundError("server 1 has no updater 'x'")});
  // It is a new one now: no conflict.
  scheduler_.Send(server_peer_, proto::InstallTable{1, TableSpec::Dense("w", {11})});
  Until([&] { return scheduler_.Count<proto::InstallTableReply>() == 2; });
  const auto answers = scheduler_.All<proto::InstallTableReply>();
  EXPECT_TRUE(answers[1].message.result.ok()) << answers[1].message.result;
}

// All shards are on the second one, which has no room for them.
TEST_F(ServerTest, ATableThatOneThreadCannotTakeIsNotInstalled) {
  config_.table_bytes_max = 1000;
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  proto::ClusterMap map = Map(4);
  for (proto::ShardOwner& owner : map.owners) owner.thread = 1;
  scheduler_.Send(server_peer_, map);
  Until([&] { return scheduler_.Count<proto::MapAck>() > 0; });
  scheduler_.Send(server_peer_, proto::InstallTable{1, TableSpec::Dense("w", {10000})});
  Until([&] { return scheduler_.Count<proto::InstallTableReply>() == 1; });
  EXPECT_EQ(scheduler_.All<proto::InstallTableReply>()[0].message.result.code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ServerTest, AsksToBeDrainedUntilItIsAnswered) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  scheduler_.Send(server_peer_, Map(4));
  Until([&] { return scheduler_.Count<proto::MapAck>() > 0; });
  server_->Drain(absl::CancelledError("SIGTERM"));
  Until([&] { return scheduler_.Count<proto::Admin>() == 3; });
  EXPECT_THAT(scheduler_.All<proto::Admin>().back().message.arguments,
              ::testing::ElementsAre("server:0", "node:2"));
}

TEST_F(ServerTest, StoppingLeavesInOrder) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  world_.RunFor(absl::Seconds(3));
  server_->Stop(absl::CancelledError("enough"));
  Until([&] { return over_.has_value(); });
  EXPECT_EQ(*over_, absl::CancelledError("enough"));
  EXPECT_EQ(scheduler_.Count<proto::Leave>(), 1u);
}

TEST_F(ServerTest, StoppingBeforeAnythingHasHappenedEndsIt) {
  StartServer();
  server_->Stop(absl::CancelledError("enough"));
  Until([&] { return over_.has_value(); });
  EXPECT_EQ(scheduler_.Count<proto::Join>(), 0u);
}

TEST_F(ServerTest, StoppingBeforeItStartsEndsItAsWell) {
  server_ = std::make_unique<Server>(Server::Setup{.config = config_,
                                                   .host = host_.get(),
                                                   .factory = factory_.get(),
                                                   .options = {},
                                                   .on_welcome = {}});
  server_->Stop(absl::CancelledError("enough"));
  server_->Start([this](absl::Status why) { over_ = std::move(why); });
  Until([&] { return over_.has_value(); });
  EXPECT_EQ(*over_, absl::CancelledError("enough"));
}

TEST_F(ServerTest, FindsASchedulerThatCameBackElsewhereAndTellsItsWorkers) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  const proto::ClusterMap map = Map(1);
  scheduler_.Send(server_peer_, map);
  Party worker(&world_, &network_, "worker", {Role::kWorker, 3, 33, kCluster, 0});
  const std::string endpoint = map.servers[0].endpoints[0];
  const van::PeerId liar = worker.Connect(endpoint);
  Until([&] { return scheduler_.Count<proto::MapAck>() == 1; });
  network_.Cut("scheduler", "server");
  Party elsewhere(&world_, &network_, "elsewhere", {Role::kScheduler, 1, 901, kCluster, 0});
  elsewhere.on_message = [&](van::PeerId peer, const proto::AnyMessage& message) {
    if (std::holds_alternative<proto::Join>(message)) server_peer_ = peer;
  };
  const proto::SchedulerMoved moved{.address = elsewhere.Listen(), .cluster = kCluster};
  elsewhere.Send(elsewhere.Connect(endpoint), moved);
  Until([&] { return worker.Count<proto::SchedulerMoved>() == 1; });
  Party later(&world_, &network_, "later", {Role::kWorker, 4, 34, kCluster, 0});
  later.Connect(endpoint);
  Until([&] { return later.Count<proto::SchedulerMoved>() == 1; });
  Until([&] { return elsewhere.Count<proto::Join>() > 0; });
  EXPECT_FALSE(over_.has_value());
  // Nobody but a scheduler says so.
  worker.Send(liar, proto::SchedulerMoved{.address = "sim://worker/0", .cluster = kCluster});
  Until([&] { return worker.down.contains(liar); });
}

TEST_F(ServerTest, IsOverWhenTheSchedulerIsGoneForLong) {
  config_.scheduler_timeout = absl::Seconds(20);
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  world_.RunFor(absl::Seconds(3));
  network_.Cut("scheduler", "server");
  Until([&] { return over_.has_value(); });
  ASSERT_TRUE(over_.has_value());
  EXPECT_THAT(over_->message(), HasSubstr(config_.scheduler));
}

TEST_F(ServerTest, IsOverWhenItIsRefused) {
  scheduler_.on_message = [this](van::PeerId peer, const proto::AnyMessage& message) {
    if (std::holds_alternative<proto::Join>(message)) {
      scheduler_.Send(peer, proto::Refused{absl::AlreadyExistsError("no room")});
    }
  };
  StartServer();
  Until([&] { return over_.has_value(); });
  ASSERT_TRUE(over_.has_value());
  EXPECT_THAT(over_->message(), HasSubstr("no room"));
}

TEST_F(ServerTest, DestroyedInTheMiddleItJustEnds) {
  StartServer();
  Until([&] { return scheduler_.Count<proto::Join>() == 1; });
  server_.reset();
  world_.RunFor(absl::Seconds(5));
  EXPECT_FALSE(over_.has_value());
}

}  // namespace
}  // namespace leeway::ps
