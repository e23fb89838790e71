// What only the zmq van can be asked: real sockets, garbage on ports, addresses of this machine.
#include "van/zmq/zmq_van.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/codec.h"
#include "runtime/real_loop.h"
#include "van/prefix.h"
#include "van/test_world.h"
#include "van/zmq/zmq_address.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ZmqVanTest : public testing::Test {
 protected:
  void SetUp() override {
    Limits limits;
    limits.message_bytes_max = 1 << 20;
    server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2), limits);
    server_->recorder->on_message = [this](PeerId peer, Message message) {
      EXPECT_TRUE(server_->van->Send(peer, std::move(message)).ok());
    };
    address_ = server_->Listen();
    worker_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
    peer_ = worker_->ConnectTo(server_.get(), address_);
  }
  void ExpectServerUnharmed() {
    const std::size_t before = worker_->recorder->messages.size();
    ASSERT_TRUE(worker_->van->Send(peer_, TextMessage("still there?")).ok());
    EXPECT_TRUE(world_->RunUntil([&] { return worker_->recorder->messages.size() == before + 1; }));
    EXPECT_TRUE(worker_->recorder->downs.empty());
  }
  int RawTcp() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address_.substr(address_.rfind(':') + 1), &port));
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(NetKind::kTcp);
  std::unique_ptr<Node> server_, worker_;
  std::string address_;
  PeerId peer_ = 0;
};

TEST_F(ZmqVanTest, GarbageBytesAreCountedAndHarmNobody) {
  std::vector<std::string> garbage = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(64, '\xff'),
                                      std::string(1000, '\0'), std::string("\x01\x02\x03\x04")};
  garbage.push_back(std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03", 11) + std::string(200, 'x'));
  for (int round = 0; round < 10; ++round) {
    for (const std::string& bytes : garbage) {
      const int fd = RawTcp();
      EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
      close(fd);
    }
  }
  // Each is either no handshake or no hello.
  EXPECT_TRUE(world_->RunUntil([&] {
    const Counters counters = server_->van->counters();
    return counters.handshakes_failed + counters.offenders_dropped >= 50;
  }));
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
  ExpectServerUnharmed();
}

