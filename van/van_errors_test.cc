// What goes wrong, over every transport: whoever breaks the rules is told, dropped and counted,
// and nobody else notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "van/session_van.h"
#include "van/test_world.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

// A transport whose process dies: from one moment on nothing it says leaves.
class MortalTransport final : public Transport {
 public:
  MortalTransport(std::unique_ptr<Transport> transport, std::shared_ptr<bool> dead)
      : transport_(std::move(transport)), dead_(std::move(dead)) {}
  void Start(TransportEvents* events) override { transport_->Start(events); }
  absl::StatusOr<std::string> Listen(absl::string_view address) override {
    return transport_->Listen(address);
  }
  absl::StatusOr<ConnId> Dial(absl::string_view address) override {
    return transport_->Dial(address);
  }
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override {
    if (!*dead_) transport_->Send(conn, prefix, std::move(message), std::move(done));
  }
  void Close(ConnId conn) override { transport_->Close(conn); }
  std::string AddressOf(ConnId conn) const override { return transport_->AddressOf(conn); }
  bool lossy() const override { return transport_->lossy(); }

 private:
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<bool> dead_;
};

class MortalNode {
 public:
  MortalNode(TestWorld* world, const Identity& identity) : world_(world) {
    const int process = world->NewProcess();
    auto recorder = std::make_unique<Recorder>();
    auto van = std::make_unique<SessionVan>(
        world->loop(process), identity, Limits(), recorder.get(),
        std::make_unique<MortalTransport>(world->NewTransport(process, {}), dead_));
    node = std::make_unique<Node>(world, process, std::move(van), std::move(recorder));
  }
  void Die() {
    *dead_ = true;
    if (world_->network() != nullptr) world_->network()->Kill(absl::StrCat("host", node->process));
    node->van.reset();
  }
  std::unique_ptr<Node> node;

 private:
  TestWorld* world_;
  std::shared_ptr<bool> dead_ = std::make_shared<bool>(false);
};

class VanErrorsTest : public testing::TestWithParam<NetKind> {
 protected:
  void StartServer(const Limits& limits = {}) {
    Identity identity = IdentityOf(Role::kServer, 2);
    identity.cluster = 0xc1;
    server_ = std::make_unique<Node>(world_.get(), identity, limits);
    server_->recorder->on_message = [this](PeerId peer, Message message) {
      EXPECT_TRUE(server_->van->Send(peer, std::move(message)).ok());
    };
    address_ = server_->Listen();
    friend_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
    friend_peer_ = friend_->ConnectTo(server_.get(), address_);
  }
  RawPeer NewRaw() {
    const int process = world_->NewProcess();
    return RawPeer(world_->NewTransport(process, {}));
  }
  proto::Hello GoodHello() {
    proto::Hello hello;
    hello.role = Role::kWorker;
    hello.node = 99;
    hello.incarnation = 1;
    return hello;
  }
  bool RunUntil(const std::function<bool()>& done) { return world_->RunUntil(done); }
  // The peer that was there all the while is served as before.
  void ExpectFriendUnharmed() {
    const std::size_t before = friend_->recorder->messages.size();
    ASSERT_TRUE(friend_->van->Send(friend_peer_, TextMessage("still there?")).ok());
    EXPECT_TRUE(RunUntil([&] { return friend_->recorder->messages.size() == before + 1; }));
    EXPECT_TRUE(friend_->recorder->downs.empty());
    EXPECT_EQ(friend_->van->counters().offenders_dropped, 0u);
  }
  // The offender hears why and is cut off if it does not go by itself.
  void ExpectBanned(RawPeer* raw, absl::StatusCode code, const std::string& why) {
    ASSERT_TRUE(RunUntil([&] { return !raw->Rejection().ok(); }));
    EXPECT_EQ(raw->Rejection().code(), code) << raw->Rejection();
    EXPECT_THAT(std::string(raw->Rejection().message()), HasSubstr(why));
    if (GetParam() != NetKind::kInproc) {
      EXPECT_TRUE(RunUntil([&] { return !raw->closed.empty(); }));
    }
    ExpectFriendUnharmed();
  }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(GetParam());
  std::unique_ptr<Node> server_, friend_;
  std::string address_;
  PeerId friend_peer_ = 0;
};

