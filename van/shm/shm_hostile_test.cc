// Tests of a peer that writes arbitrary bytes into its shared memory: it is dropped, and no other
// peer is affected.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "proto/encoding/encoding.h"
#include "van/shm/shm_transport.h"
#include "van/testing/server_and_client.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

// Dials without a van.
struct ShmAttacker {
  explicit ShmAttacker(const std::string& address)
      : socket(ShmSocket::Connect(ShmTransport::NameIn(address).value()).value()) {}

  void Greet() {
    own = ShmOwnSegment::New(sizes).value();
    ASSERT_TRUE(socket->SendGreeting(sizes, own->fd()).ok());
  }
  template <class T>
  void Put(std::uint64_t at, const T& value) {
    std::memcpy(own->ring() + at, &value, sizeof(value));
  }
  void PutRecord(std::uint64_t at, std::uint32_t bytes, ShmRecordType type, std::uint32_t frames,
                 const std::vector<ShmPlace>& places = {}) {
    Put(at, ShmRecordHead{bytes, static_cast<std::uint32_t>(type), frames, 0});
    for (std::size_t i = 0; i < places.size(); ++i) {
      Put(at + sizeof(ShmRecordHead) + i * sizeof(ShmPlace), places[i]);
    }
  }
  void Publish(std::uint64_t tail) {
    own->control().tail.store(tail);
    socket->Wake();
  }
  bool Gone() const {
    // The server's greeting and wake-up bytes come first.
    while (true) {
      char bytes[64];
      const ssize_t got = ::recv(socket->fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
      if (got < 0) return false;
    }
  }

  ShmSizes sizes{.ring_bytes = kShmRingBytesMin, .arena_units = 16};
  std::shared_ptr<ShmSocket> socket;
  std::shared_ptr<ShmOwnSegment> own;
};

ShmPlace Place(ShmPlaceKind kind, std::uint64_t size, std::uint64_t at = 0) {
  return {size, at, static_cast<std::uint32_t>(kind), 1, 0, 0};
}

class ShmHostileTest : public testing::Test, protected ServerAndClient {
 protected:
  ShmHostileTest() : ServerAndClient(NetKind::kShm) { StartServer(); }
};

TEST_F(ShmHostileTest, BytesThatAreNoRecordEndTheConnection) {
  using enum ShmRecordType;
  using enum ShmPlaceKind;
  const std::vector<std::pair<const char*, std::function<void(ShmAttacker&)>>> cases = {
      {"more than the ring", [](ShmAttacker& a) { a.Publish(kShmRingBytesMin + 16); }},
      {"backwards", [](ShmAttacker& a) { a.Publish(~0ull - 15); }},
      {"not aligned", [](ShmAttacker& a) { a.Publish(24); }},
      {"an empty record", [](ShmAttacker& a) { a.Publish(16); }},
      {"a short record",
       [](ShmAttacker& a) {
         a.PutRecord(0, 8, kPad, 0);
         a.Publish(16);
       }},
      {"an uneven record",
       [](ShmAttacker& a) {
         a.PutRecord(0, 24, kPad, 0);
         a.Publish(64);
       }},
      {"more than is written",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kPad, 0);
         a.Publish(32);
       }},
      {"over the longest",
       [](ShmAttacker& a) {
         a.PutRecord(0, kShmRecordBytesMax + 16, kPad, 0);
         a.Publish(kShmRecordBytesMax + 16);
       }},
      {"2^32 - 16",
       [](ShmAttacker& a) {
         a.PutRecord(0, 0xfffffff0u, kPad, 0);
         a.Publish(64);
       }},
      {"over the end",
       [](ShmAttacker& a) {
         a.PutRecord(0, kShmRecordBytesMax, kPad, 0);
         a.PutRecord(kShmRecordBytesMax, kShmRecordBytesMax - 16, kPad, 0);
         a.PutRecord(kShmRingBytesMin - 16, 32, kPad, 0);
         a.Publish(kShmRingBytesMin);
       }},
      {"unknown type",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, static_cast<ShmRecordType>(77), 1);
         a.Publish(64);
       }},
      {"no frames",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 0);
         a.Publish(64);
       }},
      {"too many frames",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 3);
         a.Publish(64);
       }},
      {"2^32 - 1 frames",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, ~0u);
         a.Publish(64);
       }},
      {"unknown kind",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(static_cast<ShmPlaceKind>(9), 1)});
         a.Publish(64);
       }},
      {"inline beyond the record",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kInline, 17)});
         a.Publish(64);
       }},
      {"inline without end",
       [](ShmAttacker& a) {
         a.PutRecord(0, 80, kMessage, 2, {Place(kInline, ~0ull), Place(kInline, 8)});
         a.Publish(80);
       }},
      {"inline that wraps around",
       [](ShmAttacker& a) {
         a.PutRecord(0, 96, kMessage, 2, {Place(kInline, 16), Place(kInline, ~0ull - 20)});
         a.Publish(96);
       }},
      {"beyond the arena",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kArena, 1, 16)});
         a.Publish(64);
       }},
      {"beyond every arena",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kArena, 1, 1ull << 52)});
         a.Publish(64);
       }},
      {"over the arena's end",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kArena, 2 * kShmUnitBytes, 15)});
         a.Publish(64);
       }},
      {"nothing of the arena",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kArena, 0, 1)});
         a.Publish(64);
       }},
      {"pieces of nothing",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kPieces, 0)});
         a.Publish(64);
       }},
      {"pieces without end",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kPieces, 1ull << 62)});
         a.Publish(64);
       }},
      {"a header as long as a payload may be",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kPieces, 1 << 29)});
         a.Publish(64);
       }},
      {"a piece of no frame",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kPiece, 1, {Place(kArena, 1, 0)});
         a.Publish(64);
       }},
      {"a piece too short to have a place",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kPieces, 100)});
         a.PutRecord(64, 32, kPiece, 1);
         a.Publish(96);
       }},
      {"a piece longer than what is missing",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kPieces, 100)});
         a.PutRecord(64, 64, kPiece, 1, {Place(kArena, 101, 0)});
         a.Publish(128);
       }},
      {"a message within another",
       [](ShmAttacker& a) {
         a.PutRecord(0, 64, kMessage, 1, {Place(kPieces, 100)});
         a.PutRecord(64, 64, kMessage, 1, {Place(kInline, 1)});
         a.Publish(128);
       }},
  };
  for (const auto& [what, attack] : cases) {
    SCOPED_TRACE(what);
    ShmAttacker attacker(address_);
    attacker.Greet();
    attack(attacker);
    ASSERT_TRUE(RunUntil([&] { return attacker.Gone(); }));
    EXPECT_EQ(server_->van->counters().messages_received,
              server_->van->counters().messages_sent);  // those of the client
  }
  ExpectClientUnharmed();
}

