// Tests of the rdma van alone: devices that fail, memory that cannot be locked, an arena that is
// full. Tests of malformed packets are in rdma_hostile_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/memory/page_pool.h"
#include "runtime/memory/sanitized.h"
#include "runtime/memory/shared_memory.h"
#include "van/little_endian.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/testing/fabric_world.h"
#include "van/testing/test_world.h"

namespace leeway::van::rdma_van_test {
namespace {

using testing::HasSubstr;
using verbs::FakeFabric;
using verbs::FakeFaults;
using verbs::Outcome;

std::string Bytes(std::size_t size, std::uint64_t seed) {
  std::string bytes(size, '\0');
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t drawn = runtime::RandomAt(seed, 1, at);
    std::memcpy(&bytes[at], &drawn, std::min(sizeof(drawn), size - at));
  }
  return bytes;
}

std::string Text(const Buffer& buffer) { return std::string(buffer.text()); }

class RdmaVanTest : public testing::Test {
 protected:
  void Start(const RdmaSizes& sizes = {}) {
    world_ = std::make_unique<FabricWorld>(sizes);
    server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2));
    worker_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
    address_ = server_->Listen();
    peer_ = worker_->ConnectTo(server_.get(), address_);
  }
  void TearDown() override {
    if (world_ == nullptr) return;
    server_.reset();
    worker_.reset();
    const verbs::FakeCounters counters = world_->fabric.counters();
    EXPECT_EQ(counters.connections, 0u);
    EXPECT_EQ(counters.regions, 0u);
    EXPECT_EQ(counters.registered_bytes, 0u);
  }
  void Send(std::size_t bytes, std::uint64_t seed) {
    ASSERT_TRUE(
        worker_->van->Send(peer_, TextMessage(absl::StrCat(seed), {Bytes(bytes, seed)})).ok());
  }
  bool RunUntilReceived(std::size_t count) {
    return world_->RunUntil([&] { return server_->recorder->messages.size() >= count; },
                            absl::Seconds(20));
  }
  void ExpectReceived(std::size_t index, std::size_t bytes, std::uint64_t seed) {
    const Message& message = server_->recorder->messages[index].message;
    EXPECT_EQ(Text(message.header), absl::StrCat(seed));
    ASSERT_EQ(message.payload.size(), 1u);
    EXPECT_TRUE(Text(message.payload[0]) == Bytes(bytes, seed)) << bytes << " bytes";
  }

  std::unique_ptr<FabricWorld> world_;
  std::unique_ptr<Node> server_, worker_;
  std::string address_;
  PeerId peer_ = 0;
};

TEST_F(RdmaVanTest, LargeFramesAreWrittenAndNotCopied) {
  Start();
  constexpr std::size_t kBytes = 512 << 10;
  for (std::uint64_t i = 0; i < 40; ++i) Send(kBytes, i);
  ASSERT_TRUE(RunUntilReceived(1));
  // Received messages are dropped, so that the arena has room.
  std::size_t seen = 0;
  ASSERT_TRUE(world_->RunUntil([&] {
    auto& messages = server_->recorder->messages;
    for (; seen < messages.size(); ++seen) {
      ExpectReceived(seen, kBytes, seen);
      messages[seen].message.payload.clear();
    }
    return seen == 40;
  }));
  const verbs::FakeCounters counters = world_->fabric.counters();
  EXPECT_EQ(counters.written_bytes, 40 * kBytes);
  EXPECT_LT(counters.sent_bytes, 64u << 10);
}