// ---- hello ----

TEST_P(VanErrorsTest, AWrongProtocolVersionIsRefused) {
  StartServer();
  RawPeer raw = NewRaw();
  proto::Hello hello = GoodHello();
  hello.protocol = 99;
  hello.protocol_min = 98;
  raw.Greet(world_.get(), address_, hello);
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "protocol version 99");
  EXPECT_THAT(std::string(raw.Rejection().message()), HasSubstr("version 1 "));
  EXPECT_EQ(server_->van->counters().refused_versions, 1u);
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
}

TEST_P(VanErrorsTest, ANewerVersionThatUnderstandsOursIsWelcome) {
  StartServer();
  RawPeer raw = NewRaw();
  proto::Hello hello = GoodHello();
  hello.protocol = 99;
  hello.protocol_min = 1;
  raw.Greet(world_.get(), address_, hello);
  EXPECT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 2; }));
}

TEST_P(VanErrorsTest, TheSideThatDialsRefusesAWrongVersionToo) {
  const int process = world_->NewProcess();
  RawPeer raw(world_->NewTransport(process, {}));
  const std::string address = raw.transport().Listen(world_->AnyAddress(process)).value();
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.van->Connect(address, absl::Seconds(30)).value();
  ASSERT_TRUE(RunUntil([&] { return !raw.heard.empty(); }));
  proto::Hello hello = GoodHello();
  hello.protocol = hello.protocol_min = 7;
  raw.SendSession(raw.accepted.at(0), hello);
  ASSERT_TRUE(RunUntil([&] { return worker.recorder->IsDown(peer); }));
  EXPECT_EQ(worker.recorder->WhyDown(peer).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()), HasSubstr("version 7"));
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()), HasSubstr(address));
  EXPECT_TRUE(RunUntil([&] { return !raw.Rejection().ok(); }));
  EXPECT_EQ(worker.van->counters().refused_versions, 1u);
}

TEST_P(VanErrorsTest, AnotherClusterIsRefused) {
  StartServer();
  RawPeer raw = NewRaw();
  proto::Hello hello = GoodHello();
  hello.cluster = 0xc2;
  raw.Greet(world_.get(), address_, hello);
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "cluster");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
}

TEST_P(VanErrorsTest, AMessageBeforeTheHelloIsAnOffence) {
  StartServer();
  RawPeer raw = NewRaw();
  const ConnId conn = raw.transport().Dial(address_).value();
  ASSERT_TRUE(RunUntil([&] { return !raw.opened.empty(); }));
  raw.SendData(conn, "hello? no");
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "before its hello");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  EXPECT_EQ(server_->van->counters().malformed_messages, 1u);
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
}

TEST_P(VanErrorsTest, ARepeatedHelloIsAnsweredAgain) {
  StartServer();
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  raw.SendSession(conn, GoodHello());
  ASSERT_TRUE(RunUntil([&] { return raw.heard.size() == 2; }));
  EXPECT_TRUE(std::holds_alternative<proto::Hello>(raw.heard[1]));
  EXPECT_EQ(server_->recorder->ups.size(), 2u);
}

TEST_P(VanErrorsTest, ASecondDifferentHelloIsAnOffence) {
  StartServer();
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  proto::Hello other = GoodHello();
  other.node = 98;
  raw.SendSession(conn, other);
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "second");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  ASSERT_EQ(server_->recorder->downs.size(), 1u);
  EXPECT_FALSE(server_->recorder->downs[0].why.ok());
}

TEST_P(VanErrorsTest, SilenceIsCutOff) {
  Limits limits;
  limits.hello_timeout = absl::Milliseconds(200);
  StartServer(limits);
  if (GetParam() == NetKind::kInproc) return;  // nothing shows there before the first message
  RawPeer raw = NewRaw();
  ASSERT_TRUE(raw.transport().Dial(address_).ok());
  ASSERT_TRUE(RunUntil([&] { return !raw.closed.empty(); }));
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  ExpectFriendUnharmed();
}

