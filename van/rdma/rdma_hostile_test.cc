// Tests of a peer over rdma that posts arbitrary requests: it is dropped or confined to the memory
// that it was granted, and other peers are served as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "van/address/tcp_address.h"
#include "van/little_endian.h"
#include "van/prefix.h"
#include "van/rdma/rdma_format.h"
#include "van/rdma/testing/fabric_world.h"
#include "van/session/hello.h"

namespace leeway::van::rdma_hostile_test {
namespace {

using testing::HasSubstr;
using verbs::EventKind;

constexpr std::uint32_t kSlotBytes = 16 << 10;
constexpr std::uint32_t kReceives = 64;

using Body = std::vector<std::byte>;

template <class T>
void Append(Body* body, const T& value) {
  body->resize(body->size() + sizeof(T));
  Put(value, body->data() + body->size() - sizeof(T));
}
void AppendPlace(Body* body, RdmaPlaceKind kind, std::uint64_t bytes, std::uint32_t unit = 0) {
  body->resize(body->size() + kRdmaPlaceBytes);
  Put(RdmaPlace{bytes, unit, kind}, body->data() + body->size() - kRdmaPlaceBytes);
}
void AppendText(Body* body, std::string text) {
  text.resize(RdmaPadded(text.size()));
  for (const char c : text) body->push_back(static_cast<std::byte>(c));
}
std::string PrefixText(Kind kind, std::uint16_t frames, std::uint64_t token = 0) {
  std::string text(kPrefixBytes, '\0');
  PutPrefix({.kind = kind, .frames = frames, .receive_token = token},
            reinterpret_cast<std::byte*>(text.data()));
  return text;
}

std::uint64_t AddressBytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// An attacker with Verbs and no van.
class RdmaAttacker {
 public:
  explicit RdmaAttacker(FabricWorld* world)
      : world_(world), verbs_(world->provider().Open({}).value()) {}
  ~RdmaAttacker() {
    connection_ = nullptr;
    regions_.clear();
  }

  void Connect(const std::string& address) {
    const TcpAddress parsed = ParseTcpAddress(address).value();
    const ResolvedHost host = ResolveToConnect(parsed.host).value();
    connection_ = verbs_->Dial(SocketAddressOf(host, parsed.port).value()).value();
    ASSERT_TRUE(Until(EventKind::kResolved));
    receives_ = Register(kReceives * kSlotBytes);
    for (std::uint32_t i = 0; i < kReceives; ++i) PostReceive(i);
    const auto greeting = PutRdmaGreeting({.slot_bytes = kSlotBytes, .packets = kReceives});
    ASSERT_TRUE(connection_->Connect(greeting).ok());
    ASSERT_TRUE(Until(EventKind::kEstablished));
  }
  void SayHello(const Identity& identity) {
    const Buffer header = proto::Encode(HelloFrom(identity));
    SendMessage({PrefixText(Kind::kSession, 1) + std::string(header.text())});
    ASSERT_TRUE(RunUntil([&] { return !heard_.empty(); }));
  }

  // Sends a packet with this head and body.
  void Send(RdmaHead head, const Body& body) {
    if (acknowledges_) acknowledged_ = taken_;
    head.taken = acknowledged_;
    head.bytes = static_cast<std::uint32_t>(kRdmaHeadBytes + body.size());
    std::vector<std::byte> packet(head.bytes);
    Put(head, packet.data());
    std::copy(body.begin(), body.end(), packet.begin() + kRdmaHeadBytes);
    SendBytes(packet);
  }
  void Send(RdmaPacketType type, const Body& body = {}) { Send(RdmaHead{.type = type}, body); }
  void SendFrames(std::uint16_t frames, const Body& body) {
    Send(RdmaHead{.type = RdmaPacketType::kMessage, .frames = frames}, body);
  }
  void SendMessage(const std::vector<std::string>& frames) {
    Body body;
    for (const std::string& frame : frames) {
      AppendPlace(&body, RdmaPlaceKind::kInline, frame.size());
    }
    for (const std::string& frame : frames) AppendText(&body, frame);
    SendFrames(static_cast<std::uint16_t>(frames.size()), body);
  }
  void SendBytes(std::span<const std::byte> bytes) {
    const verbs::Segment segment = SegmentOf(bytes);
    verbs::SendRequest request;
    request.segments = {&segment, 1};
    request.signalled = true;
    connection_->Post({&request, 1}).IgnoreError();
    Poll();
  }
  void Write(std::uint64_t address, std::uint32_t key, const std::string& text) {
    const verbs::Segment segment =
        SegmentOf({reinterpret_cast<const std::byte*>(text.data()), text.size()});
    verbs::SendRequest request;
    request.opcode = verbs::Opcode::kWrite;
    request.segments = {&segment, 1};
    request.remote_address = address;
    request.remote_key = key;
    request.signalled = true;
    connection_->Post({&request, 1}).IgnoreError();
    Poll();
  }