// The device makes the only copy: it reads the sender's array itself, and the receiver gets the
// bytes where the device wrote them.
TEST_F(RdmaVanTest, TheDeviceReadsTheSendersArrayAndTheReceiverGetsWhatItWrote) {
  Start();
  constexpr std::size_t kBytes = 512 << 10;
  struct Written {
    const std::byte* from;
    std::size_t bytes;
    const std::byte* to;
  };
  std::vector<Written> written;
  world_->fabric.OnWrite([&](std::span<const std::byte> from, const std::byte* to) {
    written.push_back({from.data(), from.size(), to});
  });
  const auto allocated = runtime::SharedMemory::New(kBytes).value();
  const std::vector<std::byte> own(kBytes);
  for (const std::byte* const array :
       {static_cast<const std::byte*>(allocated->data()), own.data()}) {
    for (int round = 0; round < 3; ++round) {
      written.clear();
      Message message = TextMessage("m");
      message.payload.push_back(Buffer::Unowned(array, kBytes));
      DoneProbe done;
      ASSERT_TRUE(worker_->van->Send(peer_, std::move(message), done.New()).ok());
      ASSERT_TRUE(RunUntilReceived(1));
      const Buffer& payload = server_->recorder->messages[0].message.payload[0];
      ASSERT_EQ(written.size(), 1u);
      EXPECT_EQ(written[0].from, array);
      EXPECT_EQ(written[0].bytes, kBytes);
      EXPECT_EQ(written[0].to, payload.data());
      server_->recorder->messages.clear();
      ASSERT_TRUE(world_->RunUntil([&] { return done.state().called == 1; }));
    }
  }
  world_->fabric.OnWrite(nullptr);
}

// Memory with a known lifetime is registered once, as a whole, until it is freed; all other memory
// for one message.
TEST_F(RdmaVanTest, AllocatedMemoryStaysRegistered) {
  Start();
  constexpr std::size_t kBytes = 1 << 20, kFrame = 128 << 10;
  const auto send = [&](const std::byte* data) {
    Message message = TextMessage("m");
    message.payload.push_back(Buffer::Unowned(data, kFrame));
    DoneProbe done;
    ASSERT_TRUE(worker_->van->Send(peer_, std::move(message), done.New()).ok());
    ASSERT_TRUE(world_->RunUntil([&] { return done.state().called == 1; }));
  };
  const std::vector<std::byte> own(kFrame);
  send(own.data());  // the first message asks for an arena
  const std::uint64_t before = world_->fabric.counters().registrations;
  const std::uint64_t regions = world_->fabric.counters().regions;
  for (int i = 0; i < 5; ++i) send(own.data());
  EXPECT_EQ(world_->fabric.counters().registrations, before + 5);
  EXPECT_EQ(world_->fabric.counters().regions, regions);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const auto memory = runtime::SharedMemory::New(kBytes).value();
    for (std::size_t at = 0; at < kBytes; at += kFrame) send(memory->data() + at);
    send(memory->data() + 100);
    EXPECT_EQ(world_->fabric.counters().registrations, before + 5 + round);
    EXPECT_EQ(world_->fabric.counters().regions, regions + 1);
  }
  ASSERT_TRUE(world_->RunUntil([&] { return world_->fabric.counters().regions == regions; }));
}

