// Tests of the zmq van alone: real sockets, invalid bytes on ports, socket files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/unique_fd.h"
#include "runtime/loop/real_loop.h"
#include "van/prefix.h"
#include "van/session/guest_meter.h"
#include "van/testing/server_and_client.h"
#include "van/testing/test_processes.h"
#include "van/zmq/zmq_address.h"
#include "van/zmq/zmq_api.h"
#include "van/zmq/zmq_transport.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

class ZmqVanTest : public testing::Test, protected ServerAndClient {
 protected:
  ZmqVanTest() : ServerAndClient(NetKind::kZmqTcp) {
    Limits limits;
    limits.message_bytes_max = 1 << 20;
    StartServer(limits);
  }
};

TEST_F(ZmqVanTest, GarbageBytesAreCountedAndHarmNobody) {
  std::vector<std::string> garbage = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(64, '\xff'),
                                      std::string(1000, '\0'), std::string("\x01\x02\x03\x04")};
  garbage.push_back(std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03", 11) + std::string(200, 'x'));
  for (int round = 0; round < 10; ++round) {
    for (const std::string& bytes : garbage) {
      const int fd = DialRaw(address_);
      EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
      close(fd);
    }
  }
  // Each one fails either the handshake or the hello.
  EXPECT_TRUE(world_->RunUntil([&] {
    const Counters counters = server_->van->counters();
    return counters.handshakes_failed + counters.offenders_dropped >= 50;
  }));
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
  ExpectClientUnharmed();
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
  void* context = Zmq().zmq_ctx_new();
  std::vector<void*> sockets;
  for (std::size_t i = 0; i < odd.size(); ++i) {
    void* socket = Zmq().zmq_socket(context, ZMQ_DEALER);
    const int linger = 0;
    Zmq().zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
    // All with the same routing id.
    if (i % 2 == 0) Zmq().zmq_setsockopt(socket, ZMQ_ROUTING_ID, "me", 2);
    ASSERT_EQ(Zmq().zmq_connect(socket, address_.c_str()), 0);
    odd[i][0].append(4, '\0');  // no checksum
    for (std::size_t k = 0; k < odd[i].size(); ++k) {
      Zmq().zmq_send(socket, odd[i][k].data(), odd[i][k].size(),
                     k + 1 < odd[i].size() ? ZMQ_SNDMORE : 0);
    }
    sockets.push_back(socket);
    // Messages with a routing id in use are not even received.
    const std::uint64_t expected = i / 2 + 1;
    EXPECT_TRUE(
        world_->RunUntil([&] { return server_->van->counters().offenders_dropped >= expected; }));
  }
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
  ExpectClientUnharmed();
  for (void* socket : sockets) Zmq().zmq_close(socket);
  Zmq().zmq_ctx_term(context);
}

TEST_F(ZmqVanTest, AnOffenderThatHasGoneIsNamedAllTheSame) {
  // Writes ZMTP byte by byte: greeting, READY, and a message of one byte, each after the other
  // side's.
  std::string greeting("\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL", 16);
  greeting.resize(64, '\0');
  const int fd = DialRaw(address_);
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
  // Waits until ZeroMQ's own thread has closed the other end; the loop does not run meanwhile.
  while (recv(fd, answer, sizeof(answer), 0) > 0) {
  }
  close(fd);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(world_->RunUntil([&] { return server_->van->counters().offenders_dropped == 1; }));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("dropping 127.0.0.1 (gone): "));
  ExpectClientUnharmed();
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
  ExpectClientUnharmed();
}

TEST_F(ZmqVanTest, DescriptorsThatAreReusedAreNotConfused) {
  // Connections that end at once while the loop does not run, then a peer on the same descriptor.
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5; ++i) close(DialRaw(address_));
    Node node(world_.get(), IdentityOf(Role::kWorker, 10 + round));
    const PeerId peer = node.van->Connect(address_, absl::Seconds(30)).value();
    ASSERT_TRUE(world_->RunUntil([&] { return node.recorder->IsUp(peer); }));
    ASSERT_TRUE(node.van->Send(peer, TextMessage("m")).ok());
    ASSERT_TRUE(world_->RunUntil([&] { return node.recorder->messages.size() == 1; }));
    EXPECT_TRUE(node.recorder->downs.empty());
  }
  EXPECT_EQ(server_->van->counters().offenders_dropped, 0u);
  ExpectClientUnharmed();
}