TEST_P(VanErrorsTest, NoMorePeersThanAllowed) {
  Limits limits;
  limits.peers_max = 3;
  StartServer(limits);
  if (GetParam() == NetKind::kInproc) return;
  RawPeer a = NewRaw(), b = NewRaw(), c = NewRaw();
  a.Greet(world_.get(), address_, GoodHello());
  b.Greet(world_.get(), address_, GoodHello());
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 3; }));
  ASSERT_TRUE(c.transport().Dial(address_).ok());
  ASSERT_TRUE(RunUntil([&] { return !c.closed.empty(); }));
  EXPECT_TRUE(a.closed.empty() && b.closed.empty());
  ExpectFriendUnharmed();
  a.transport().Close(a.opened.at(0));  // makes room again
  RawPeer d = NewRaw();
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->downs.size() == 1; }));
  d.Greet(world_.get(), address_, GoodHello());
  EXPECT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 4; }));
}

// ---- malformed messages ----

TEST_P(VanErrorsTest, TooLongAFrameIsAnOffence) {
  Limits limits;
  limits.message_bytes_max = 1000;
  StartServer(limits);
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  raw.SendData(conn, "fits", {Buffer::CopyOf(std::string(1000, 'x'))});
  ASSERT_TRUE(RunUntil([&] { return server_->van->counters().messages_received == 1; }));
  raw.SendData(conn, "does not", {Buffer::CopyOf(std::string(1001, 'x'))});
  ExpectBanned(&raw, absl::StatusCode::kInvalidArgument, "LEEWAY_MESSAGE_BYTES_MAX");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
}

TEST_P(VanErrorsTest, TooManyFramesAreAnOffence) {
  Limits limits;
  limits.payload_frames_max = 2;
  StartServer(limits);
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  raw.SendData(conn, "m", std::vector<Buffer>(2, Buffer::CopyOf("x")));
  ASSERT_TRUE(RunUntil([&] { return server_->van->counters().messages_received == 1; }));
  raw.SendData(conn, "m", std::vector<Buffer>(3, Buffer::CopyOf("x")));
  ExpectBanned(&raw, absl::StatusCode::kInvalidArgument, "frames");
}

TEST_P(VanErrorsTest, EveryMalformedMessageIsAnOffence) {
  StartServer();
  struct Case {
    const char* why;
    Prefix prefix;
    Message message;
  };
  std::vector<Case> cases;
  cases.push_back({"unknown kind", {static_cast<Kind>(99), 0, 1, 0, 0}, TextMessage("m")});
  cases.push_back({"unknown kind", {static_cast<Kind>(0), 0, 1, 0, 0}, TextMessage("m")});
  cases.push_back({"frames", {Kind::kData, 0, 2, 0, 0}, TextMessage("m")});
  cases.push_back({"frames", {Kind::kData, 0, 0, 0, 0}, TextMessage("m")});
  cases.push_back({"frames", {Kind::kData, 0, 1, 0, 0}, TextMessage("m", {"payload"})});
  cases.push_back({"claims", {Kind::kData, 0, 1, 0, 1}, TextMessage("m")});
  cases.push_back({"claims", {Kind::kCredit, 0, 1, 0, ~0ull}, Message()});
  cases.push_back({"credit", {Kind::kCredit, 0, 1, 0, 0}, TextMessage("m")});
  cases.push_back({"control", {Kind::kSession, 0, 2, 0, 0}, TextMessage("m", {"payload"})});
  cases.push_back({"", {Kind::kSession, 0, 1, 0, 0}, TextMessage("no such header at all")});
  cases.push_back({"", {Kind::kSession, 0, 1, 0, 0}, TextMessage("")});
  std::uint64_t offenders = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    RawPeer raw = NewRaw();
    const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
    raw.transport().Send(conn, c.prefix, c.message, nullptr);
    ASSERT_TRUE(RunUntil([&] { return !raw.Rejection().ok(); }));
    EXPECT_THAT(std::string(raw.Rejection().message()), HasSubstr(c.why));
    EXPECT_EQ(server_->van->counters().malformed_messages, ++offenders);
    EXPECT_EQ(server_->van->counters().offenders_dropped, offenders);
    // Whatever it says now, even in order, is not heard.
    raw.SendData(conn, "please");
    world_->RunFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(server_->van->counters().messages_received, 0u);
  ExpectFriendUnharmed();
}