TEST_F(ShmHostileTest, BytesThatAreNoGreetingEndTheConnection) {
  const auto send = [](ShmAttacker& a, ShmGreeting greeting, std::vector<int> fds) {
    iovec bytes{&greeting, sizeof(greeting)};
    alignas(cmsghdr) char space[CMSG_SPACE(4 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = space;
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(a.socket->fd(), &message, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(greeting)));
  };
  ShmGreeting good{{}, kShmVersion, kShmRingBytesMin, 16, 0};
  std::memcpy(good.magic, kShmMagic, sizeof(kShmMagic));
  const auto segment = ShmOwnSegment::New({kShmRingBytesMin, 16}).value();
  const UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 8 << 20), 0);
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd pipe_out(ends[0]), pipe_in(ends[1]);
  const auto changed = [&](const std::function<void(ShmGreeting&)>& change) {
    ShmGreeting greeting = good;
    change(greeting);
    return greeting;
  };
  struct Case {
    const char* what;
    ShmGreeting greeting;
    std::vector<int> fds;
  };
  const std::vector<Case> cases = {
      {"magic", changed([](auto& g) { g.magic[0] = 'X'; }), {segment->fd()}},
      {"version", changed([](auto& g) { g.version = 99; }), {segment->fd()}},
      {"no ring", changed([](auto& g) { g.ring_bytes = 0; }), {segment->fd()}},
      {"odd ring", changed([](auto& g) { g.ring_bytes += 4096; }), {segment->fd()}},
      {"huge ring", changed([](auto& g) { g.ring_bytes = 1u << 31; }), {segment->fd()}},
      {"no arena", changed([](auto& g) { g.arena_units = 0; }), {segment->fd()}},
      {"huge arena", changed([](auto& g) { g.arena_units = ~0u; }), {segment->fd()}},
      {"more than it is", changed([](auto& g) { g.arena_units = 4096; }), {segment->fd()}},
      {"no segment", good, {}},
      {"two segments", good, {segment->fd(), segment->fd()}},
      {"can be shortened", good, {unsealed.get()}},
      {"a file", good, {file.get()}},
      {"a pipe", good, {pipe_out.get()}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const std::uint64_t before = server_->van->counters().handshakes_failed;
    ShmAttacker attacker(address_);
    send(attacker, c.greeting, c.fds);
    ASSERT_TRUE(RunUntil([&] { return attacker.Gone(); }));
    EXPECT_EQ(server_->van->counters().handshakes_failed, before + 1);
  }
  ShmAttacker garbage(address_);
  ASSERT_EQ(::send(garbage.socket->fd(), "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
  EXPECT_TRUE(RunUntil([&] { return garbage.Gone(); }));
  ExpectClientUnharmed();
}

TEST_F(ShmHostileTest, RandomBytesInTheRing) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    ShmAttacker attacker(address_);
    attacker.Greet();
    for (std::uint64_t at = 0; at < 4096; at += 8) {
      // Mostly small numbers, so that more checks are passed.
      attacker.Put(at, random() % 4 == 0 ? random() : random() % 4 << 32 | random() % 8 * 16);
    }
    attacker.Publish(random() % 256 * 16);
    world_->RunFor(absl::Microseconds(200));
  }
  ExpectClientUnharmed();
}

