// Tests of what every van has to do, over every transport.
#include "van/van.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/memory/shared_memory.h"
#include "van/testing/test_world.h"

namespace leeway::van {
namespace {

class VanTest : public testing::TestWithParam<NetKind> {
 protected:
  std::unique_ptr<TestWorld> world_ = TestWorld::New(GetParam());
};

std::string Text(const Buffer& buffer) { return std::string(buffer.text()); }

TEST_P(VanTest, ConnectsToOneThatListens) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.ConnectTo(&server, server.Listen());
  EXPECT_TRUE(worker.van->Writable(peer));
  EXPECT_EQ(worker.recorder->ups[0].peer, peer);
  EXPECT_EQ(worker.recorder->ups[0].identity.role, Role::kServer);
  EXPECT_EQ(worker.recorder->ups[0].identity.node, 2u);
  EXPECT_EQ(worker.recorder->ups[0].identity.incarnation, 1002u);
  EXPECT_EQ(server.recorder->ups[0].identity.role, Role::kWorker);
  EXPECT_EQ(server.recorder->ups[0].identity.node, 3u);
  EXPECT_FALSE(server.van->AddressOf(server.recorder->ups[0].peer).empty());
}

TEST_P(VanTest, ConnectsToOneThatListensLater) {
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  // Finds a free address by listening once and closing.
  std::string address;
  {
    auto early = world_->factory(server.process)
                     ->New(world_->loop(server.process), {}, {}, server.recorder.get());
    address = early->Listen(world_->AnyAddress(server.process)).value();
  }
  const PeerId peer = worker.van->Connect(address, absl::Seconds(60)).value();
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("queued")).ok());
  EXPECT_FALSE(worker.van->Writable(peer));
  world_->RunFor(absl::Milliseconds(300));
  EXPECT_TRUE(worker.recorder->ups.empty());
  ASSERT_EQ(server.van->Listen(address).value(), address);
  ASSERT_TRUE(world_->RunUntil([&] { return server.recorder->messages.size() == 1; }));
  EXPECT_EQ(Text(server.recorder->messages[0].message.header), "queued");
}

TEST_P(VanTest, CarriesPayloadsOfAllSizesUnchanged) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  server.recorder->on_message = [&](PeerId peer, Message message) {
    EXPECT_TRUE(server.van->Send(peer, std::move(message)).ok());
  };
  const PeerId peer = worker.ConnectTo(&server, server.Listen());
  std::vector<std::string> payload = {"",
                                      "x",
                                      std::string(4095, 'a'),
                                      std::string(4096, 'b'),
                                      std::string(9000, 'c'),
                                      std::string(4 << 20, 'd'),
                                      "",
                                      "yz"};
  for (std::size_t i = 0; i < payload[5].size(); ++i) payload[5][i] = static_cast<char>(i * 7);
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("many", payload)).ok());
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("none")).ok());
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("one", {std::string()})).ok());
  ASSERT_TRUE(world_->RunUntil([&] { return worker.recorder->messages.size() == 3; }));
  const Message& many = worker.recorder->messages[0].message;
  EXPECT_EQ(Text(many.header), "many");
  ASSERT_EQ(many.payload.size(), payload.size());
  for (std::size_t i = 0; i < payload.size(); ++i) EXPECT_TRUE(Text(many.payload[i]) == payload[i]);
  EXPECT_TRUE(many.header.aligned_to(8));
  EXPECT_TRUE(worker.recorder->messages[1].message.payload.empty());
  EXPECT_EQ(worker.recorder->messages[2].message.payload.size(), 1u);
  EXPECT_EQ(worker.van->counters().messages_sent, 3u);
  EXPECT_EQ(worker.van->counters().messages_received, 3u);
  EXPECT_EQ(worker.van->counters().bytes_sent, worker.van->counters().bytes_received);
  EXPECT_EQ(server.van->counters().bytes_sent, worker.van->counters().bytes_received);
}

TEST_P(VanTest, KeepsTheOrderInBothDirections) {
  constexpr int kMessages = 10'000;
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId there = worker.ConnectTo(&server, server.Listen());
  const PeerId back = server.recorder->ups[0].peer;
  int at_server = 0, at_worker = 0;
  const auto count = [](int* next) {
    return [next](PeerId, Message message) {
      EXPECT_EQ(Text(message.header), absl::StrCat((*next)++));
    };
  };
  server.recorder->on_message = count(&at_server);
  worker.recorder->on_message = count(&at_worker);
  for (int i = 0; i < kMessages; ++i) {
    const std::vector<std::string> payload(i % 3, std::string(i % 5000, 'p'));
    ASSERT_TRUE(worker.van->Send(there, TextMessage(absl::StrCat(i), payload)).ok());
    ASSERT_TRUE(server.van->Send(back, TextMessage(absl::StrCat(i), payload)).ok());
  }
  ASSERT_TRUE(world_->RunUntil([&] { return at_server == kMessages && at_worker == kMessages; }));
}

