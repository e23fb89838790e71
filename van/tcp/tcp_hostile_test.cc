// Tests of a peer that sends arbitrary bytes over TCP: it is dropped, and no other peer is
// affected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/limits.h"
#include "runtime/memory/page_pool.h"
#include "van/testing/server_and_client.h"
#include "van/testing/tcp_attacker.h"
#include "van/testing/test_processes.h"

namespace leeway::van {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class TcpHostileTest : public testing::Test, protected ServerAndClient {
 protected:
  TcpHostileTest() : ServerAndClient(NetKind::kTcp) { StartServer(); }
  // No loop is woken for what happens at a raw socket.
  bool RunUntilGone(const TcpAttacker& attacker) {
    return RunUntil([&] {
      world_->RunFor(absl::Milliseconds(1));
      return attacker.Gone();
    });
  }
};

TEST_F(TcpHostileTest, BytesThatAreNoGreetingEndTheConnection) {
  std::string newer = Greeting();
  newer[kTcpVersionAt] = kTcpVersion + 1;
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string("\xff\0\0\0\0\0\0\0\x01\x7f", 10),
        std::string(1, '\xff'), std::string(100, '\0'), std::string("LWYshm\r\n"), newer}) {
    const std::uint64_t before = server_->van->counters().handshakes_failed;
    TcpAttacker attacker(address_);
    attacker.Say(bytes);
    ASSERT_TRUE(RunUntilGone(attacker)) << bytes;
    EXPECT_EQ(server_->van->counters().handshakes_failed, before + 1) << bytes;
  }
  ExpectClientUnharmed();
}

TEST_F(TcpHostileTest, PeersThatComeAndGoAreForgotten) {
  const int descriptors = OpenDescriptors();
  for (int i = 0; i < 200; ++i) {
    const TcpAttacker attacker(address_);
    if (i % 3 == 1) attacker.Say(Greeting().substr(0, static_cast<std::size_t>(i) % 16));
    if (i % 3 == 2) attacker.Reset();
  }
  EXPECT_TRUE(RunUntil([&] { return server_->van->counters().handshakes_failed == 200; }));
  ExpectClientUnharmed();
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST_F(TcpHostileTest, AGreetingThatDoesNotComeHoldsNoPlaceForEver) {
  Limits limits;
  limits.hello_timeout = absl::Seconds(1);
  StartServer(limits);
  const TcpAttacker silent(address_), slow(address_), halted(address_);
  slow.Say(Greeting().substr(0, 1));
  halted.Say(Greeting().substr(0, 15));
  ASSERT_TRUE(RunUntilGone(silent));
  ASSERT_TRUE(RunUntilGone(slow));
  ASSERT_TRUE(RunUntilGone(halted));
  EXPECT_EQ(server_->van->counters().offenders_dropped, 3u);
  ExpectClientUnharmed();
}

TEST_F(TcpHostileTest, BytesThatComeOneByOneAreUnderstood) {
  const TcpAttacker slow(address_);
  const std::string bytes =
      Greeting() + HelloMessage() + Framed(Kind::kData, "m", {"abc", "", "d"}, 1000);
  for (const char byte : bytes) {
    slow.Say(absl::string_view(&byte, 1));
    world_->RunFor(absl::Microseconds(100));
  }
  ASSERT_TRUE(RunUntil([&] { return server_->van->counters().messages_received == 1; }));
  ExpectClientUnharmed();
}

TEST_F(TcpHostileTest, BytesThatAreNoMessageEndTheConnection) {
  const std::uint32_t most = ~0u;
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"2^32 - 1 bytes at first", Record(most, 0)},
      {"a first frame too long", Record(2 * proto::kHeaderBytesMax + 1, 0)},
      {"2^32 - 1 frames", Record(kPrefixBytes, most)},
      {"65536 frames", Record(kPrefixBytes, 65536)},
      {"2^64 - 1 bytes", Record(kPrefixBytes, 1) + Head() + Length(~std::uint64_t{0})},
      {"2^63 bytes", Record(kPrefixBytes, 1) + Head() + Length(std::uint64_t{1} << 63)},
      {"a frame too long, of those too many",
       Record(kPrefixBytes, 20) + Head() +
           std::string(9 * (kTcpLengthBytes + kTcpChecksumBytes), '\0') +
           Length(std::uint64_t{1} << 40)},
      {"nothing", Record(0, 0) + kNone},
      {"less than a prefix", Record(3, 0) + "xxx" + kNone},
      {"no prefix", Record(kPrefixBytes, 0) + Head('x')},
      {"no frames at all, said at length", Record(0, 65535) + std::string(65535 * 16, '\0')},
  };
  for (const auto& [what, bytes] : cases) {
    SCOPED_TRACE(what);
    TcpAttacker attacker(address_);
    attacker.Say(Greeting() + bytes);
    ASSERT_TRUE(RunUntilGone(attacker));
  }
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
  EXPECT_EQ(server_->van->counters().messages_received, 0u);
  ExpectClientUnharmed();
}