// The user's own memory is registered for each message, so it does not matter what was mapped at
// the address before, or that a part is unmapped.
TEST_F(RdmaVanTest, MemoryThatIsMappedAnewIsSentAsItIsNow) {
  Start();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t most = 64 * page;
  const auto map = [&](void* where, std::size_t bytes) {
    void* const memory =
        mmap(where, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (where == nullptr ? 0 : MAP_FIXED), -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<std::byte*>(memory);
  };
  const auto send = [&](std::byte* data, std::size_t bytes, int value) {
    std::memset(data, value, bytes);
    const std::uint64_t before = world_->fabric.counters().registrations;
    Message message = TextMessage("m");
    message.payload.push_back(Buffer::Unowned(data, bytes));
    DoneProbe done;
    ASSERT_TRUE(worker_->van->Send(peer_, std::move(message), done.New()).ok());
    ASSERT_TRUE(RunUntilReceived(1));
    ASSERT_TRUE(world_->RunUntil([&] { return done.state().called == 1; }));
    const Buffer got = server_->recorder->messages[0].message.payload[0];
    EXPECT_EQ(got.text(), std::string(bytes, static_cast<char>(value)));
    EXPECT_GT(world_->fabric.counters().registrations, before);
    server_->recorder->messages.clear();
  };
  std::byte* const memory = map(nullptr, most);
  send(memory, most / 2, 1);
  const std::uint64_t regions = world_->fabric.counters().regions;
  ASSERT_EQ(munmap(memory, most), 0);
  ASSERT_EQ(map(memory, most), memory);
  send(memory, most / 2, 2);  // different memory at the same address
  send(memory, most, 3);      // more of it
  ASSERT_EQ(munmap(memory + most / 2, most / 2), 0);
  send(memory, most / 2, 4);  // the part that is left
  EXPECT_EQ(world_->fabric.counters().regions, regions);
  ASSERT_EQ(munmap(memory, most / 2), 0);
}

// The pages of a server's blocks are registered once, too, until their memory goes back to the
// system.
TEST_F(RdmaVanTest, BlocksStayRegisteredWithTheirPages) {
  constexpr std::size_t kBlock = runtime::PagePool::kPieceBytesMax;
  if (!runtime::PagePool::Takes(kBlock)) GTEST_SKIP() << "blocks are on the heap here";
  Start();
  std::byte* data = nullptr;
  std::vector<Buffer> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(Buffer::Allocate(kBlock, &data));
    std::memset(data, i, kBlock);
  }
  const auto send_all = [&] {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Message message = TextMessage("m");
      message.payload.push_back(blocks[i]);
      ASSERT_TRUE(worker_->van->Send(peer_, std::move(message)).ok());
      ASSERT_TRUE(RunUntilReceived(1));
      EXPECT_EQ(server_->recorder->messages[0].message.payload[0].data()[kBlock - 1],
                static_cast<std::byte>(i));
      server_->recorder->messages.clear();
    }
  };
  send_all();
  const std::uint64_t registrations = world_->fabric.counters().registrations;
  for (int round = 0; round < 3; ++round) send_all();
  EXPECT_EQ(world_->fabric.counters().registrations, registrations);
  EXPECT_LE(world_->fabric.counters().regions, 8u + 6u);  // pages, then slabs, slots and arenas
}

// A destroyed queue pair takes along completions and the receives that they used, so the device is
// polled first.
TEST_F(RdmaVanTest, ReceivesOfConnectionsThatEndAreNotLost) {
  Start();
  FakeFaults faults;
  faults.purge_rate = 1;
  faults.delayed_completion_rate = 0.3;
  world_->fabric.SetFaults(faults);
  for (std::uint64_t i = 0; i < 40; ++i) {
    for (int k = 0; k < 5; ++k) Send(100, i);
    if (i % 2 == 0) {
      ASSERT_TRUE(RunUntilReceived(1));
    }
    server_->recorder->messages.clear();
    server_->van->Disconnect(server_->recorder->ups.back().peer, absl::UnavailableError("a test"));
    worker_->van->Disconnect(peer_, absl::UnavailableError("a test"));
    peer_ = worker_->ConnectTo(server_.get(), address_);
  }
  EXPECT_EQ(world_->fabric.counters().lost_receives, 0u);
}

// The answer is written from where it is into the posted memory: no arena, no piece. Afterwards
// neither memory is registered.
TEST_F(RdmaVanTest, AnAnswerIsWrittenToWhereItWasPosted) {
  Start();
  const verbs::FakeCounters before = world_->fabric.counters();
  for (const std::size_t bytes : {65536u, 1048576u, 9437189u}) {
    std::string memory(bytes, '.');
    const std::uint64_t written = world_->fabric.counters().written_bytes;
    const ReceiveHandle handle = worker_->van->PostReceive(
        peer_, bytes, {reinterpret_cast<std::byte*>(memory.data()), bytes});
    EXPECT_EQ(world_->fabric.counters().registered_bytes, before.registered_bytes + bytes);
    Send(10, 1);
    ASSERT_TRUE(RunUntilReceived(1));
    server_->recorder->messages.clear();
    // Memory with an unknown lifetime.
    const std::string text = Bytes(bytes, 2);
    Message answer = TextMessage("answer");
    answer.payload.push_back(
        Buffer::Unowned(reinterpret_cast<const std::byte*>(text.data()), text.size()));
    answer.receive_token = bytes;
    DoneProbe done;
    ASSERT_TRUE(
        server_->van->Send(server_->recorder->ups[0].peer, std::move(answer), done.New()).ok());
    ASSERT_TRUE(world_->RunUntil([&] { return worker_->recorder->messages.size() == 1; }));
    EXPECT_EQ(static_cast<const void*>(worker_->recorder->messages[0].message.payload[0].data()),
              memory.data());
    EXPECT_TRUE(memory == text);
    worker_->recorder->messages.clear();
    ASSERT_TRUE(world_->RunUntil([&] { return done.state().called == 1; }));
    EXPECT_EQ(world_->fabric.counters().written_bytes, written + bytes);
    EXPECT_EQ(world_->fabric.counters().regions, before.regions);
  }
}