// ---- memory that is exported ----

ShmPlace Exported(std::uint64_t size, std::uint64_t at = 0, std::uint32_t file = 0,
                  std::uint32_t exported = 0) {
  return {size, at, static_cast<std::uint32_t>(ShmPlaceKind::kExported), 1, file, exported};
}

// Says hello as a member does, so that the van reports why it is dropped. Returns the bytes of the
// ring that this takes.
std::uint32_t SayHello(ShmAttacker& attacker, std::uint32_t node) {
  proto::Hello hello;
  hello.role = Role::kWorker;
  hello.node = node;
  hello.incarnation = 1;
  const Buffer header = proto::Encode(hello);
  Prefix prefix;
  prefix.kind = Kind::kSession;
  std::vector<std::byte> head(kPrefixBytes + header.size());
  PutPrefix(prefix, head.data());
  std::memcpy(head.data() + kPrefixBytes, header.data(), header.size());
  const auto bytes = static_cast<std::uint32_t>(48 + ShmAligned(head.size()));
  attacker.PutRecord(0, bytes, ShmRecordType::kMessage, 1,
                     {Place(ShmPlaceKind::kInline, head.size())});
  std::memcpy(attacker.own->ring() + 48, head.data(), head.size());
  attacker.Publish(bytes);
  return bytes;
}

// A message whose first frame is invalid, so that it ends the connection even if it is taken. The
// test is of the reason, and that it is read without harm.
void PutMessageWith(ShmAttacker& a, const ShmPlace& place) {
  a.PutRecord(0, 96, ShmRecordType::kMessage, 2, {Place(ShmPlaceKind::kInline, 8), place});
  a.Publish(96);
}