// A peer that announces a large frame gets no memory for it before bytes of it have come.
TEST_F(TcpHostileTest, AnAnnouncementCostsNothingUntilItsBytesCome) {
  const std::uint64_t before = ResidentBytes();
  std::vector<std::unique_ptr<TcpAttacker>> attackers;
  for (int i = 0; i < 16; ++i) {
    attackers.push_back(std::make_unique<TcpAttacker>(address_));
    attackers.back()->Say(Greeting());
    attackers.back()->Say(i % 2 == 0
                              ? Record(2 * proto::kHeaderBytesMax, 0)
                              : Record(kPrefixBytes, 1) + Head() + Length(std::uint64_t{1} << 30));
  }
  world_->RunFor(absl::Milliseconds(50));
  EXPECT_LT(ResidentBytes(), before + (64 << 20));
  ExpectClientUnharmed();
}

// A guest gets no memory for a payload of a block's size either, not even with its first bytes.
TEST_F(TcpHostileTest, AStrangersPayloadTakesNoMemory) {
  const std::uint64_t before = ResidentBytes();
  const std::uint64_t in_pages_before = runtime::PagePool::Shared().in_use_bytes();
  std::vector<std::unique_ptr<TcpAttacker>> attackers;
  for (int i = 0; i < 100; ++i) {
    attackers.push_back(std::make_unique<TcpAttacker>(address_));
    attackers.back()->Say(Greeting() + Record(kPrefixBytes, 1) + Head() +
                          Length(std::uint64_t{1} << 20) + "x");
  }
  world_->RunFor(absl::Milliseconds(50));
  EXPECT_EQ(runtime::PagePool::Shared().in_use_bytes(), in_pages_before);
  EXPECT_LT(ResidentBytes(), before + (32 << 20));
  ExpectClientUnharmed();
  // The complete message shows that it is no hello.
  attackers.back()->Say(std::string((1 << 20) - 1, 'x'));
  EXPECT_TRUE(RunUntilGone(*attackers.back()));
}