TEST_P(VanErrorsTest, AnOffenderTheRoleFindsIsToldWhy) {
  StartServer();
  Node worker(world_.get(), IdentityOf(Role::kWorker, 4));
  const PeerId peer = worker.ConnectTo(server_.get(), address_);
  const PeerId offender = server_->recorder->ups.back().peer;
  server_->recorder->in_van_call = true;
  server_->van->Disconnect(offender, absl::InvalidArgumentError("table 7 has no such key"));
  server_->van->Disconnect(offender, absl::OkStatus());  // no longer there
  server_->recorder->in_van_call = false;
  ASSERT_TRUE(RunUntil(
      [&] { return worker.recorder->IsDown(peer) && server_->recorder->IsDown(offender); }));
  EXPECT_EQ(worker.recorder->WhyDown(peer).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()),
              HasSubstr("table 7 has no such key"));
  EXPECT_EQ(server_->recorder->WhyDown(offender).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  ExpectFriendUnharmed();
}

// ---- what Send refuses ----

TEST_P(VanErrorsTest, SendRefusesWhatIsOverALimit) {
  StartServer();
  Limits limits;
  limits.message_bytes_max = 1000;
  limits.payload_frames_max = 2;
  limits.send_queue_bytes_max = 5000;
  Node worker(world_.get(), IdentityOf(Role::kWorker, 4), limits);
  DoneProbe done;
  const auto send = [&](PeerId peer, std::vector<std::string> payload) {
    return worker.van->Send(peer, TextMessage("m", payload), done.New());
  };
  EXPECT_EQ(send(12345, {}).code(), absl::StatusCode::kFailedPrecondition);
  const PeerId peer = worker.van->Connect(address_, absl::Seconds(30)).value();
  EXPECT_EQ(send(peer, {std::string(1001, 'x')}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(send(peer, {"a", "b", "c"}).code(), absl::StatusCode::kInvalidArgument);
  int taken = 0;
  absl::Status full;
  while ((full = send(peer, {std::string(900, 'x')})).ok()) ++taken;
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("send_queue_bytes_max"));
  EXPECT_EQ(taken, 5);
  EXPECT_EQ(done.state().dropped, 4) << "a send that fails does not report";
  ASSERT_TRUE(RunUntil([&] { return done.state().called == 5; }));
  EXPECT_TRUE(send(peer, {std::string(900, 'x')}).ok()) << "there is room again";
}

// ---- addresses ----

TEST_P(VanErrorsTest, AnAddressInUseIsNamed) {
  StartServer();
  Node other(world_.get(), IdentityOf(Role::kServer, 5));
  const auto taken =
      GetParam() == NetKind::kSim ? server_->van->Listen(address_) : other.van->Listen(address_);
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kAlreadyExists) << taken.status();
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(address_));
  ExpectFriendUnharmed();
}