TEST(ZmqIpc, SocketFilesAreTakenOverOnlyWhenNobodyListens) {
  const auto world = TestWorld::New(NetKind::kIpc);
  Node node(world.get(), IdentityOf(Role::kServer, 2));
  const std::string address = world->AnyAddress(node.process);
  const std::string path = address.substr(std::strlen("ipc://"));
  // A socket file that a dead process left behind.
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  close(fd);
  EXPECT_TRUE(node.van->Listen(address).ok());
  // The path is in use, also for another context.
  const auto other = NewZmqFactory(ZmqScheme::kIpc);
  Recorder recorder;
  const auto van = other->New(world->loop(node.process), {}, {}, &recorder);
  EXPECT_EQ(van->Listen(address).status().code(), absl::StatusCode::kAlreadyExists);
  // A file that is not a socket.
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
  // More than the kernel buffers, to a peer whose loop never reads, so not all of it can leave.
  // (ZeroMQ's own thread does read, so it arrives; the test is that no send waits for the loop.)
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

// Sockets that have been idle for long are polled less often.
TEST_F(ZmqVanTest, APeerThatWasLongSilentIsHeard) {
  Node silent(world_.get(), IdentityOf(Role::kWorker, 4));
  const PeerId to_server = silent.ConnectTo(server_.get(), address_);
  for (int i = 0; i < 200; ++i) ExpectClientUnharmed();
  ASSERT_TRUE(silent.van->Send(to_server, TextMessage("hello?")).ok());
  EXPECT_TRUE(world_->RunUntil([&] { return silent.recorder->messages.size() == 1; }));
  for (int i = 0; i < 200; ++i) ExpectClientUnharmed();
  // Only the monitor's descriptor shows the end of this connection.
  const int raw = DialRaw(address_);
  const std::uint64_t failed = server_->van->counters().handshakes_failed;
  for (int i = 0; i < 200; ++i) ExpectClientUnharmed();
  close(raw);
  EXPECT_TRUE(
      world_->RunUntil([&] { return server_->van->counters().handshakes_failed > failed; }));
  server_->van.reset();
  EXPECT_TRUE(world_->RunUntil([&] { return !silent.recorder->downs.empty(); }));
}

TEST_F(ZmqVanTest, OneThatNeverGreetsDoesNotAnswer) {
  const runtime::UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(::listen(silent.get(), 10), 0);
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  const std::string address = absl::StrCat("tcp://127.0.0.1:", ntohs(at.sin_port));
  const PeerId peer = client_->van->Connect(address, absl::Milliseconds(500)).value();
  ASSERT_TRUE(RunUntil([&] { return client_->recorder->IsDown(peer); }));
  EXPECT_THAT(client_->recorder->WhyDown(peer).message(),
              HasSubstr("no answer within 500ms: it takes connections but does not answer"));
}

TEST(ZmqSharedLoop, ASenderOnAnotherThreadDoesNotLoseTheSleepersWakeUp) {
  ExpectNoWakeUpIsLostByASharedLoop(NewZmqFactory().get(), "127.0.0.1");
}

// ---- guests: a connection of ZeroMQ cannot be held back, only dropped ----

// Does not know the cluster's id, and so is a guest.
Identity Guest() {
  Identity identity = IdentityOf(Role::kWorker, 4);
  identity.cluster = 0;
  return identity;
}

TEST_F(ZmqVanTest, AGuestIsNotDroppedBecauseItsOnlyRequestTookLong) {
  MakeMessagesCost(2 * GuestMeter::kSaved);
  Node guest(world_.get(), Guest());
  const PeerId peer = guest.ConnectTo(server_.get(), address_);
  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(guest.van->Send(peer, TextMessage("drain")).ok());
    ASSERT_TRUE(RunUntil([&] { return guest.recorder->messages.size() == i; }));
  }
  EXPECT_TRUE(guest.recorder->downs.empty());
  EXPECT_EQ(server_->van->counters().guests_dropped, 0u);
}

TEST_F(ZmqVanTest, AGuestThatAsksForMuchAgainAndAgainIsDropped) {
  MakeMessagesCost(GuestMeter::kSaved / 8);
  Node guest(world_.get(), Guest());
  const PeerId peer = guest.ConnectTo(server_.get(), address_);
  for (std::size_t i = 1; i <= 100 && !guest.recorder->IsDown(peer); ++i) {
    guest.van->Send(peer, TextMessage("status")).IgnoreError();
    ASSERT_TRUE(RunUntil(
        [&] { return guest.recorder->messages.size() == i || guest.recorder->IsDown(peer); }));
  }
  ASSERT_TRUE(guest.recorder->IsDown(peer));
  EXPECT_THAT(guest.recorder->WhyDown(peer).message(), testing::HasSubstr("asks for too much"));
  EXPECT_LT(guest.recorder->messages.size(), 30u);
  EXPECT_EQ(server_->van->counters().guests_dropped, 1u);
}

}  // namespace
}  // namespace leeway::van
