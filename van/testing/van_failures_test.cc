// Tests of failures that are no offence: limits, addresses, timeouts and deaths, over every
// transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/monotonic_time.h"
#include "van/session/session_van.h"
#include "van/testing/errors_fixture.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

// A transport whose process dies: from one moment on nothing leaves it.
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

class VanFailuresTest : public VanErrorsTest {};

// ---- what Send refuses ----

TEST_P(VanFailuresTest, SendRefusesWhatIsOverALimit) {
  StartServer();
  Limits limits;
  limits.message_bytes_max = 1000;
  limits.payload_frames_max = 2;
  limits.send_queue = std::make_shared<runtime::SharedByteBudget>(10'000);  // half for one peer
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
  EXPECT_THAT(std::string(full.message()), HasSubstr("LEEWAY_SEND_QUEUE_BYTES_MAX"));
  EXPECT_EQ(taken, 5);
  EXPECT_EQ(done.state().dropped, 4) << "a send that fails does not report";
  ASSERT_TRUE(RunUntil([&] { return done.state().called == 5; }));
  EXPECT_TRUE(send(peer, {std::string(900, 'x')}).ok()) << "there is room again";
}

// If the window lets one message pass at a time, the others wait.
TEST_P(VanFailuresTest, MessagesThatHaveLeftTheQueueCountInItNoMore) {
  StartServer();
  Limits limits;
  limits.send_window_bytes = 1000;
  limits.send_queue = std::make_shared<runtime::SharedByteBudget>(10'000);  // half for one peer
  Node worker(world_.get(), IdentityOf(Role::kWorker, 4), limits);
  const PeerId peer = worker.van->Connect(address_, absl::Seconds(30)).value();
  DoneProbe done;
  int sent = 0;
  for (int round = 0; round < 4; ++round) {
    int taken = 0;  // more than those that wait, if a peer on the same host has taken some at once
    while (taken < 20 &&
           worker.van->Send(peer, TextMessage("m", {std::string(900, 'x')}), done.New()).ok()) {
      ++taken;
    }
    EXPECT_GE(taken, 5) << "round " << round;
    sent += taken;
    ASSERT_TRUE(RunUntil([&] { return done.state().called == sent; }));
  }
}

// Nothing is sent before the connection is up.
TEST_P(VanFailuresTest, MessagesForALostPeerAreChargedNoMore) {
  StartServer();
  Limits limits;
  limits.send_queue = std::make_shared<runtime::SharedByteBudget>(100'000);
  Node worker(world_.get(), IdentityOf(Role::kWorker, 4), limits);
  const PeerId peer = worker.van->Connect(address_, absl::Seconds(30)).value();
  const PeerId other = worker.van->Connect(address_, absl::Seconds(30)).value();
  const auto send = [&](PeerId to) {
    return worker.van->Send(to, TextMessage("m", {std::string(20'000, 'x')}), nullptr);
  };
  EXPECT_TRUE(send(peer).ok());
  EXPECT_TRUE(send(other).ok());
  EXPECT_GT(limits.send_queue->bytes(), 40'000u);
  worker.van->Disconnect(peer, absl::OkStatus());
  EXPECT_LT(limits.send_queue->bytes(), 21'000u);
  worker.van.reset();
  EXPECT_EQ(limits.send_queue->bytes(), 0u);
}

// ---- addresses ----

TEST_P(VanFailuresTest, AnAddressInUseIsNamed) {
  StartServer();
  Node other(world_.get(), IdentityOf(Role::kServer, 5));
  const auto taken =
      GetParam() == NetKind::kSim ? server_->van->Listen(address_) : other.van->Listen(address_);
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kAlreadyExists) << taken.status();
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(address_));
  ExpectClientUnharmed();
}

TEST_P(VanFailuresTest, SenselessAddressesAreRefused) {
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

TEST_P(VanFailuresTest, AnUnknownHostIsReportedAtOnce) {
  if (GetParam() == NetKind::kIpc || GetParam() == NetKind::kInproc ||
      GetParam() == NetKind::kShm) {
    return;  // these have no hosts
  }
  Node node(world_.get(), IdentityOf(Role::kServer, 5));
  const std::string address = GetParam() == NetKind::kSim ? "sim://no-such-host.invalid/1"
                                                          : "tcp://no-such-host.invalid:4000";
  EXPECT_EQ(node.van->Connect(address, absl::Seconds(30)).status().code(),
            absl::StatusCode::kNotFound);
  const auto bound = node.van->Listen(address);
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("no-such-host.invalid"));
}

TEST_P(VanFailuresTest, ConnectingTimesOut) {
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

TEST_P(VanFailuresTest, OneThatAcceptsButNeverAnswersTimesOutToo) {
  const int process = world_->NewProcess();
  RawPeer mute(world_->NewTransport(process, {}));
  const std::string address = mute.transport().Listen(world_->AnyAddress(process)).value();
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.van->Connect(address, absl::Milliseconds(700)).value();
  ASSERT_TRUE(RunUntil([&] { return worker.recorder->IsDown(peer); }));
  EXPECT_EQ(worker.recorder->WhyDown(peer).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()), HasSubstr("no answer within"));
}

// The system, or a thread of ZeroMQ, takes the connection for the process that stands still. Over
// rdma only the process itself can.
TEST_P(VanFailuresTest, OneThatIsStoppedBeforeItAcceptsDoesNotAnswer) {
  if (GetParam() == NetKind::kSim) GTEST_SKIP() << "no system takes connections";
  Node stopped(world_.get(), IdentityOf(Role::kServer, 2));
  const std::string address = stopped.Listen();
  world_->Freeze(stopped.process);
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.van->Connect(address, absl::Milliseconds(500)).value();
  ASSERT_TRUE(RunUntil([&] { return worker.recorder->IsDown(peer); }));
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()),
              HasSubstr(GetParam() == NetKind::kRdma ? "not reached within" : "no answer within"));
  world_->Thaw(stopped.process);
}

// ---- death ----

TEST_P(VanFailuresTest, AServerThatDiesIsNoticed) {
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

TEST_P(VanFailuresTest, AWorkerThatDiesIsNoticed) {
  StartServer();
  MortalNode worker(world_.get(), IdentityOf(Role::kWorker, 4));
  worker.node->ConnectTo(server_.get(), address_);
  const PeerId peer = server_->recorder->ups.back().peer;
  worker.Die();
  if (GetParam() == NetKind::kInproc) {
    // Within a process no connection breaks; the death shows with the next message.
    world_->RunFor(absl::Milliseconds(20));
    ASSERT_TRUE(server_->van->Send(peer, TextMessage("anyone?")).ok());
  }
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->IsDown(peer); }));
  EXPECT_EQ(server_->recorder->WhyDown(peer).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_->van->counters().offenders_dropped, 0u);
  ExpectClientUnharmed();
}

TEST_P(VanFailuresTest, AChildThatOutlivesAWorkerDoesNotHideItsDeath) {
  if (GetParam() == NetKind::kInproc || GetParam() == NetKind::kSim) {
    GTEST_SKIP() << "no descriptor is a connection";
  }
  StartServer();
  MortalNode worker(world_.get(), IdentityOf(Role::kWorker, 4));
  worker.node->ConnectTo(server_.get(), address_);
  const PeerId peer = server_->recorder->ups.back().peer;
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  ASSERT_GT(child, 0);
  const absl::Time begin = runtime::MonotonicNow();
  worker.Die();
  EXPECT_TRUE(RunUntil([&] { return server_->recorder->IsDown(peer); }));
  EXPECT_LT(runtime::MonotonicNow() - begin, absl::Seconds(15));  // not by a heartbeat of ZeroMQ's
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ExpectClientUnharmed();
}

INSTANTIATE_TEST_SUITE_P(Nets, VanFailuresTest, testing::ValuesIn(kAllNets),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