TEST_F(RdmaVanTest, MemoryThatCannotBeGrantedIsAnsweredThroughTheArena) {
  Start();
  std::string memory(1 << 20, '.');
  FakeFaults faults;
  faults.refuse_register_rate = 1;
  world_->fabric.SetFaults(faults);
  const ReceiveHandle handle = worker_->van->PostReceive(
      peer_, 7, {reinterpret_cast<std::byte*>(memory.data()), memory.size()});
  world_->fabric.SetFaults({});
  Message answer = TextMessage("answer", {Bytes(1 << 20, 2)});
  answer.receive_token = 7;
  ASSERT_TRUE(server_->van->Send(server_->recorder->ups[0].peer, std::move(answer)).ok());
  ASSERT_TRUE(world_->RunUntil([&] { return worker_->recorder->messages.size() == 1; }));
  EXPECT_TRUE(Text(worker_->recorder->messages[0].message.payload[0]) == Bytes(1 << 20, 2));
}

TEST_F(RdmaVanTest, FewCompletionsAreAskedFor) {
  Start();
  const verbs::FakeCounters before = world_->fabric.counters();
  std::size_t received = 0;
  server_->recorder->on_message = [&](PeerId, const Message&) { ++received; };
  for (std::size_t i = 0; i < 1600; ++i) {
    ASSERT_TRUE(worker_->van->Send(peer_, TextMessage("x", {std::string(9000, 'x')})).ok());
    if (i % 16 != 15) continue;
    ASSERT_TRUE(world_->RunUntil([&] { return received == i + 1; }));
  }
  const verbs::FakeCounters after = world_->fabric.counters();
  EXPECT_GE(after.requests - before.requests, 1600u);
  EXPECT_LE(after.signalled - before.signalled, (after.requests - before.requests) / 15);
}

TEST_F(RdmaVanTest, FramesOfAllSizesAroundTheBordersArrive) {
  Start();
  std::vector<std::size_t> sizes = {0, 1, 7, 8};
  for (const std::size_t border :
       {std::size_t{4096}, std::size_t{16 << 10}, std::size_t{32 << 10}, std::size_t{4 << 20}}) {
    for (const std::size_t off : {0, 1, 40, 100, 300}) sizes.push_back(border - off);
    sizes.push_back(border + 1);
  }
  sizes.push_back(20 << 20);  // longer than the arena
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Send(sizes[i], i);
    ASSERT_TRUE(RunUntilReceived(i + 1)) << sizes[i];
    ExpectReceived(i, sizes[i], i);
    server_->recorder->messages[i].message = {};
  }
}

// Frames that are held for long must not stop later ones, even if those are sent in pieces.
TEST_F(RdmaVanTest, AReceiverThatKeepsEverythingIsStillSentTo) {
  Start({.arena_units = 64});  // 256 KiB
  for (std::uint64_t i = 0; i < 30; ++i) {
    const std::size_t bytes = i % 3 == 0 ? 60'000 : i % 3 == 1 ? 40'000 : 300'000;
    Send(bytes, i);
    ASSERT_TRUE(RunUntilReceived(i + 1)) << i;
    ExpectReceived(i, bytes, i);
  }
}