  // Runs for less than the time that a guest has for its hello.
  bool RunUntil(const std::function<bool()>& done) {
    return world_->RunUntil(
        [&] {
          Poll();
          return done();
        },
        absl::Seconds(5));
  }
  void Turn(int times) {
    RunUntil([times]() mutable { return times-- == 0; });
  }
  // From now on it does not report the packets that it has taken.
  void StopAcknowledging() { acknowledges_ = false; }
  bool Gone() const { return gone_; }
  const std::vector<RdmaGrant>& grants() const { return grants_; }
  struct Arena {
    std::uint64_t address = 0;
    std::uint32_t key = 0, units = 0;
  };
  const std::optional<Arena>& arena() const { return arena_; }
  verbs::Outcome worst() const { return worst_; }

 private:
  bool Until(EventKind kind) {
    return world_->RunUntil([&] {
      verbs::Event event;
      return verbs_->NextEvent(&event) && event.kind == kind;
    });
  }
  std::byte* Register(std::size_t bytes) {
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    regions_.push_back(connection_->device()
                           ->Register(memory_.back().get(), bytes, /*remote_write=*/false)
                           .value());
    return memory_.back().get();
  }
  verbs::Segment SegmentOf(std::span<const std::byte> bytes) {
    std::byte* const copy = Register(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy);
    return {copy, static_cast<std::uint32_t>(bytes.size()), regions_.back()->local_key()};
  }
  void PostReceive(std::uint64_t id) {
    ASSERT_TRUE(connection_->device()
                    ->PostReceive(id | kReceive, {receives_ + id * kSlotBytes, kSlotBytes,
                                                  regions_.front()->local_key()})
                    .ok());
  }
  void Poll() {
    verbs::Event event;
    while (verbs_->NextEvent(&event)) {
      if (event.kind == EventKind::kDisconnected) gone_ = true;
    }
    std::array<verbs::Completion, 16> completions;
    const std::size_t count = connection_->device()->Poll(completions);
    for (std::size_t i = 0; i < count; ++i) {
      const verbs::Completion& one = completions[i];
      if (one.outcome != verbs::Outcome::kOk) worst_ = one.outcome;
      if ((one.id & kReceive) == 0 || one.outcome != verbs::Outcome::kOk) continue;
      const std::uint64_t slot = one.id & ~kReceive;
      Hear({receives_ + slot * kSlotBytes, one.bytes});
      PostReceive(slot);
    }
  }
  void Hear(std::span<const std::byte> packet) {
    const RdmaHead head = GetRdmaHead(packet).value();
    ++taken_;
    std::span<const std::byte> body =
        packet.subspan(kRdmaHeadBytes + RdmaReleaseBytes(head.releases));
    for (std::size_t i = 0; i < head.grants; ++i, body = body.subspan(kRdmaGrantBytes)) {
      grants_.push_back(Get<RdmaGrant>(body.data()));
    }
    if (head.type == RdmaPacketType::kMessage) heard_.push_back(head.frames);
    if (head.type == RdmaPacketType::kEnd) gone_ = true;
    if (head.type == RdmaPacketType::kArena) {
      arena_ = {Get<std::uint64_t>(body.data()), Get<std::uint32_t>(body.data() + 8),
                Get<std::uint32_t>(body.data() + 12)};
    }
  }