TEST_P(VanTest, ServesManyPeersAtOnce) {
  constexpr int kPeers = 20;
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  server.recorder->on_message = [&](PeerId peer, Message message) {
    EXPECT_TRUE(server.van->Send(peer, std::move(message)).ok());
  };
  const std::string address = server.Listen();
  std::vector<std::unique_ptr<Node>> workers;
  std::vector<PeerId> peers;
  for (int i = 0; i < kPeers; ++i) {
    workers.push_back(std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 10 + i)));
    peers.push_back(workers[i]->van->Connect(address, absl::Seconds(30)).value());
    ASSERT_TRUE(workers[i]->van->Send(peers[i], TextMessage(absl::StrCat("worker ", i))).ok());
  }
  ASSERT_TRUE(world_->RunUntil([&] {
    return std::all_of(workers.begin(), workers.end(),
                       [](const auto& w) { return w->recorder->messages.size() == 1; });
  }));
  for (int i = 0; i < kPeers; ++i) {
    EXPECT_EQ(Text(workers[i]->recorder->messages[0].message.header), absl::StrCat("worker ", i));
  }
  std::set<std::uint32_t> nodes;
  for (const auto& up : server.recorder->ups) nodes.insert(up.identity.node);
  EXPECT_EQ(nodes.size(), static_cast<std::size_t>(kPeers));
}

TEST_P(VanTest, OneProcessMayConnectTwiceAndListenTwice) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId first = worker.ConnectTo(&server, server.Listen());
  const PeerId second = worker.ConnectTo(&server, server.Listen());
  ASSERT_NE(first, second);
  ASSERT_TRUE(worker.van->Send(first, TextMessage("first")).ok());
  ASSERT_TRUE(worker.van->Send(second, TextMessage("second")).ok());
  ASSERT_TRUE(world_->RunUntil([&] { return server.recorder->messages.size() == 2; }));
  EXPECT_NE(server.recorder->messages[0].peer, server.recorder->messages[1].peer);
}

TEST_P(VanTest, LaterHellosSayTheNewIdentity) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 0));
  const std::string address = server.Listen();
  worker.ConnectTo(&server, address);
  worker.van->SetIdentity(IdentityOf(Role::kWorker, 77));
  EXPECT_EQ(worker.van->identity().node, 77u);
  worker.ConnectTo(&server, address);
  ASSERT_EQ(server.recorder->ups.size(), 2u);
  EXPECT_EQ(server.recorder->ups[0].identity.node, 0u);
  EXPECT_EQ(server.recorder->ups[1].identity.node, 77u);
}

TEST_P(VanTest, AnIdentityThatChangesWhileConnectingIsNoSecondHello) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 0));
  const std::string address = server.Listen();
  world_->Freeze(server.process);
  const PeerId peer = worker.van->Connect(address, absl::Minutes(2)).value();
  world_->RunFor(absl::Milliseconds(700));  // long enough for the hello to be sent again
  worker.van->SetIdentity(IdentityOf(Role::kWorker, 5));
  world_->RunFor(absl::Milliseconds(700));
  world_->Thaw(server.process);
  ASSERT_TRUE(world_->RunUntil([&] { return worker.recorder->IsUp(peer); }, absl::Minutes(2)));
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("still here")).ok());
  ASSERT_TRUE(world_->RunUntil([&] { return server.recorder->messages.size() == 1; }));
  EXPECT_EQ(server.van->counters().offenders_dropped, 0u);
}