TEST_F(RdmaVanTest, FramesMayBeReleasedOnOtherThreadsAndAfterTheVan) {
  Start();
  Send(100'000, 1);
  Send(100'000, 2);
  ASSERT_TRUE(RunUntilReceived(2));
  Buffer kept = server_->recorder->messages[0].message.payload[0];
  server_->recorder->messages.clear();
  server_->van.reset();
  EXPECT_TRUE(Text(kept) == Bytes(100'000, 1));
}

TEST_F(RdmaVanTest, WithoutMemoryForAnArenaMessagesComeInPieces) {
  Start();
  FakeFaults faults;
  faults.registered_bytes_max = world_->fabric.counters().registered_bytes;
  world_->fabric.SetFaults(faults);
  Send(1 << 20, 5);
  ASSERT_TRUE(RunUntilReceived(1));
  ExpectReceived(0, 1 << 20, 5);
  EXPECT_EQ(world_->fabric.counters().written_bytes, 0u);
}

TEST_F(RdmaVanTest, MemoryThatCannotBeRegisteredIsCopied) {
  Start();
  Send(100'000, 1);  // this makes the arena
  ASSERT_TRUE(RunUntilReceived(1));
  FakeFaults faults;
  faults.refuse_register_rate = 1;
  world_->fabric.SetFaults(faults);
  Send(1 << 20, 2);
  ASSERT_TRUE(RunUntilReceived(2));
  ExpectReceived(1, 1 << 20, 2);
}

// Each failure of a request ends the connection, and another one can be made.
TEST_F(RdmaVanTest, AFailedRequestEndsThePeerWithAStatus) {
  Start();
  for (const Outcome outcome :
       {Outcome::kFlushed, Outcome::kRetriesExceeded, Outcome::kReceiverNotReady,
        Outcome::kRemoteAccess, Outcome::kRemoteInvalid, Outcome::kLocalProtection,
        Outcome::kLocalLength, Outcome::kOther}) {
    world_->fabric.FailNext(outcome);
    Send(100, 1);
    const std::size_t downs = worker_->recorder->downs.size();
    ASSERT_TRUE(world_->RunUntil([&] { return worker_->recorder->downs.size() > downs; }));
    const absl::Status why = worker_->recorder->downs.back().why;
    EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
    EXPECT_THAT(std::string(why.message()), HasSubstr("the rdma connection broke"));
    ASSERT_TRUE(world_->RunUntil([&] { return server_->recorder->downs.size() > downs; }));
    peer_ = worker_->ConnectTo(server_.get(), address_);
  }
}

TEST_F(RdmaVanTest, ADeviceThatIsLostEndsItsPeers) {
  Start();
  world_->fabric.LoseDevices();
  ASSERT_TRUE(world_->RunUntil([&] {
    return worker_->recorder->downs.size() == 1 && server_->recorder->downs.size() == 1;
  }));
  peer_ = worker_->ConnectTo(server_.get(), address_);
  Send(100'000, 3);
  ASSERT_TRUE(RunUntilReceived(1));
}

// With every fault: the messages that arrive are an undamaged prefix of those sent on that
// connection, every send is reported, and nothing is left behind.
class RdmaFaultsTest : public testing::TestWithParam<int> {};

// A thousand seeds in all; AddressSanitizer takes ten times as long for each. They run on one
// thread, where ThreadSanitizer finds nothing.
constexpr int kSeedsEach = runtime::kThreadSanitized ? 1 : runtime::kSanitized ? 12 : 125;

TEST_P(RdmaFaultsTest, SeededFaultsLoseNothingInSilence) {
  for (int seed = GetParam() * kSeedsEach; seed < (GetParam() + 1) * kSeedsEach; ++seed) {
    FabricWorld world({.packets = 8, .arena_units = 64});
    auto draw = [&, n = 0u](std::uint64_t below) mutable {
      return runtime::RandomAt(static_cast<std::uint64_t>(seed), 7, n++) % below;
    };
    Node server(&world, IdentityOf(Role::kServer, 2));
    Node worker(&world, IdentityOf(Role::kWorker, 3));
    const std::string address = server.Listen();
    std::vector<std::uint64_t> received;  // on the current connection
    server.recorder->on_message = [&](PeerId, const Message& message) {
      std::uint64_t number = 0;
      ASSERT_TRUE(absl::SimpleAtoi(message.header.text(), &number));
      received.push_back(number);
      ASSERT_EQ(message.payload.size(), 1u);
      EXPECT_TRUE(Text(message.payload[0]) == Bytes(message.payload[0].size(), number))
          << "seed " << seed;
    };
    FakeFaults faults;
    faults.seed = static_cast<std::uint64_t>(seed) + 1;
    faults.delay_rate = 0.3;
    faults.delayed_completion_rate = 0.2;
    std::uint64_t number = 0;
    for (int life = 0; life < 3; ++life) {
      world.fabric.SetFaults(faults);
      received.clear();
      const PeerId peer = worker.van->Connect(address, absl::Seconds(30)).value();
      ASSERT_TRUE(world.RunUntil([&] { return worker.recorder->IsUp(peer); })) << "seed " << seed;
      faults.fail_rate = 0.004 * static_cast<double>(draw(4));
      faults.disconnect_rate = 0.002 * static_cast<double>(draw(3));
      faults.refuse_register_rate = 0.1 * static_cast<double>(draw(4));
      world.fabric.SetFaults(faults);
      const std::uint64_t first = number;
      DoneProbe done;
      int sent = 0;
      for (; sent < 12; ++sent) {
        const std::size_t bytes = draw(3) == 0 ? draw(200'000) : draw(20'000);
        if (!worker.van
                 ->Send(peer, TextMessage(absl::StrCat(number), {Bytes(bytes, number)}), done.New())
                 .ok()) {
          break;
        }
        ++number;
      }
      ASSERT_TRUE(world.RunUntil([&] { return done.state().called == sent; }, absl::Seconds(20)))
          << "seed " << seed << ": " << done.state().called << " of " << sent;
      ASSERT_TRUE(world.RunUntil(
          [&] { return received.size() == number - first || worker.recorder->IsDown(peer); },
          absl::Seconds(20)))
          << "seed " << seed;
      faults.fail_rate = faults.disconnect_rate = faults.refuse_register_rate = 0;
      world.fabric.SetFaults(faults);
      worker.van->Disconnect(peer, absl::OkStatus());
      ASSERT_TRUE(world.RunUntil([&] {
        return server.recorder->downs.size() == server.recorder->ups.size();
      })) << "seed "
          << seed;
      for (std::size_t i = 0; i < received.size(); ++i) ASSERT_EQ(received[i], first + i);
    }
    server.van.reset();
    worker.van.reset();
    const verbs::FakeCounters counters = world.fabric.counters();
    ASSERT_EQ(counters.connections, 0u) << "seed " << seed;
    ASSERT_EQ(counters.regions, 0u) << "seed " << seed;
    ASSERT_EQ(counters.writes_refused, 0u) << "seed " << seed;
    // No memory that the device was still to read was changed or deregistered, and nothing was
    // posted beyond its depth.
    ASSERT_EQ(counters.changed_early, 0u) << "seed " << seed;
    ASSERT_EQ(counters.deregistered_early, 0u) << "seed " << seed;
    ASSERT_EQ(counters.overposted, 0u) << "seed " << seed;
  }
}

// With every fault, and posted memory revoked at any moment: an answer that arrives is complete,
// and memory that belongs to its owner again is not written to.
TEST_P(RdmaFaultsTest, SeededAnswersAreWrittenOnlyWhileTheyArePosted) {
  constexpr std::size_t kBytes = 70'000;
  constexpr std::uint64_t kAnswers = 20;
  std::uint64_t in_place_bytes = 0, revoked = 0, broken = 0;
  for (int seed = GetParam() * kSeedsEach; seed < (GetParam() + 1) * kSeedsEach; ++seed) {
    FabricWorld world({.packets = 8, .arena_units = 64});
    auto draw = [&, n = 0u](std::uint64_t below) mutable {
      return runtime::RandomAt(static_cast<std::uint64_t>(seed), 8, n++) % below;
    };
    Node server(&world, IdentityOf(Role::kServer, 2));
    Node worker(&world, IdentityOf(Role::kWorker, 3));
    server.recorder->on_message = [&](PeerId peer, const Message& request) {
      std::uint64_t token = 0;
      ASSERT_TRUE(absl::SimpleAtoi(request.header.text(), &token));
      Message answer = TextMessage(request.header.text(), {Bytes(kBytes, token)});
      answer.receive_token = token;
      server.van->Send(peer, std::move(answer)).IgnoreError();
    };
    std::vector<std::string> memory(kAnswers + 1, std::string(kBytes, '.'));
    std::vector<ReceiveHandle> handles(kAnswers + 1);
    std::uint64_t answered = 0;
    const auto take_back = [&](std::uint64_t token) {
      handles[token].Revoke();
      memory[token].assign(kBytes, '!');
    };
    worker.recorder->on_message = [&](PeerId, const Message& answer) {
      std::uint64_t token = 0;
      ASSERT_TRUE(absl::SimpleAtoi(answer.header.text(), &token));
      EXPECT_TRUE(Text(answer.payload.at(0)) == Bytes(kBytes, token)) << "seed " << seed;
      take_back(token);
      ++answered;
    };
    FakeFaults faults;
    faults.seed = static_cast<std::uint64_t>(seed) + 1;
    faults.delay_rate = 0.3;
    faults.delayed_completion_rate = 0.2;
    faults.fail_rate = 0.004 * static_cast<double>(draw(3));
    faults.refuse_register_rate = 0.1 * static_cast<double>(draw(3));
    const PeerId peer = worker.ConnectTo(&server, server.Listen());
    world.fabric.SetFaults(faults);
    for (std::uint64_t token = 1; token <= kAnswers; ++token) {
      handles[token] = worker.van->PostReceive(
          peer, token, {reinterpret_cast<std::byte*>(memory[token].data()), kBytes});
      worker.van->Send(peer, TextMessage(absl::StrCat(token))).IgnoreError();
      const int turns = static_cast<int>(draw(4));
      world.RunUntil([n = 0, turns]() mutable { return n++ >= turns; });
      if (draw(4) != 0) continue;
      const std::uint64_t early = 1 + draw(token);
      if (handles[early].awaits(peer)) ++revoked;
      take_back(early);
    }
    ASSERT_TRUE(world.RunUntil(
        [&] { return answered == kAnswers || worker.recorder->IsDown(peer); }, absl::Seconds(20)))
        << "seed " << seed << ": " << answered << " answered";
    if (worker.recorder->IsDown(peer)) ++broken;
    for (std::uint64_t token = 1; token <= kAnswers; ++token) take_back(token);
    world.fabric.SetFaults({});
    world.RunFor(absl::Milliseconds(1));
    for (std::uint64_t token = 1; token <= kAnswers; ++token) {
      ASSERT_TRUE(memory[token] == std::string(kBytes, '!')) << "seed " << seed;
    }
    in_place_bytes += worker.van->counters().in_place_bytes;
    server.van.reset();
    worker.van.reset();
    const verbs::FakeCounters counters = world.fabric.counters();
    ASSERT_EQ(counters.connections, 0u) << "seed " << seed;
    ASSERT_EQ(counters.regions, 0u) << "seed " << seed;
    ASSERT_EQ(counters.deregistered_early, 0u) << "seed " << seed;
  }
  if (runtime::kThreadSanitized) return;  // a single seed need not have all of these
  EXPECT_GT(in_place_bytes, kSeedsEach * 2 * kBytes);
  EXPECT_GT(revoked, 0u);
  EXPECT_GT(broken, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RdmaFaultsTest, testing::Range(0, 8));

}  // namespace
}  // namespace leeway::van::rdma_van_test