TEST_F(TcpHostileTest, FramesTooManyAreCountedAndThrownAway) {
  const std::vector<std::string> payload(5000, std::string(100, 'x'));
  TcpAttacker attacker(address_);
  attacker.Say(Greeting() + HelloMessage(kTestCluster));
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 2; }));
  const std::string bytes = Framed(Kind::kData, "m", payload, 1000);
  for (std::size_t at = 0; at < bytes.size(); at += 10'000) {
    attacker.Say(absl::string_view(bytes).substr(at, 10'000));
    world_->RunFor(absl::Microseconds(100));
  }
  ASSERT_TRUE(RunUntil([&] { return !server_->recorder->downs.empty(); }));
  EXPECT_TRUE(attacker.Gone());
  EXPECT_EQ(server_->van->counters().malformed_messages, 1u);
  EXPECT_THAT(std::string(server_->recorder->downs.at(0).why.message()), HasSubstr("5001 frames"));
  ExpectClientUnharmed();
}

TEST_F(TcpHostileTest, APeerThatBreaksOffAnywhereIsGone) {
  const std::string bytes = Greeting() + HelloMessage(kTestCluster) +
                            Framed(Kind::kData, "m", {std::string(1000, 'a'), "b"}, 2000) +
                            Framed(Kind::kData, "n", {std::string(300'000, 'c')}, 400'000);
  const int descriptors = OpenDescriptors();
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const TcpAttacker attacker(address_);
    attacker.Say(bytes.substr(0, random() % (round % 2 == 0 ? bytes.size() : 1500)));
    if (round % 3 == 0) attacker.Reset();
    if (round % 5 == 0) world_->RunFor(absl::Microseconds(200));
  }
  EXPECT_TRUE(RunUntil([&] {
    return OpenDescriptors() == descriptors &&
           server_->recorder->ups.size() == server_->recorder->downs.size() + 1;
  }));
  ExpectClientUnharmed();
}

TEST_F(TcpHostileTest, RandomBytes) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const TcpAttacker attacker(address_);
    std::string bytes = Greeting();
    if (round % 2 == 0) bytes += HelloMessage(round % 4 == 0 ? kTestCluster : 0);
    const std::size_t length = bytes.size() + random() % 4000;
    // Mostly small numbers, so that more checks are passed.
    while (bytes.size() < length) {
      bytes += Number(random() % 8 == 0 ? random() : random() % 3 << 32 | random() % 64);
    }
    attacker.Say(bytes);
    world_->RunFor(absl::Microseconds(200));
  }
  ExpectClientUnharmed();
}

// It fills all buffers and is dropped; no other peer waits for it.
TEST_F(TcpHostileTest, OneThatNeverReadsHoldsNobodyUp) {
  const TcpAttacker attacker(address_);
  const int small = 4096;
  ::setsockopt(attacker.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  attacker.Say(Greeting() + HelloMessage(kTestCluster));
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 2; }));
  const PeerId peer = server_->recorder->ups[1].peer;
  DoneProbe done;
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(
        server_->van->Send(peer, TextMessage("m", {std::string(1 << 20, 'x')}), done.New()).ok());
  }
  ExpectClientUnharmed();
  server_->van->Disconnect(peer, absl::InternalError("enough"));
  EXPECT_TRUE(RunUntil([&] { return done.state().called == 32; }));
  ExpectClientUnharmed();
}

TEST_F(TcpHostileTest, OutOfDescriptorsItWaitsForSome) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const TcpAttacker waits(address_);  // connected, and not accepted yet
  rlimit none = before;
  testing::internal::CaptureStderr();
  const int next = ::dup(0);
  ::close(next);
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  world_->RunFor(absl::Milliseconds(50));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("ulimit -n"));
  waits.Say("x");
  EXPECT_TRUE(RunUntilGone(waits));
  EXPECT_EQ(server_->van->counters().handshakes_failed, 1u);
  ExpectClientUnharmed();
}

// What this process lacks is no fault of the one that it dials.
TEST_F(TcpHostileTest, OutOfDescriptorsItSaysSoOfWhatItCannotDial) {
  Node worker(world_.get(), IdentityOf(Role::kWorker, 4));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  const int next = ::dup(0);
  ::close(next);
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::StatusOr<PeerId> peer = worker.van->Connect(address_, absl::Milliseconds(200));
  const absl::Status unknown =
      worker.van->Connect("tcp://no.such.host.invalid:1", absl::Seconds(1)).status();
  EXPECT_TRUE(peer.ok()) << peer.status();
  RunUntil([&] { return worker.recorder->IsDown(*peer); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(worker.recorder->IsDown(*peer));
  for (const absl::Status& why : {worker.recorder->WhyDown(*peer), unknown}) {
    EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted) << why;
    EXPECT_THAT(std::string(why.message()), AllOf(HasSubstr(absl::StrCat("ulimit -n, now ", next)),
                                                  Not(HasSubstr("check that it runs there"))));
  }
  ExpectClientUnharmed();
}

}  // namespace
}  // namespace leeway::van