TEST_P(VanErrorsTest, SenselessAddressesAreRefused) {
  Node node(world_.get(), IdentityOf(Role::kServer, 5));
  std::vector<std::string> senseless = {
      "",           "tcp",          "tcp://",           "tcp://127.0.0.1", "tcp://127.0.0.1:",
      "ipc://",     "inproc://",    "http://localhost", "sim://",          "tcp://127.0.0.1:65536",
      "sim://x",    "tcp://a b:80", "tcp://::1:80",     "tcp://h:-1",      "tcp://h:8o",
      "tcp://h:80x"};
  senseless.push_back("ipc://" + std::string(200, 'p'));
  for (const std::string& address : senseless) {
    EXPECT_EQ(node.van->Listen(address).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
    EXPECT_EQ(node.van->Connect(address, absl::Seconds(1)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST_P(VanErrorsTest, AnUnknownHostIsReportedAtOnce) {
  if (GetParam() == NetKind::kIpc || GetParam() == NetKind::kInproc) return;
  Node node(world_.get(), IdentityOf(Role::kServer, 5));
  const std::string address = GetParam() == NetKind::kSim ? "sim://no-such-host.invalid/1"
                                                          : "tcp://no-such-host.invalid:4000";
  EXPECT_EQ(node.van->Connect(address, absl::Seconds(30)).status().code(),
            absl::StatusCode::kNotFound);
  const auto bound = node.van->Listen(address);
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("no-such-host.invalid"));
}

TEST_P(VanErrorsTest, ConnectingTimesOut) {
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  Node nobody(world_.get(), IdentityOf(Role::kServer, 2));
  std::string address = nobody.Listen();
  nobody.van.reset();
  const PeerId peer = worker.van->Connect(address, absl::Milliseconds(300)).value();
  DoneProbe done;
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("m"), done.New()).ok());
  ASSERT_TRUE(RunUntil([&] { return worker.recorder->IsDown(peer); }));
  const absl::Status why = worker.recorder->WhyDown(peer);
  EXPECT_EQ(why.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(why.message()), HasSubstr(address));
  EXPECT_THAT(std::string(why.message()), HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS"));
  EXPECT_EQ(done.state().called, 1);
  EXPECT_EQ(done.state().results[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(worker.van->Send(peer, TextMessage("m")).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(VanErrorsTest, OneThatAcceptsButNeverAnswersTimesOutToo) {
  const int process = world_->NewProcess();
  RawPeer mute(world_->NewTransport(process, {}));
  const std::string address = mute.transport().Listen(world_->AnyAddress(process)).value();
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.van->Connect(address, absl::Milliseconds(700)).value();
  ASSERT_TRUE(RunUntil([&] { return worker.recorder->IsDown(peer); }));
  EXPECT_EQ(worker.recorder->WhyDown(peer).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()), HasSubstr("does not answer"));
}

// ---- death ----

TEST_P(VanErrorsTest, AServerThatDiesIsNoticed) {
  MortalNode server(world_.get(), IdentityOf(Role::kServer, 2));
  Limits small;
  small.send_window_bytes = 10'000;
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3), small);
  const PeerId peer = worker.ConnectTo(server.node.get(), server.node->Listen());
  world_->Freeze(server.node->process);
  DoneProbe done;
  auto live = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 10; ++i) {
    Message message = TextMessage("m");
    message.payload.push_back(TrackedBuffer(5000, 'x', live));
    ASSERT_TRUE(worker.van->Send(peer, std::move(message), done.New()).ok());
  }
  server.Die();
  ASSERT_TRUE(RunUntil([&] { return worker.recorder->IsDown(peer); }));
  EXPECT_EQ(worker.recorder->WhyDown(peer).code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(RunUntil([&] { return done.state().called == 10 && *live == 0; }));
  EXPECT_EQ(done.state().dropped, 0);
  EXPECT_EQ(done.state().results.back().code(), absl::StatusCode::kUnavailable);
}

TEST_P(VanErrorsTest, AWorkerThatDiesIsNoticed) {
  StartServer();
  MortalNode worker(world_.get(), IdentityOf(Role::kWorker, 4));
  worker.node->ConnectTo(server_.get(), address_);
  const PeerId peer = server_->recorder->ups.back().peer;
  worker.Die();
  if (GetParam() == NetKind::kInproc) {
    // Within a process nothing breaks; it shows when there is something to say.
    world_->RunFor(absl::Milliseconds(20));
    ASSERT_TRUE(server_->van->Send(peer, TextMessage("anyone?")).ok());
  }
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->IsDown(peer); }));
  EXPECT_EQ(server_->recorder->WhyDown(peer).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_->van->counters().offenders_dropped, 0u);
  ExpectFriendUnharmed();
}

INSTANTIATE_TEST_SUITE_P(Nets, VanErrorsTest,
                         testing::Values(NetKind::kTcp, NetKind::kIpc, NetKind::kInproc,
                                         NetKind::kSim),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