  static constexpr std::uint64_t kReceive = 1ull << 63;

  FabricWorld* const world_;
  std::unique_ptr<verbs::Verbs> verbs_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::unique_ptr<verbs::MemoryRegion>> regions_;
  std::unique_ptr<verbs::Connection> connection_;
  std::byte* receives_ = nullptr;
  std::uint32_t taken_ = 0, acknowledged_ = 0;
  bool acknowledges_ = true;
  bool gone_ = false;
  verbs::Outcome worst_ = verbs::Outcome::kOk;
  std::vector<int> heard_;
  std::vector<RdmaGrant> grants_;
  std::optional<Arena> arena_;
};

class RdmaHostileTest : public testing::Test {
 protected:
  RdmaHostileTest() {
    address_ = node_.Listen();
    client_peer_ = client_.ConnectTo(&node_, address_);
  }
  std::unique_ptr<RdmaAttacker> Stranger() {
    auto made = std::make_unique<RdmaAttacker>(&world_);
    made->Connect(address_);
    return made;
  }
  std::unique_ptr<RdmaAttacker> Member() {
    auto made = Stranger();
    made->SayHello(IdentityOf(Role::kWorker, 99));
    EXPECT_TRUE(world_.RunUntil([&] { return node_.recorder->ups.size() > members_; }));
    members_ = node_.recorder->ups.size();
    peer_ = node_.recorder->ups.back().peer;
    return made;
  }
  // A member that was granted an arena.
  std::unique_ptr<RdmaAttacker> MemberWithArena() {
    auto made = Member();
    made->Send(RdmaPacketType::kArenaWanted);
    EXPECT_TRUE(made->RunUntil([&] { return made->arena().has_value(); }));
    return made;
  }
  void ExpectClientUnharmed() {
    const std::size_t before = node_.recorder->messages.size();
    ASSERT_TRUE(
        client_.van->Send(client_peer_, TextMessage("still there?", {std::string(99'000, 'x')}))
            .ok());
    EXPECT_TRUE(world_.RunUntil([&] { return node_.recorder->messages.size() == before + 1; }));
    EXPECT_TRUE(client_.recorder->downs.empty());
    node_.recorder->messages.clear();
  }
  ReceiveHandle Post(std::uint64_t token, std::string* memory) {
    return node_.van->PostReceive(peer_, token,
                                  {reinterpret_cast<std::byte*>(memory->data()), memory->size()});
  }
  // Sends it a request, which reports the grants to it.
  void Ask(RdmaAttacker* attacker, std::size_t grants) {
    ASSERT_TRUE(node_.van->Send(peer_, TextMessage("pull")).ok());
    ASSERT_TRUE(attacker->RunUntil([&] { return attacker->grants().size() >= grants; }));
  }

  FabricWorld world_;
  Node node_{&world_, IdentityOf(Role::kServer, 2)};
  Node client_{&world_, IdentityOf(Role::kWorker, 3)};
  std::string address_;
  PeerId client_peer_ = 0;
  PeerId peer_ = 0;  // the attacker as a peer
  std::size_t members_ = 1;
};

TEST_F(RdmaHostileTest, BytesThatAreNoPacketEndTheConnection) {
  using enum RdmaPacketType;
  using PlaceKind = RdmaPlaceKind;
  const std::string prefix = PrefixText(Kind::kData, 2);
  const auto message = [&](RdmaPlaceKind kind, std::uint64_t bytes, std::uint32_t unit) {
    return [=](RdmaAttacker& a) {
      Body body;
      AppendPlace(&body, PlaceKind::kInline, prefix.size());
      AppendPlace(&body, kind, bytes, unit);
      AppendText(&body, prefix);
      a.SendFrames(2, body);
    };
  };
  const std::vector<std::pair<const char*, std::function<void(RdmaAttacker&)>>> cases = {
      {"a short head", [](RdmaAttacker& a) { a.SendBytes(Body(7)); }},
      {"unknown type", [](RdmaAttacker& a) { a.Send(static_cast<RdmaPacketType>(77)); }},
      {"too many releases",
       [](RdmaAttacker& a) { a.Send({.type = kCredit, .releases = 200}, Body(900)); }},
      {"releases that are not there",
       [](RdmaAttacker& a) { a.Send({.type = kCredit, .releases = 9}, {}); }},
      {"a unit that it has not",
       [](RdmaAttacker& a) { a.Send({.type = kCredit, .releases = 1}, Body(8)); }},
      {"too many grants",
       [](RdmaAttacker& a) { a.Send({.type = kCredit, .grants = 9}, Body(9 * 32)); }},
      {"grants that are not there",
       [](RdmaAttacker& a) { a.Send({.type = kCredit, .grants = 2}, Body(32)); }},
      {"more grants than may be open",
       [](RdmaAttacker& a) {
         for (std::uint64_t token = 1; token <= kRdmaGrantsOpenMax + 1; ++token) {
           Body body(kRdmaGrantBytes);
           Put(RdmaGrant{.token = token, .bytes = 1}, body.data());
           a.Send({.type = kCredit, .grants = 1}, body);
           a.Turn(1);
         }
       }},
      {"an arena that was not asked for", [](RdmaAttacker& a) { a.Send(kArena, Body(16)); }},
      {"a second arena",
       [](RdmaAttacker& a) {
         a.Send(kArenaWanted);
         a.Send(kArenaWanted);
       }},
      {"a piece of nothing", [](RdmaAttacker& a) { a.Send(kPiece, Body(16)); }},
      {"no frames", [](RdmaAttacker& a) { a.SendFrames(0, Body(16)); }},
      {"frames that are not there", [](RdmaAttacker& a) { a.SendFrames(65535, Body(32)); }},
      {"inline beyond the packet", message(PlaceKind::kInline, 4096, 0)},
      {"inline, 2^64 - 1", message(PlaceKind::kInline, ~0ull, 0)},
      {"pieces, none", message(PlaceKind::kPieces, 0, 0)},
      {"pieces, 2^63", message(PlaceKind::kPieces, 1ull << 63, 0)},
      {"an arena it has not", message(PlaceKind::kArena, 8, 0)},
      {"a grant it has not", message(PlaceKind::kGranted, 70'000, 1)},
      {"unknown kind", message(static_cast<RdmaPlaceKind>(9), 8, 0)},
      {"a message within another",
       [&](RdmaAttacker& a) {
         message(PlaceKind::kPieces, 100, 0)(a);
         message(PlaceKind::kPieces, 100, 0)(a);
       }},
      {"more packets than it may send",
       [](RdmaAttacker& a) {
         a.StopAcknowledging();
         for (int i = 0; i < 4000 && !a.Gone(); ++i) {
           a.Send(kCredit);
           if (i % 16 == 0) a.Turn(1);
         }
       }},
      {"more taken than was sent",
       [](RdmaAttacker& a) {
         Body packet(kRdmaHeadBytes);
         Put(RdmaHead{.taken = 1000, .bytes = kRdmaHeadBytes}, packet.data());
         a.SendBytes(packet);
       }},
  };
  for (const auto& [name, send] : cases) {
    const auto attacker = Member();
    const std::size_t downs = node_.recorder->downs.size();
    send(*attacker);
    EXPECT_TRUE(attacker->RunUntil([&] { return node_.recorder->downs.size() > downs; })) << name;
    EXPECT_TRUE(attacker->RunUntil([&] { return attacker->Gone(); })) << name;
    node_.recorder->messages.clear();
    ExpectClientUnharmed();
  }
}

TEST_F(RdmaHostileTest, PlacesBeyondTheArenaEndTheConnection) {
  const std::string prefix = PrefixText(Kind::kData, 2);
  const std::uint32_t units = RdmaSizes().arena_units;
  const std::vector<std::pair<std::uint64_t, std::uint32_t>> places = {
      {0, 0},
      {1, units},
      {1, ~0u},
      {2 * kRdmaUnitBytes, units - 1},
      {std::uint64_t{units} * kRdmaUnitBytes + 1, 0},
      {~0ull, 1}};
  for (const auto& [bytes, unit] : places) {
    const auto attacker = MemberWithArena();
    const std::size_t downs = node_.recorder->downs.size();
    Body body;
    AppendPlace(&body, RdmaPlaceKind::kInline, prefix.size());
    AppendPlace(&body, RdmaPlaceKind::kArena, bytes, unit);
    AppendText(&body, prefix);
    attacker->SendFrames(2, body);
    EXPECT_TRUE(attacker->RunUntil([&] { return node_.recorder->downs.size() > downs; }))
        << bytes << " bytes at unit " << unit;
    ExpectClientUnharmed();
  }
}

// The device refuses writes past an arena, past a grant, or after a grant's end.
TEST_F(RdmaHostileTest, WritesOutsideOfWhatWasGrantedAreRefused) {
  const auto past_arena = MemberWithArena();
  const RdmaAttacker::Arena arena = *past_arena->arena();
  past_arena->Write(arena.address + std::uint64_t{arena.units} * kRdmaUnitBytes - 8, arena.key,
                    std::string(16, '!'));
  EXPECT_TRUE(
      past_arena->RunUntil([&] { return past_arena->worst() == verbs::Outcome::kRemoteAccess; }));

  const auto past_grant = Member();
  std::string memory(2 * 70'000, '.');
  std::string half(memory.data(), 70'000);
  const ReceiveHandle handle =
      node_.van->PostReceive(peer_, 7, {reinterpret_cast<std::byte*>(memory.data()), 70'000});
  Ask(past_grant.get(), 1);
  const RdmaGrant grant = past_grant->grants()[0];
  past_grant->Write(grant.address + 1, grant.key, std::string(70'000, '!'));
  EXPECT_TRUE(
      past_grant->RunUntil([&] { return past_grant->worst() == verbs::Outcome::kRemoteAccess; }));
  EXPECT_EQ(memory, std::string(memory.size(), '.'));

  const auto after_end = Member();
  ReceiveHandle ended = Post(8, &memory);
  Ask(after_end.get(), 1);
  ended.Revoke();
  after_end->Write(after_end->grants()[0].address, after_end->grants()[0].key, "late");
  EXPECT_TRUE(
      after_end->RunUntil([&] { return after_end->worst() == verbs::Outcome::kRemoteAccess; }));
  EXPECT_EQ(memory, std::string(memory.size(), '.'));
  ExpectClientUnharmed();
}

// The header of an answer may still be under way when its payload has been written to posted
// memory. If the request ends meanwhile, its owner may free that memory.
TEST_F(RdmaHostileTest, AnAnswerIsNotTakenFromMemoryThatWasRevokedBeforeItWasComplete) {
  const auto attacker = Member();
  auto memory = std::make_unique<std::string>(70'000, '.');
  ReceiveHandle handle = Post(7, memory.get());
  Ask(attacker.get(), 1);
  const RdmaGrant grant = attacker->grants()[0];
  const std::string head = PrefixText(Kind::kData, 2, 7) + "answer";
  attacker->Write(grant.address, grant.key, std::string(70'000, '!'));
  Body places;
  AppendPlace(&places, RdmaPlaceKind::kPieces, head.size());
  AppendPlace(&places, RdmaPlaceKind::kGranted, grant.bytes, grant.number);
  attacker->SendFrames(2, places);
  ASSERT_TRUE(attacker->RunUntil([&] { return (*memory)[0] == '!'; }));
  attacker->Turn(50);
  ASSERT_TRUE(node_.recorder->messages.empty());
  handle.Revoke();
  memory = nullptr;
  Body piece;
  AppendPlace(&piece, RdmaPlaceKind::kInline, head.size());
  AppendText(&piece, head);
  attacker->Send(RdmaPacketType::kPiece, piece);
  EXPECT_TRUE(attacker->RunUntil(
      [&] { return !node_.recorder->messages.empty() || !node_.recorder->downs.empty(); }));
  EXPECT_TRUE(node_.recorder->messages.empty()) << "with a payload in memory that was freed";
  node_.recorder->messages.clear();
  ExpectClientUnharmed();
}

TEST_F(RdmaHostileTest, AnAnswerMayLieOnlyWhereItselfWasPosted) {
  for (const std::uint64_t token : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{99}}) {
    const auto attacker = Member();
    std::string first(70'000, '.'), second(70'000, '.');
    const ReceiveHandle of_first = Post(7, &first), of_second = Post(8, &second);
    Ask(attacker.get(), 2);
    const RdmaGrant grant = attacker->grants()[0];
    ASSERT_EQ(grant.token, 7u);
    const std::string head = PrefixText(Kind::kData, 2, token) + "answer";
    Body body;
    AppendPlace(&body, RdmaPlaceKind::kInline, head.size());
    AppendPlace(&body, RdmaPlaceKind::kGranted, grant.bytes, grant.number);
    AppendText(&body, head);
    const std::size_t downs = node_.recorder->downs.size();
    attacker->SendFrames(2, body);
    EXPECT_TRUE(attacker->RunUntil(
        [&] { return !node_.recorder->messages.empty() || node_.recorder->downs.size() > downs; }));
    EXPECT_TRUE(node_.recorder->messages.empty()) << "with token " << token;
    node_.recorder->messages.clear();
  }
  ExpectClientUnharmed();
}

// Before its hello a peer cannot make the receiver allocate memory by announcing long frames.
TEST_F(RdmaHostileTest, AStrangerAnnouncesNothingLong) {
  for (const std::uint64_t bytes : {std::uint64_t{100'000}, std::uint64_t{30} << 20}) {
    const auto attacker = Stranger();
    Body places;
    AppendPlace(&places, RdmaPlaceKind::kPieces, bytes);
    attacker->SendFrames(1, places);
    EXPECT_TRUE(attacker->RunUntil([&] { return attacker->Gone(); })) << bytes;
  }
  const auto with_payload = Stranger();
  Body places;
  AppendPlace(&places, RdmaPlaceKind::kPieces, kPrefixBytes);
  for (int i = 0; i < 8; ++i) AppendPlace(&places, RdmaPlaceKind::kPieces, 64 << 20);
  with_payload->SendFrames(9, places);
  EXPECT_TRUE(with_payload->RunUntil([&] { return with_payload->Gone(); }));
  ExpectClientUnharmed();
}

// What is announced takes no memory, not even addresses.
TEST_F(RdmaHostileTest, AMemberTakesNothingByAnnouncingLongFrames) {
  const auto attacker = Member();
  const std::uint64_t before = AddressBytes();
  const std::string prefix = PrefixText(Kind::kData, 9);
  Body body;
  AppendPlace(&body, RdmaPlaceKind::kInline, prefix.size());
  for (int i = 0; i < 8; ++i) AppendPlace(&body, RdmaPlaceKind::kPieces, 1 << 30);
  AppendText(&body, prefix);
  attacker->SendFrames(9, body);
  ExpectClientUnharmed();
  EXPECT_LT(AddressBytes(), before + (256 << 20));
  Body piece;
  AppendPlace(&piece, RdmaPlaceKind::kInline, 8);
  AppendText(&piece, "8 bytes.");
  attacker->Send(RdmaPacketType::kPiece, piece);
  ExpectClientUnharmed();
  EXPECT_LT(AddressBytes(), before + (1280 << 20));  // one frame
}

TEST_F(RdmaHostileTest, AStrangerGetsNoArena) {
  const auto attacker = Stranger();
  attacker->Send(RdmaPacketType::kArenaWanted);
  ASSERT_TRUE(attacker->RunUntil([&] { return attacker->arena().has_value(); }));
  EXPECT_EQ(attacker->arena()->units, 0u);
}

}  // namespace
}  // namespace leeway::van::rdma_hostile_test