TEST_F(ShmHostileTest, ExportedMemoryThatIsNoneEndsTheConnection) {
  constexpr std::size_t kFileBytes = 8192;
  const auto memory = runtime::SealedMemory::New(kFileBytes).value();
  const UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kFileBytes), 0);
  const UniqueFd empty(::memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(empty.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const UniqueFd enormous(::memfd_create("enormous", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(enormous.get(), kShmExportedBytesMax + 1), 0);
  ASSERT_EQ(::fcntl(enormous.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd pipe_out(ends[0]), pipe_in(ends[1]);
  const auto exporting = [&](int fd, const ShmPlace& place) {
    return [=](ShmAttacker& a) {
      ASSERT_TRUE(a.socket->HandOver(fd));
      PutMessageWith(a, place);
    };
  };
  const int fd = memory.fd.get();
  const std::vector<std::pair<const char*, std::function<void(ShmAttacker&)>>> cases = {
      {"nothing handed over", [](ShmAttacker& a) { PutMessageWith(a, Exported(1)); }},
      {"another file", exporting(fd, Exported(1, 0, 1))},
      {"file 2^32 - 1", exporting(fd, Exported(1, 0, ~0u))},
      {"no bytes", exporting(fd, Exported(0))},
      {"one too many", exporting(fd, Exported(kFileBytes + 1))},
      {"over the end", exporting(fd, Exported(2, kFileBytes - 1))},
      {"behind the end", exporting(fd, Exported(1, kFileBytes))},
      {"that wraps around", exporting(fd, Exported(~0ull, 2))},
      {"from 2^64 - 1", exporting(fd, Exported(2, ~0ull))},
      {"an export beyond all", exporting(fd, Exported(1, 0, 0, kShmExportsMax))},
      {"export 2^32 - 1", exporting(fd, Exported(1, 0, 0, ~0u))},
      {"can be shortened", exporting(unsealed.get(), Exported(1))},
      {"empty", exporting(empty.get(), Exported(1))},
      {"more than may be", exporting(enormous.get(), Exported(1))},
      {"a file", exporting(file.get(), Exported(1))},
      {"a pipe", exporting(pipe_out.get(), Exported(1))},
      {"a header in it",
       [&](ShmAttacker& a) {
         ASSERT_TRUE(a.socket->HandOver(fd));
         a.PutRecord(0, 64, ShmRecordType::kMessage, 1, {Exported(100)});
         a.Publish(64);
       }},
      {"taken back before",
       [&](ShmAttacker& a) {
         ASSERT_TRUE(a.socket->HandOver(fd));
         a.PutRecord(0, 48, ShmRecordType::kTakenBack, 1, {Exported(0)});
         a.PutRecord(48, 96, ShmRecordType::kMessage, 2,
                     {Place(ShmPlaceKind::kInline, 8), Exported(1)});
         a.Publish(144);
       }},
      {"taken back, never given",
       [](ShmAttacker& a) {
         a.PutRecord(0, 48, ShmRecordType::kTakenBack, 1, {Exported(0)});
         a.Publish(48);
       }},
      {"taken back without saying what",
       [](ShmAttacker& a) {
         a.PutRecord(0, 16, ShmRecordType::kTakenBack, 0);
         a.Publish(16);
       }},
  };
  for (const auto& [what, attack] : cases) {
    SCOPED_TRACE(what);
    ShmAttacker attacker(address_);
    attacker.Greet();
    attack(attacker);
    ASSERT_TRUE(RunUntil([&] { return attacker.Gone(); }));
  }
  // The message with it would end the connection, too, so it must not have been read.
  std::uint32_t node = 100;
  for (const ShmPlace& outside :
       {Exported(kFileBytes + 1), Exported(2, kFileBytes - 1), Exported(1, kFileBytes),
        Exported(~0ull, 2), Exported(2, ~0ull)}) {
    ShmAttacker attacker(address_);
    attacker.Greet();
    const std::uint32_t said = SayHello(attacker, ++node);
    const std::size_t known = server_->recorder->ups.size();
    ASSERT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == known + 1; }));
    const PeerId peer = server_->recorder->ups.back().peer;
    ASSERT_TRUE(attacker.socket->HandOver(fd));
    attacker.PutRecord(said, 96, ShmRecordType::kMessage, 2,
                       {Place(ShmPlaceKind::kInline, 8), outside});
    attacker.Publish(said + 96);
    ASSERT_TRUE(RunUntil([&] { return server_->recorder->IsDown(peer); }));
    EXPECT_THAT(std::string(server_->recorder->WhyDown(peer).message()), HasSubstr("export 0"));
  }
  ExpectClientUnharmed();
}

int MappingsOf(const char* name) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += absl::StrContains(line, name);
  return count;
}