TEST_F(ZmqVanTest, OddFramesFromARawSocketAreOffences) {
  std::vector<std::vector<std::string>> odd = {{""},
                                               {"x"},
                                               {std::string(kPrefixBytes - 1, 'x')},
                                               {std::string(kPrefixBytes, 'x')},
                                               {"", "", ""},
                                               {std::string(100'000, 'y')},
                                               std::vector<std::string>(5000, "z")};
  std::string cut(kPrefixBytes, '\0');
  PutPrefix({Kind::kSession, 0, 1, 0, 0}, reinterpret_cast<std::byte*>(cut.data()));
  const Buffer hello = proto::Encode(proto::Hello());
  for (std::size_t length = 0; length < hello.size(); length += 7) {
    odd.push_back({cut + std::string(hello.text().substr(0, length))});
  }
  void* context = zmq_ctx_new();
  std::vector<void*> sockets;
  for (std::size_t i = 0; i < odd.size(); ++i) {
    void* socket = zmq_socket(context, ZMQ_DEALER);
    const int linger = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
    if (i % 2 == 0) zmq_setsockopt(socket, ZMQ_ROUTING_ID, "me", 2);  // all the same
    ASSERT_EQ(zmq_connect(socket, address_.c_str()), 0);
    for (std::size_t k = 0; k < odd[i].size(); ++k) {
      zmq_send(socket, odd[i][k].data(), odd[i][k].size(), k + 1 < odd[i].size() ? ZMQ_SNDMORE : 0);
    }
    sockets.push_back(socket);
    const std::uint64_t expected = i / 2 + 1;  // those with a taken routing id are not even heard
    EXPECT_TRUE(
        world_->RunUntil([&] { return server_->van->counters().offenders_dropped >= expected; }));
  }
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
  ExpectServerUnharmed();
  for (void* socket : sockets) zmq_close(socket);
  zmq_ctx_term(context);
}

TEST_F(ZmqVanTest, AnOffenderThatHasGoneIsNamedAllTheSame) {
  // ZMTP by hand: greeting, READY, and a message of one byte, each after the other's.
  std::string greeting("\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL", 16);
  greeting.resize(64, '\0');
  const int fd = RawTcp();
  char answer[256];
  for (const std::string& bytes :
       {greeting, std::string("\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
                              "DEALER",
                              30)}) {
    ASSERT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    const std::size_t expected = bytes.size() == 64 ? 64 : 2;
    ASSERT_EQ(recv(fd, answer, expected, MSG_WAITALL), static_cast<ssize_t>(expected));
  }
  ASSERT_EQ(send(fd, "\0\x01x", 3, MSG_NOSIGNAL), 3);
  shutdown(fd, SHUT_WR);
  // Until ZeroMQ's own thread has closed the other end; the loop stands still meanwhile.
  while (recv(fd, answer, sizeof(answer), 0) > 0) {
  }
  close(fd);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(world_->RunUntil([&] { return server_->van->counters().offenders_dropped == 1; }));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("dropping 127.0.0.1 (gone): "));
  ExpectServerUnharmed();
}

TEST_F(ZmqVanTest, AFrameFarBeyondTheLimitIsCutOffBeforeItIsTaken) {
  RawPeer raw(world_->NewTransport(world_->NewProcess(), {}));
  proto::Hello hello;
  hello.role = Role::kWorker;
  const ConnId conn = raw.Greet(world_.get(), address_, hello);
  ASSERT_TRUE(world_->RunUntil([&] { return server_->recorder->ups.size() == 2; }));
  raw.SendData(conn, "m", {Buffer::CopyOf(std::string(64 << 20, 'x'))});
  EXPECT_TRUE(world_->RunUntil([&] { return server_->recorder->downs.size() == 1; }));
  EXPECT_EQ(server_->van->counters().messages_received, 0u);
  ExpectServerUnharmed();
}

TEST_F(ZmqVanTest, DescriptorsThatAreReusedAreNotConfused) {
  // Visitors who leave at once while the loop stands still, then a peer on the same descriptor.
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5; ++i) close(RawTcp());
    Node node(world_.get(), IdentityOf(Role::kWorker, 10 + round));
    const PeerId peer = node.van->Connect(address_, absl::Seconds(30)).value();
    ASSERT_TRUE(world_->RunUntil([&] { return node.recorder->IsUp(peer); }));
    ASSERT_TRUE(node.van->Send(peer, TextMessage("m")).ok());
    ASSERT_TRUE(world_->RunUntil([&] { return node.recorder->messages.size() == 1; }));
    EXPECT_TRUE(node.recorder->downs.empty());
  }
  EXPECT_EQ(server_->van->counters().offenders_dropped, 0u);
  ExpectServerUnharmed();
}

TEST_F(ZmqVanTest, HostNamesAndNetworkCardsCanBeListenedOn) {
  for (const char* host : {"localhost", "lo", "127.0.0.1"}) {
    Node node(world_.get(), IdentityOf(Role::kServer, 5));
    const auto bound = node.van->Listen(world_->factory(0)->AnyAddress(host));
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_THAT(*bound, StartsWith("tcp://127.0.0.1:"));
    Node other(world_.get(), IdentityOf(Role::kWorker, 6));
    std::string by_name = *bound;
    by_name.replace(0, std::strlen("tcp://127.0.0.1"), "tcp://localhost");
    other.ConnectTo(&node, by_name);
  }
}

TEST_F(ZmqVanTest, AWildcardIsAdvertisedAsSomethingOthersCanReach) {
  for (const char* address : {"tcp://*:0", "tcp://0.0.0.0:0", "tcp://:0"}) {
    Node node(world_.get(), IdentityOf(Role::kServer, 5));
    const auto bound = node.van->Listen(address);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_FALSE(absl::StrContains(*bound, "0.0.0.0") || absl::StrContains(*bound, "*")) << *bound;
    Node other(world_.get(), IdentityOf(Role::kWorker, 6));
    other.ConnectTo(&node, *bound);
  }
  EXPECT_EQ(world_->factory(0)->AnyAddress(""), "tcp://0.0.0.0:0");
  EXPECT_EQ(world_->factory(0)->AnyAddress("fd00::1"), "tcp://[fd00::1]:0");
}

bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has =
      fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) == 0;
  if (fd >= 0) close(fd);
  return has;
}

TEST_F(ZmqVanTest, Ipv6AddressesCanBeListenedOn) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no ::1";
  Node node(world_.get(), IdentityOf(Role::kServer, 5));
  node.recorder->on_message = [&](PeerId peer, Message message) {
    EXPECT_THAT(node.van->AddressOf(peer), StartsWith("tcp://[::1]:"));
    EXPECT_TRUE(node.van->Send(peer, std::move(message)).ok());
  };
  const auto bound = node.van->Listen("tcp://[::1]:0");
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_THAT(*bound, StartsWith("tcp://[::1]:"));
  Node other(world_.get(), IdentityOf(Role::kWorker, 6));
  const PeerId peer = other.ConnectTo(&node, *bound);
  ASSERT_TRUE(other.van->Send(peer, TextMessage("m", {std::string(100'000, 'x')})).ok());
  EXPECT_TRUE(world_->RunUntil([&] { return other.recorder->messages.size() == 1; }));
  EXPECT_EQ(other.van->AddressOf(peer), *bound);
}

TEST_F(ZmqVanTest, AllIpv6AddressesAreAdvertisedAsOneThatOthersCanReach) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no ::1";
  Node node(world_.get(), IdentityOf(Role::kServer, 5));
  const auto bound = node.van->Listen("tcp://[::]:0");
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_THAT(*bound, Not(HasSubstr("[::]")));
  Node other(world_.get(), IdentityOf(Role::kWorker, 6));
  other.ConnectTo(&node, *bound);
  Node another(world_.get(), IdentityOf(Role::kWorker, 7));
  another.ConnectTo(&node, absl::StrCat("tcp://[::1]", bound->substr(bound->rfind(':'))));
}

TEST_F(ZmqVanTest, AnAddressOfAnotherMachineIsNotFound) {
  const auto bound = worker_->van->Listen("tcp://192.0.2.1:0");
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kNotFound) << bound.status();
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("LEEWAY_HOST"));
  EXPECT_EQ(worker_->van->Connect("tcp://127.0.0.1:0", absl::Seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ZmqVanTest, APortInUseSaysWhatToChange) {
  const auto bound = worker_->van->Listen(address_);
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("LEEWAY_SCHEDULER"));
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("DMLC_PS_ROOT_PORT"));
}

TEST(ZmqIpc, SocketFilesAreTakenOverOnlyWhenNobodyListens) {
  const auto world = TestWorld::New(NetKind::kIpc);
  Node node(world.get(), IdentityOf(Role::kServer, 2));
  const std::string address = world->AnyAddress(node.process);
  const std::string path = address.substr(std::strlen("ipc://"));
  // Left behind by a process that died.
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  close(fd);
  EXPECT_TRUE(node.van->Listen(address).ok());
  // In use, also from another context.
  const auto other = NewZmqFactory(ZmqScheme::kIpc);
  Recorder recorder;
  const auto van = other->New(world->loop(node.process), {}, {}, &recorder);
  EXPECT_EQ(van->Listen(address).status().code(), absl::StatusCode::kAlreadyExists);
  // Not a socket at all.
  const std::string file = path + ".txt";
  std::ofstream(file) << "precious";
  EXPECT_EQ(van->Listen("ipc://" + file).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(van->Listen("ipc:///no/such/folder/x").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ZmqShutdown, NeverHangsWhateverIsUnsent) {
  auto server_loop = std::make_unique<runtime::RealLoop>(1);
  auto worker_loop = std::make_unique<runtime::RealLoop>(2);
  Recorder server_recorder, worker_recorder;
  auto factory = NewZmqFactory();
  auto server = factory->New(server_loop.get(), {}, {}, &server_recorder);
  Limits unlimited;
  unlimited.send_window_bytes = 1ull << 40;
  auto worker = factory->New(worker_loop.get(), {}, unlimited, &worker_recorder);
  const std::string address = server->Listen("tcp://127.0.0.1:0").value();
  const PeerId peer = worker->Connect(address, absl::Seconds(30)).value();
  while (!worker_recorder.IsUp(peer)) {
    server_loop->RunReady();
    worker_loop->RunReady();
  }
  // More than the kernel buffers, to one who never reads: it cannot all leave. (ZeroMQ's own thread
  // does read, so it arrives; what counts is that nothing waits for the loop.)
  DoneProbe done;
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(worker->Send(peer, TextMessage("m", {std::string(1 << 20, 'x')}), done.New()).ok());
  }
  const absl::Time start = worker_loop->Now();
  worker.reset();
  EXPECT_EQ(done.state().called, 64);
  server.reset();
  factory.reset();
  EXPECT_LT(worker_loop->Now() - start, absl::Seconds(10));
}

// Sockets that have long had nothing to say are asked less often.
TEST_F(ZmqVanTest, WhoHasLongBeenSilentIsHeard) {
  Node silent(world_.get(), IdentityOf(Role::kWorker, 4));
  const PeerId to_server = silent.ConnectTo(server_.get(), address_);
  for (int i = 0; i < 200; ++i) ExpectServerUnharmed();
  ASSERT_TRUE(silent.van->Send(to_server, TextMessage("hello?")).ok());
  EXPECT_TRUE(world_->RunUntil([&] { return silent.recorder->messages.size() == 1; }));
  for (int i = 0; i < 200; ++i) ExpectServerUnharmed();
  // Only the monitor's descriptor tells of this one's end.
  const int raw = RawTcp();
  const std::uint64_t failed = server_->van->counters().handshakes_failed;
  for (int i = 0; i < 200; ++i) ExpectServerUnharmed();
  close(raw);
  EXPECT_TRUE(
      world_->RunUntil([&] { return server_->van->counters().handshakes_failed > failed; }));
  server_->van.reset();
  EXPECT_TRUE(world_->RunUntil([&] { return !silent.recorder->downs.empty(); }));
}

// The way a worker uses it: one thread sleeps on the loop's descriptors, another sends under the
// lock and turns the loop itself.
TEST(ZmqSharedLoop, ASenderOnAnotherThreadDoesNotLoseTheSleepersWakeUp) {
  runtime::RealLoop server_loop(1);
  runtime::RealLoop loop(2);
  std::mutex mutex;
  Recorder server_recorder, recorder;
  auto factory = NewZmqFactory();
  auto server = factory->New(&server_loop, {}, {}, &server_recorder);
  auto van = factory->New(&loop, {}, {}, &recorder);
  server_recorder.on_message = [&](PeerId peer, Message message) {
    EXPECT_TRUE(server->Send(peer, std::move(message)).ok());
  };
  int answers = 0;
  recorder.on_message = [&](PeerId, Message) { ++answers; };
  const std::string address = server->Listen("tcp://127.0.0.1:0").value();
  std::thread server_thread([&] { server_loop.Run(); });
  const PeerId peer = van->Connect(address, absl::Seconds(30)).value();
  constexpr int kMessages = 300;
  // Each message is answered; whoever waits for the next answer turns the loop.
  const auto wait_for = [&](int count) {
    while (true) {
      runtime::RealLoop::WaitSet set;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        while (loop.RunReady()) {
        }
        if (answers >= count) return;
        set = loop.PrepareWait(loop.Now() + absl::Seconds(20));
      }
      runtime::RealLoop::Wait(set);
    }
  };
  std::vector<std::thread> senders;
  for (int t = 0; t < 2; ++t) {
    senders.emplace_back([&] {
      for (int i = 0; i < kMessages; ++i) {
        const std::lock_guard<std::mutex> lock(mutex);
        EXPECT_TRUE(van->Send(peer, TextMessage("m", {std::string(5000, 'x')})).ok());
        while (loop.RunReady()) {
        }
      }
    });
  }
  wait_for(2 * kMessages);
  for (std::thread& sender : senders) sender.join();
  van.reset();
  server_loop.Stop();
  server_thread.join();
  server.reset();
}

}  // namespace
}  // namespace leeway::van