TEST_P(VanTest, GoodbyeIsAnEndInOrderAfterWhatWasSent) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.ConnectTo(&server, server.Listen());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(worker.van->Send(peer, TextMessage("last words", {std::string(10'000, 'w')})).ok());
  }
  worker.recorder->in_van_call = true;
  worker.van->Disconnect(peer, absl::OkStatus());
  worker.recorder->in_van_call = false;
  EXPECT_EQ(worker.van->Send(peer, TextMessage("too late")).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(world_->RunUntil(
      [&] { return worker.recorder->downs.size() == 1 && server.recorder->downs.size() == 1; }));
  EXPECT_TRUE(worker.recorder->WhyDown(peer).ok());
  EXPECT_TRUE(server.recorder->downs[0].why.ok()) << server.recorder->downs[0].why;
  EXPECT_EQ(server.recorder->messages.size(), 100u);
}

TEST_P(VanTest, TheListeningSideMaySayGoodbyeAsWell) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.ConnectTo(&server, server.Listen());
  server.van->Disconnect(server.recorder->ups[0].peer, absl::OkStatus());
  ASSERT_TRUE(world_->RunUntil(
      [&] { return worker.recorder->downs.size() == 1 && server.recorder->downs.size() == 1; }));
  EXPECT_TRUE(worker.recorder->WhyDown(peer).ok());
  EXPECT_TRUE(server.recorder->downs[0].why.ok());
}

TEST_P(VanTest, AClosingVanFlushesAndSaysGoodbye) {
  Limits small;
  small.send_window_bytes = 20'000;
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  auto worker = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3), small);
  const PeerId peer = worker->ConnectTo(&server, server.Listen());
  DoneProbe done;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        worker->van->Send(peer, TextMessage("m", {std::string(10'000, 'w')}), done.New()).ok());
  }
  worker->recorder->in_van_call = true;  // no handler may be called from now on
  worker->van.reset();
  EXPECT_EQ(done.state().called, 20);
  EXPECT_EQ(done.state().dropped, 0);
  ASSERT_TRUE(world_->RunUntil([&] { return server.recorder->downs.size() == 1; }));
  EXPECT_TRUE(server.recorder->downs[0].why.ok()) << server.recorder->downs[0].why;
  EXPECT_EQ(server.recorder->messages.size(), 20u);
}

TEST_P(VanTest, SendsAreReportedDoneOnce) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.ConnectTo(&server, server.Listen());
  DoneProbe done;
  auto live = std::make_shared<std::atomic<int>>(0);
  for (const std::size_t size : {0, 10, 5000, 3'000'000}) {
    Message message = TextMessage("m");
    message.payload.push_back(TrackedBuffer(size, 'x', live));
    message.payload.push_back(TrackedBuffer(size, 'y', live));
    ASSERT_TRUE(worker.van->Send(peer, std::move(message), done.New()).ok());
    EXPECT_EQ(done.state().called, 0) << "from within Send";
  }
  ASSERT_TRUE(world_->RunUntil([&] {
    return done.state().called == 4 && server.recorder->messages.size() == 4 && *live == 0;
  }));
  for (const absl::Status& result : done.state().results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(done.state().dropped, 0);
  EXPECT_EQ(Text(server.recorder->messages[3].message.payload[1]), std::string(3'000'000, 'y'));
}

// Tests of sends from a user's memory, which the user may free as soon as the send is done.
class VanMemoryTest : public VanTest {
 protected:
  // Sends `bytes` bytes of that memory, all equal to `with`, and expects them.
  void SendAndExpect(void* data, std::size_t bytes, char with) {
    std::memset(data, with, bytes);
    Message message = TextMessage("m");
    message.payload.push_back(Buffer::Unowned(data, bytes));
    DoneProbe done;
    ASSERT_TRUE(worker_.van->Send(peer_, std::move(message), done.New()).ok());
    ASSERT_TRUE(world_->RunUntil([&] { return server_.recorder->messages.size() == 1; }));
    const Buffer& got = server_.recorder->messages[0].message.payload[0];
    ASSERT_EQ(got.size(), bytes);
    EXPECT_EQ(std::count(got.text().begin(), got.text().end(), with),
              static_cast<std::ptrdiff_t>(bytes));
    server_.recorder->messages.clear();  // they may refer to the memory in place
    ASSERT_TRUE(world_->RunUntil([&] { return done.state().called == 1; }));
  }

  Node server_{world_.get(), IdentityOf(Role::kServer, 2)};
  Node worker_{world_.get(), IdentityOf(Role::kWorker, 3)};
  const PeerId peer_ = worker_.ConnectTo(&server_, server_.Listen());
};

// A device identifies memory by its pages, not its addresses: other pages may have been mapped
// there since, in whole or in part.
TEST_P(VanMemoryTest, MemoryThatIsMappedAnewAtTheSameAddressIsSentAsItIs) {
  constexpr std::size_t kPlace = 4 << 20;
  const auto map = [](void* at, std::size_t bytes) {
    return ::mmap(at, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | (at == nullptr ? 0 : MAP_FIXED), -1, 0);
  };
  void* const place = map(nullptr, kPlace);
  ASSERT_NE(place, MAP_FAILED);
  char with = 'a';
  for (const std::size_t bytes : {kPlace, std::size_t{1} << 20, std::size_t{3} << 20, kPlace}) {
    ASSERT_EQ(::munmap(place, kPlace), 0);
    ASSERT_EQ(map(place, kPlace), place);
    SendAndExpect(place, bytes, with++);
    if (HasFatalFailure()) return;
    void* const half = static_cast<std::byte*>(place) + bytes / 2;  // 2 MiB at most
    ASSERT_EQ(::munmap(half, bytes / 2), 0);
    ASSERT_EQ(map(half, bytes / 2), half);
    SendAndExpect(place, bytes, with++);
    if (HasFatalFailure()) return;
  }
  ASSERT_EQ(::munmap(place, kPlace), 0);
}

TEST_P(VanMemoryTest, AllocatedMemoryIsSentAsItIs) {
  constexpr std::size_t kBytes = 2 << 20;
  char with = 'a';
  for (const std::size_t bytes : {kBytes, kBytes / 2, 2 * kBytes}) {
    const auto memory = runtime::SharedMemory::New(bytes);
    if (!memory.ok()) GTEST_SKIP() << memory.status();
    SendAndExpect((*memory)->data(), bytes, with++);
    SendAndExpect((*memory)->data() + bytes / 4, bytes / 2, with++);
    (*memory)->Detach();  // its pages are copies from now on
    SendAndExpect((*memory)->data(), bytes, with++);
    if (HasFatalFailure()) return;
  }
}

TEST_P(VanTest, ReceivedMessagesMayBeKept) {
  auto worker = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
  auto server = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2));
  const PeerId peer = worker->ConnectTo(server.get(), server->Listen());
  ASSERT_TRUE(worker->van->Send(peer, TextMessage("k", {std::string(100'000, 'k'), "small"})).ok());
  ASSERT_TRUE(world_->RunUntil([&] { return server->recorder->messages.size() == 1; }));
  const Message kept = server->recorder->messages[0].message;
  worker.reset();
  server.reset();
  world_.reset();
  EXPECT_EQ(Text(kept.payload[0]), std::string(100'000, 'k'));
  EXPECT_EQ(Text(kept.payload[1]), "small");
}

TEST_P(VanTest, AVanMayBeDestroyedFromItsOwnHandler) {
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  const std::string address = server.Listen();
  for (const bool on_up : {true, false}) {
    Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
    DoneProbe done;
    if (on_up) {
      worker.recorder->on_up = [&] { worker.van.reset(); };
    } else {
      worker.recorder->on_down = [&] { worker.van.reset(); };
    }
    const PeerId peer = worker.van->Connect(address, absl::Seconds(30)).value();
    ASSERT_TRUE(worker.van->Send(peer, TextMessage("m"), done.New()).ok());
    ASSERT_TRUE(world_->RunUntil([&] { return worker.recorder->ups.size() == 1; }));
    if (!on_up) worker.van->Disconnect(peer, absl::OkStatus());
    ASSERT_TRUE(world_->RunUntil([&] { return worker.van == nullptr; }));
    EXPECT_EQ(done.state().called, 1);
  }
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.ConnectTo(&server, address);
  server.recorder->on_message = [&](PeerId, Message) { server.van.reset(); };
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("m")).ok());
  ASSERT_TRUE(worker.van->Send(peer, TextMessage("m")).ok());
  ASSERT_TRUE(world_->RunUntil([&] { return worker.recorder->downs.size() == 1; }));
}

TEST_P(VanTest, AnAddressCanBeListenedOnAgainAtOnce) {
  std::string address;
  for (int i = 0; i < 5; ++i) {
    Node server(world_.get(), IdentityOf(Role::kServer, 2));
    if (GetParam() == NetKind::kSim && i > 0) break;  // there an address belongs to one process
    if (i == 0) address = world_->AnyAddress(server.process);
    const auto bound = server.van->Listen(address);
    ASSERT_TRUE(bound.ok()) << bound.status();
    address = *bound;
    Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
    worker.ConnectTo(&server, address);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, VanMemoryTest, testing::ValuesIn(kAllNets),
                         [](const auto& kind) { return NameOf(kind.param); });
INSTANTIATE_TEST_SUITE_P(Nets, VanTest, testing::ValuesIn(kAllNets),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