TEST_F(ShmHostileTest, AThousandMemoryFilesAreTooManyAndLeaveNothing) {
  const UniqueFd file(::memfd_create("of-a-thousand", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  {
    ShmAttacker attacker(address_);
    attacker.Greet();
    int most = 0;
    for (int i = 0; i < 1000 && !attacker.Gone(); ++i) {
      attacker.socket->HandOver(file.get());
      world_->RunFor(absl::Microseconds(100));
      most = std::max(most, MappingsOf("of-a-thousand"));
    }
    ASSERT_TRUE(RunUntil([&] { return attacker.Gone(); }));
    EXPECT_GT(most, 10);
    EXPECT_LE(most, static_cast<int>(kShmExportedFilesMax));
  }
  ExpectClientUnharmed();
  EXPECT_EQ(MappingsOf("of-a-thousand"), 0);
  EXPECT_EQ(descriptors(), before);
}

TEST_F(ShmHostileTest, ManyDescriptorsAtOnceEndTheConnectionAndStayClosed) {
  const auto memory = runtime::SealedMemory::New(4096).value();
  ShmAttacker attacker(address_);
  attacker.Greet();
  constexpr std::size_t kFdsSent = 200;
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(kFdsSent * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(kFdsSent * sizeof(int));
  const std::vector<int> fds(kFdsSent, memory.fd.get());
  std::memcpy(CMSG_DATA(part), fds.data(), kFdsSent * sizeof(int));
  ASSERT_EQ(::sendmsg(attacker.socket->fd(), &message, MSG_NOSIGNAL), 1);
  ASSERT_TRUE(RunUntil([&] { return attacker.Gone(); }));
  ExpectClientUnharmed();
}

// The memory changes while it is read.
TEST_F(ShmHostileTest, MemoryThatChangesWhileItIsRead) {
  using enum ShmRecordType;
  for (int round = 0; round < 30; ++round) {
    ShmAttacker attacker(address_);
    attacker.Greet();
    for (std::uint64_t at = 0; at < kShmRingBytesMin; at += 64) {
      attacker.PutRecord(at, 64, kMessage, 1, {Place(ShmPlaceKind::kInline, 16)});
    }
    attacker.PutRecord(0, 64, kMessage, 1, {Place(ShmPlaceKind::kPieces, 1 << 20)});
    for (std::uint64_t at = 64; at < kShmRingBytesMin; at += 64) {
      attacker.PutRecord(at, 64, kPiece, 1, {Place(ShmPlaceKind::kArena, 100, at / 64 % 16)});
    }
    std::atomic<bool> stop{false};
    std::thread scribbler([&] {
      std::mt19937 random(round);
      while (!stop) {
        const std::uint64_t at = random() % (kShmRingBytesMin / 4) * 4;
        const std::uint32_t value = random() % 2 == 0 ? random() : random() % 128;
        std::memcpy(attacker.own->ring() + at, &value, sizeof(value));
      }
    });
    attacker.Publish(kShmRingBytesMin);
    // It may end in the middle of a message, which is no offence.
    world_->RunFor(absl::Milliseconds(5));
    stop = true;
    scribbler.join();
  }
  ExpectClientUnharmed();
}

// The peer says a valid hello, and then claims to have read bytes that were never sent.
TEST_F(ShmHostileTest, AReaderThatClaimsTooMuch) {
  ShmAttacker attacker(address_);
  attacker.Greet();
  SayHello(attacker, 99);
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 2; }));
  const PeerId peer = server_->recorder->ups[1].peer;
  attacker.own->control().head.store(1ull << 40);
  // While there is room, the sender does not read the claim.
  for (int i = 0; i < 10'000 && !server_->recorder->IsDown(peer); ++i) {
    server_->van->Send(peer, TextMessage("m", {std::string(4000, 'x')})).IgnoreError();
    world_->RunFor(absl::Microseconds(100));
  }
  ASSERT_TRUE(server_->recorder->IsDown(peer));
  EXPECT_EQ(server_->recorder->WhyDown(peer).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(server_->recorder->WhyDown(peer).message()),
              HasSubstr("claims to have read"));
  ExpectClientUnharmed();
}

// The kernel closes descriptors that came and for which this process has no room.
TEST(ShmPeerSegmentTest, WithoutADescriptorItIsThisProcessThatLacksOne) {
  const absl::Status status = ShmPeerSegment::Map(UniqueFd(), ShmSizes()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace leeway::van
