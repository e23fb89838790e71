// Tests that the verbs in memory behave as the interface says, and fail as told.
#include "van/rdma/testing/fake_verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace leeway::van::verbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

sockaddr_storage FakeAddress(std::uint16_t port) {
  sockaddr_storage address{};
  auto* const ip = reinterpret_cast<sockaddr_in*>(&address);
  ip->sin_family = AF_INET;
  ip->sin_port = htons(port);
  ip->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool Readable(const Verbs& verbs) {
  pollfd one{verbs.fd(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

std::vector<std::byte> Words(const std::string& text) {
  const auto* const at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}

std::string TextOf(const std::vector<std::byte>& bytes, std::size_t size) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), std::min(size, bytes.size()));
}

// Memory with its registration.
struct Memory {
  Memory(Device* device, std::size_t size, bool remote_write = false) : bytes(size) {
    absl::StatusOr<std::unique_ptr<MemoryRegion>> registered =
        device->Register(bytes.data(), size, remote_write);
    EXPECT_TRUE(registered.ok()) << registered.status();
    if (registered.ok()) region = *std::move(registered);
  }
  Segment Part(std::size_t size) const {
    return {bytes.data(), static_cast<std::uint32_t>(size), region->local_key()};
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(bytes.data()); }

  std::vector<std::byte> bytes;
  std::unique_ptr<MemoryRegion> region;
};

// One process: its Verbs and one of its connections.
struct Side {
  explicit Side(Provider* provider) : verbs(provider->Open({}).value()) {}

  // The next event; kFailed without `why` if there is none.
  Event Next() {
    Event event;
    for (int i = 0; i < 1000; ++i) {
      if (verbs->NextEvent(&event)) return event;
    }
    return {};
  }
  EventKind NextKind() {
    Event event = Next();
    why = event.why;
    if (event.accepted != nullptr) connection = std::move(event.accepted);
    return event.kind;
  }
  bool HasEvent() {
    Event event;
    return verbs->NextEvent(&event);
  }
  std::vector<Completion> Poll(std::size_t polls = 1) {
    std::vector<Completion> all;
    for (std::size_t i = 0; i < polls; ++i) {
      std::array<Completion, 16> some;
      const std::size_t count = connection->device()->Poll(some);
      all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return all;
  }
  Device* device() const { return connection->device(); }
  void PostReceives(int count, std::size_t bytes) {
    for (int i = 0; i < count; ++i) {
      receives.push_back(std::make_unique<Memory>(device(), bytes));
      ASSERT_TRUE(device()->PostReceive(receives.size() - 1, receives.back()->Part(bytes)).ok());
    }
  }
  absl::Status Send(std::uint64_t id, const Segment& segment, bool signalled = true) {
    SendRequest request;
    request.id = id;
    request.segments = {&segment, 1};
    request.signalled = signalled;
    return connection->Post({&request, 1});
  }
  absl::Status Write(std::uint64_t id, const Segment& segment, std::uint64_t address,
                     std::uint32_t key, bool signalled = true) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::kWrite;
    request.segments = {&segment, segment.bytes > 0 ? 1u : 0u};
    request.remote_address = address;
    request.remote_key = key;
    request.signalled = signalled;
    return connection->Post({&request, 1});
  }

  std::unique_ptr<Verbs> verbs;
  std::unique_ptr<Connection> connection;
  std::vector<std::unique_ptr<Memory>> receives;
  absl::Status why;
};

std::vector<std::string> Shown(const std::vector<Completion>& completions) {
  constexpr const char* kNames[] = {"ok",      "flushed",    "retries", "not-ready", "access",
                                    "invalid", "protection", "length",  "other"};
  std::vector<std::string> shown;
  for (const Completion& one : completions) {
    shown.push_back(absl::StrCat(one.receive ? "r" : "s", one.id, " ",
                                 kNames[static_cast<std::size_t>(one.outcome)]));
  }
  return shown;
}

class FakeVerbsTest : public testing::Test {
 protected:
  void Open() {
    a_ = std::make_unique<Side>(provider_.get());
    b_ = std::make_unique<Side>(provider_.get());
    port_ = b_->verbs->Listen(FakeAddress(0)).value();
  }
  void Dial() {
    a_->connection = a_->verbs->Dial(FakeAddress(port_)).value();
    ASSERT_EQ(a_->NextKind(), EventKind::kResolved) << a_->why;
    ASSERT_TRUE(a_->connection->Connect(Words("hello")).ok());
  }
  void Establish() {
    Dial();
    ASSERT_EQ(b_->NextKind(), EventKind::kRequest);
    ASSERT_TRUE(b_->connection->Accept(Words("welcome")).ok());
    ASSERT_EQ(a_->NextKind(), EventKind::kEstablished);
    ASSERT_EQ(b_->NextKind(), EventKind::kEstablished);
  }
  void Start() {
    Open();
    Establish();
  }
  // Destroys both ends and their pending events.
  void Part() {
    a_->connection = nullptr;
    b_->connection = nullptr;
    while (a_->HasEvent() || b_->HasEvent()) {
    }
  }
  void SetFaults(const FakeFaults& faults) { fabric_.SetFaults(faults); }
  void TearDown() override {
    for (std::unique_ptr<Side>* side : {&a_, &b_}) {
      if (*side == nullptr) continue;
      (*side)->connection = nullptr;
      (*side)->receives.clear();
      side->reset();
    }
    const FakeCounters counters = fabric_.counters();
    EXPECT_EQ(counters.connections, 0u);
    EXPECT_EQ(counters.regions, 0u);
    EXPECT_EQ(counters.registered_bytes, 0u);
    EXPECT_EQ(counters.receives, 0u);
  }

  FakeFabric fabric_;
  std::unique_ptr<Provider> provider_ = NewFakeProvider(fabric_);
  std::unique_ptr<Side> a_, b_;  // a_ dials, b_ listens
  std::uint16_t port_ = 0;
};

// ---- connecting ----

TEST_F(FakeVerbsTest, BothSidesAreToldAndGetPrivateData) {
  Open();
  Dial();
  Event request = b_->Next();
  ASSERT_EQ(request.kind, EventKind::kRequest);
  EXPECT_EQ(TextOf(request.private_data, 5), "hello");
  EXPECT_EQ(request.private_data.size(), kPrivateBytesMax);
  ASSERT_TRUE(request.accepted->Accept(Words("welcome")).ok());
  EXPECT_EQ(b_->Next().kind, EventKind::kEstablished);
  const Event established = a_->Next();
  EXPECT_EQ(established.kind, EventKind::kEstablished);
  EXPECT_EQ(established.connection, a_->connection.get());
  EXPECT_EQ(TextOf(established.private_data, 7), "welcome");
  EXPECT_EQ(a_->verbs->devices().size(), 1u);
  EXPECT_EQ(a_->device()->info().name, "fake0");
}

TEST_F(FakeVerbsTest, APortIsListenedOnOnce) {
  Open();
  EXPECT_EQ(a_->verbs->Listen(FakeAddress(port_)).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(FakeVerbsTest, WhereNobodyListensConnectionsAreRefused) {
  Open();
  port_ += 1;
  Dial();
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
  EXPECT_EQ(a_->why, absl::UnavailableError("connection refused"));
}

TEST_F(FakeVerbsTest, ARequestThatIsDestroyedIsRefused) {
  Open();
  Dial();
  b_->Next();
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
  EXPECT_THAT(std::string(a_->why.message()), HasSubstr("refuses"));
}

TEST_F(FakeVerbsTest, AVerbsGoesWithWhatItHasNotBeenAskedFor) {
  Open();
  Dial();
  b_ = nullptr;
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
}

TEST_F(FakeVerbsTest, ADiallerThatGoesFailsTheRequest) {
  Open();
  Dial();
  ASSERT_EQ(b_->NextKind(), EventKind::kRequest);
  a_->connection = nullptr;
  EXPECT_FALSE(b_->connection->Accept({}).ok());
  EXPECT_EQ(b_->NextKind(), EventKind::kFailed);
}

TEST_F(FakeVerbsTest, EitherSideIsToldOfTheEnd) {
  Start();
  a_->connection->Disconnect();
  EXPECT_EQ(a_->NextKind(), EventKind::kDisconnected);
  EXPECT_EQ(b_->NextKind(), EventKind::kDisconnected);
  Establish();
  b_->connection = nullptr;
  EXPECT_EQ(a_->NextKind(), EventKind::kDisconnected);
}

// ---- requests ----

TEST_F(FakeVerbsTest, SendsFillReceivesInOrder) {
  Start();
  b_->PostReceives(2, 16);
  Memory from(a_->device(), 8);
  std::memcpy(from.bytes.data(), "onetwo", 6);
  ASSERT_TRUE(a_->Send(7, from.Part(3), false).ok());
  const Segment second{from.bytes.data() + 3, 3, from.region->local_key()};
  ASSERT_TRUE(a_->Send(8, second).ok());
  const std::vector<Completion> received = b_->Poll();
  EXPECT_THAT(Shown(received), ElementsAre("r0 ok", "r1 ok"));
  EXPECT_EQ(received[0].bytes, 3u);
  EXPECT_EQ(received[0].queue_pair, b_->connection->queue_pair());
  EXPECT_EQ(TextOf(b_->receives[0]->bytes, 3), "one");
  EXPECT_EQ(TextOf(b_->receives[1]->bytes, 3), "two");
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s8 ok"));
  EXPECT_EQ(fabric_.counters().sent_bytes, 6u);
}

TEST_F(FakeVerbsTest, MemoryIsReadWhenTheRequestIsCarriedOut) {
  Start();
  b_->PostReceives(1, 16);
  Memory from(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
  std::memcpy(from.bytes.data(), "late", 4);
  b_->Poll();
  EXPECT_EQ(TextOf(b_->receives[0]->bytes, 4), "late");
}

TEST_F(FakeVerbsTest, WithoutAReceiveASendWaits) {
  Start();
  Memory from(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
  EXPECT_THAT(a_->Poll(3), IsEmpty());
  EXPECT_FALSE(Readable(*a_->verbs));
  b_->PostReceives(1, 16);
  EXPECT_TRUE(Readable(*b_->verbs));
  EXPECT_THAT(Shown(b_->Poll()), ElementsAre("r0 ok"));
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 ok"));
}

TEST_F(FakeVerbsTest, ASendThatHasWaitedTooOftenFails) {
  Start();
  SetFaults({.receiver_waits_max = 5});
  Memory from(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
  EXPECT_THAT(a_->Poll(4), IsEmpty());
  EXPECT_TRUE(Readable(*a_->verbs));  // it will try again
  EXPECT_THAT(Shown(a_->Poll(2)), ElementsAre("s1 not-ready"));
}

TEST_F(FakeVerbsTest, AReceiveThatIsTooSmallEndsTheConnection) {
  Start();
  b_->PostReceives(2, 3);
  Memory from(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4), false).ok());
  ASSERT_TRUE(a_->Send(2, from.Part(1), false).ok());
  EXPECT_THAT(Shown(b_->Poll()), ElementsAre("r0 length"));
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 invalid", "s2 flushed"));
  EXPECT_EQ(b_->NextKind(), EventKind::kDisconnected);
}

TEST_F(FakeVerbsTest, WritesGoWhereTheyMay) {
  Start();
  Memory from(a_->device(), 4);
  Memory to(b_->device(), 8, /*remote_write=*/true);
  std::memcpy(from.bytes.data(), "data", 4);
  ASSERT_TRUE(a_->Write(1, from.Part(4), to.address() + 4, to.region->remote_key()).ok());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 ok"));
  EXPECT_EQ(TextOf({to.bytes.begin() + 4, to.bytes.end()}, 4), "data");
  EXPECT_EQ(fabric_.counters().written_bytes, 4u);
  // An empty write needs no key.
  ASSERT_TRUE(a_->Write(2, {}, 0, 0).ok());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s2 ok"));
}

TEST_F(FakeVerbsTest, WritesElsewhereEndTheConnection) {
  Open();
  for (int offence = 0; offence < 4; ++offence) {
    Establish();
    Memory from(a_->device(), 4);
    Memory to(b_->device(), 8, /*remote_write=*/offence != 0);
    std::uint32_t key = to.region->remote_key();
    const std::uint64_t address = to.address() + (offence == 1 ? 5 : 0);
    if (offence == 2) key = to.region->local_key();
    ASSERT_TRUE(a_->Write(1, from.Part(4), address, key, false).ok());
    ASSERT_TRUE(a_->Write(2, {}, 0, 0, false).ok());
    if (offence == 3) to.region = nullptr;
    EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 access", "s2 flushed")) << offence;
    EXPECT_EQ(b_->NextKind(), EventKind::kDisconnected);
    EXPECT_FALSE(a_->HasEvent());
    EXPECT_EQ(fabric_.counters().writes_refused, offence + 1u);
    Part();
  }
}

TEST_F(FakeVerbsTest, MemoryThatIsNotRegisteredIsNotSent) {
  Start();
  b_->PostReceives(1, 16);
  Memory from(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
  from.region = nullptr;
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 protection"));
  // The other side learns of it when this one disconnects.
  EXPECT_FALSE(b_->HasEvent());
  a_->connection->Disconnect();
  EXPECT_EQ(b_->NextKind(), EventKind::kDisconnected);
}

TEST_F(FakeVerbsTest, RequestsPostedAfterAnErrorAreFlushedAndThePeerSendsInVain) {
  Start();
  Memory from(a_->device(), 4), theirs(b_->device(), 4);
  fabric_.FailNext(Outcome::kOther);
  ASSERT_TRUE(a_->Send(1, from.Part(4), false).ok());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 other"));
  ASSERT_TRUE(a_->Send(2, from.Part(4), false).ok());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s2 flushed"));
  ASSERT_TRUE(b_->Send(3, theirs.Part(4)).ok());
  EXPECT_THAT(Shown(b_->Poll()), ElementsAre("s3 retries"));
}

TEST_F(FakeVerbsTest, TheEndFlushesBothSides) {
  Start();
  Memory from(a_->device(), 4), theirs(b_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4), false).ok());
  ASSERT_TRUE(b_->Send(2, theirs.Part(4), false).ok());
  a_->connection->Disconnect();
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 flushed"));
  EXPECT_THAT(Shown(b_->Poll()), ElementsAre("s2 flushed"));
}

// A place in the send queue is free again only when a completion has been polled.
TEST_F(FakeVerbsTest, TheSendQueueIsFreedByPolledCompletions) {
  SetFaults({.send_depth_max = 3});
  Start();
  EXPECT_EQ(a_->device()->info().send_depth, 3u);
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(a_->Write(id, {}, 0, 0, false).ok());
  EXPECT_THAT(a_->Poll(2), IsEmpty());
  EXPECT_EQ(a_->Write(3, {}, 0, 0).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fabric_.counters().overposted, 1u);
  Part();
  Establish();
  for (std::uint64_t id = 0; id < 9; ++id) {
    ASSERT_TRUE(a_->Write(id, {}, 0, 0, id % 3 == 2).ok());
    EXPECT_EQ(a_->Poll().size(), id % 3 == 2 ? 1u : 0u);
  }
}

TEST_F(FakeVerbsTest, TheReceiveQueueIsFreedByPolledCompletions) {
  SetFaults({.receive_depth_max = 1});
  Start();
  b_->PostReceives(1, 4);
  Memory from(a_->device(), 4), more(b_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
  a_->Poll();
  EXPECT_EQ(b_->device()->PostReceive(9, more.Part(4)).code(),
            absl::StatusCode::kResourceExhausted);
  b_->Poll();
  EXPECT_TRUE(b_->device()->PostReceive(9, more.Part(4)).ok());
}

TEST_F(FakeVerbsTest, PostComesAfterTheNewsOrAMessage) {
  Open();
  Dial();
  ASSERT_EQ(b_->NextKind(), EventKind::kRequest);
  b_->PostReceives(1, 4);
  ASSERT_TRUE(b_->connection->Accept({}).ok());
  EXPECT_EQ(b_->Write(1, {}, 0, 0).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(a_->NextKind(), EventKind::kEstablished);
  Memory from(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
  EXPECT_THAT(Shown(b_->Poll()), ElementsAre("r0 ok"));
  EXPECT_TRUE(b_->Write(1, {}, 0, 0).ok());
}

TEST_F(FakeVerbsTest, ReuseBeforeACompletionIsCounted) {
  Start();
  b_->PostReceives(3, 4);
  Memory from(a_->device(), 4), gone(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4), false).ok());
  ASSERT_TRUE(a_->Send(2, gone.Part(4), false).ok());
  b_->Poll();
  from.bytes[0] = std::byte{1};
  gone.region = nullptr;
  EXPECT_EQ(fabric_.counters().changed_early, 0u);
  ASSERT_TRUE(a_->Write(3, {}, 0, 0).ok());
  a_->Poll();
  EXPECT_EQ(fabric_.counters().changed_early, 1u);
  EXPECT_EQ(fabric_.counters().deregistered_early, 1u);
}

// ---- the descriptor ----

TEST_F(FakeVerbsTest, OnlyAnArmedDeviceWakes) {
  Start();
  b_->PostReceives(3, 4);
  b_->Poll();
  Memory from(a_->device(), 4);
  ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
  EXPECT_TRUE(Readable(*a_->verbs));  // there is a request to carry out
  a_->Poll();
  EXPECT_FALSE(Readable(*a_->verbs));
  EXPECT_FALSE(Readable(*b_->verbs));
  b_->device()->Arm();
  EXPECT_FALSE(Readable(*b_->verbs));  // a completion from before Arm wakes no thread
  ASSERT_TRUE(a_->Send(2, from.Part(4)).ok());
  a_->Poll();
  EXPECT_TRUE(Readable(*b_->verbs));
  EXPECT_FALSE(b_->HasEvent());
  EXPECT_TRUE(Readable(*b_->verbs));  // until the device is polled
  EXPECT_EQ(b_->Poll().size(), 2u);
  EXPECT_FALSE(Readable(*b_->verbs));
  ASSERT_TRUE(a_->Send(3, from.Part(4)).ok());
  a_->Poll();
  EXPECT_FALSE(Readable(*b_->verbs));  // armed once
}

TEST_F(FakeVerbsTest, EventsWakeUntilThereAreNone) {
  Open();
  EXPECT_FALSE(Readable(*b_->verbs));
  Dial();
  EXPECT_TRUE(Readable(*b_->verbs));
  EXPECT_TRUE(b_->HasEvent());
  EXPECT_FALSE(b_->HasEvent());
  EXPECT_FALSE(Readable(*b_->verbs));
}

TEST_F(FakeVerbsTest, EventsThatAreLeftWakeAsWell) {
  Open();
  Establish();
  std::unique_ptr<Connection> other_a = std::move(a_->connection);
  std::unique_ptr<Connection> other_b = std::move(b_->connection);
  Establish();
  fabric_.DisconnectAll();
  EXPECT_TRUE(a_->HasEvent());
  EXPECT_TRUE(Readable(*a_->verbs));
  EXPECT_TRUE(a_->HasEvent());
  EXPECT_FALSE(a_->HasEvent());
  EXPECT_FALSE(Readable(*a_->verbs));
}

TEST_F(FakeVerbsTest, HooksTellOfNewsAndDelay) {
  int news = 0;
  std::deque<std::function<void()>> later;
  FakeHooks hooks;
  hooks.news = [&] { ++news; };
  hooks.after = [&](absl::Duration, std::function<void()> run) { later.push_back(std::move(run)); };
  provider_ = NewFakeProvider(fabric_, hooks);
  Start();
  EXPECT_GT(news, 0);
  SetFaults({.delay_rate = 0.99});
  ASSERT_TRUE(a_->Write(1, {}, 0, 0).ok());
  EXPECT_THAT(a_->Poll(20), IsEmpty());
  ASSERT_EQ(later.size(), 1u);
  EXPECT_FALSE(Readable(*a_->verbs));
  SetFaults({});
  news = 0;
  later.front()();
  EXPECT_EQ(news, 1);
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 ok"));
  b_ = nullptr;
  a_->connection = nullptr;
  a_ = nullptr;
}

// ---- faults ----

TEST_F(FakeVerbsTest, EveryOutcomeCanBeAskedFor) {
  Open();
  for (int i = 1; i <= static_cast<int>(Outcome::kOther); ++i) {
    Establish();
    const auto outcome = static_cast<Outcome>(i);
    fabric_.FailRequest(a_->connection->queue_pair(), 1, outcome);
    for (std::uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(a_->Write(id, {}, 0, 0, false).ok());
    const std::vector<Completion> got = a_->Poll();
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].id, 1u);
    EXPECT_EQ(got[0].outcome, outcome);
    EXPECT_EQ(got[1].outcome, Outcome::kFlushed);
    EXPECT_FALSE(StatusOf(got[0]).ok());
    Part();
  }
}

TEST_F(FakeVerbsTest, AFailureMayHaveArrived) {
  Start();
  b_->PostReceives(1, 4);
  Memory from(a_->device(), 4);
  fabric_.FailNth(1, Outcome::kRetriesExceeded, /*arrived=*/true);
  ASSERT_TRUE(a_->Write(1, {}, 0, 0).ok());
  ASSERT_TRUE(a_->Send(2, from.Part(4)).ok());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 ok", "s2 retries"));
  EXPECT_THAT(Shown(b_->Poll()), ElementsAre("r0 ok"));
}

TEST_F(FakeVerbsTest, RegistrationsAreRefused) {
  SetFaults({.registered_bytes_max = 100});
  Start();
  std::vector<std::byte> bytes(101);
  EXPECT_EQ(a_->device()->Register(bytes.data(), 101, false).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(a_->device()->Register(bytes.data(), 100, false).ok());
  SetFaults({.refuse_register_rate = 1});
  EXPECT_FALSE(a_->device()->Register(bytes.data(), 1, false).ok());
}

TEST_F(FakeVerbsTest, DialsFailInEveryWay) {
  Open();
  SetFaults({.fail_dial_rate = 1});
  EXPECT_FALSE(a_->verbs->Dial(FakeAddress(port_)).ok());
  SetFaults({.fail_resolve_rate = 1});
  a_->connection = a_->verbs->Dial(FakeAddress(port_)).value();
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
  SetFaults({.refuse_dial_rate = 1});
  Dial();
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
  SetFaults({.lose_dial_rate = 1, .lost_dial_polls = 5});
  Dial();
  EXPECT_FALSE(a_->HasEvent());
  EXPECT_TRUE(Readable(*a_->verbs));
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
  EXPECT_FALSE(b_->HasEvent());
  SetFaults({.fail_accept_rate = 1});
  Dial();
  ASSERT_EQ(b_->NextKind(), EventKind::kRequest);
  EXPECT_TRUE(b_->connection->Accept({}).ok());
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
  EXPECT_EQ(b_->NextKind(), EventKind::kFailed);
}

TEST_F(FakeVerbsTest, SuddenDisconnects) {
  Start();
  fabric_.DisconnectAll();
  EXPECT_EQ(a_->NextKind(), EventKind::kDisconnected);
  EXPECT_EQ(b_->NextKind(), EventKind::kDisconnected);
  Establish();
  SetFaults({.disconnect_rate = 1});
  ASSERT_TRUE(a_->Write(1, {}, 0, 0).ok());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 flushed"));
  EXPECT_EQ(a_->NextKind(), EventKind::kDisconnected);
  EXPECT_EQ(b_->NextKind(), EventKind::kDisconnected);
}

TEST_F(FakeVerbsTest, ALostDeviceTakesItsConnectionsAlong) {
  Start();
  ASSERT_TRUE(a_->Write(1, {}, 0, 0).ok());
  Device* const device = a_->device();
  fabric_.LoseDevice(device, /*stay_lost=*/true);
  const Event lost = a_->Next();
  EXPECT_EQ(lost.kind, EventKind::kDeviceLost);
  EXPECT_EQ(lost.device, device);
  EXPECT_FALSE(a_->HasEvent());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 flushed"));
  ASSERT_TRUE(b_->Write(2, {}, 0, 0).ok());
  EXPECT_THAT(Shown(b_->Poll()), ElementsAre("s2 retries"));
  a_->connection = a_->verbs->Dial(FakeAddress(port_)).value();
  EXPECT_EQ(a_->NextKind(), EventKind::kFailed);
  EXPECT_EQ(b_->NextKind(), EventKind::kDisconnected);
  fabric_.RestoreDevices();
  Establish();
  EXPECT_EQ(a_->device(), device);
}

TEST_F(FakeVerbsTest, ConnectionsUseDevicesInTurn) {
  SetFaults({.devices = 2});
  Start();
  Device* const first = a_->device();
  Memory memory(first, 4);
  Part();
  Establish();
  EXPECT_NE(a_->device(), first);
  EXPECT_EQ(a_->verbs->devices().size(), 2u);
  ASSERT_TRUE(a_->Send(1, memory.Part(4)).ok());  // registered with the other device
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 protection"));
}

TEST_F(FakeVerbsTest, CompletionsOfTheDestroyedMayBeLost) {
  Open();
  for (const double rate : {0.0, 1.0}) {
    Establish();
    Device* const device = b_->device();
    b_->PostReceives(1, 4);
    Memory from(a_->device(), 4);
    ASSERT_TRUE(a_->Send(1, from.Part(4)).ok());
    a_->Poll();
    SetFaults({.purge_rate = rate});
    b_->connection = nullptr;
    std::array<Completion, 4> completions;
    EXPECT_EQ(device->Poll(completions), rate == 0 ? 1u : 0u);
    EXPECT_EQ(fabric_.counters().lost_receives, rate == 0 ? 0u : 1u);
    a_->connection = nullptr;
    while (a_->HasEvent() || b_->HasEvent()) {
    }
  }
}

TEST_F(FakeVerbsTest, PausedNothingIsCarriedOut) {
  Start();
  fabric_.Pause();
  ASSERT_TRUE(a_->Write(1, {}, 0, 0).ok());
  EXPECT_THAT(a_->Poll(3), IsEmpty());
  fabric_.Resume();
  EXPECT_TRUE(Readable(*a_->verbs));
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 ok"));
}

TEST_F(FakeVerbsTest, LateEventsOfAConnectionStayInOrder) {
  Open();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Dial();
    ASSERT_EQ(b_->NextKind(), EventKind::kRequest);
    ASSERT_TRUE(b_->connection->Accept({}).ok());
    SetFaults({.seed = seed, .delayed_event_rate = 0.6});
    fabric_.DisconnectAll();
    for (Side* side : {a_.get(), b_.get()}) {
      EXPECT_EQ(side->NextKind(), EventKind::kEstablished) << seed;
      EXPECT_EQ(side->NextKind(), EventKind::kDisconnected) << seed;
    }
    SetFaults({});
    Part();
  }
}

TEST_F(FakeVerbsTest, PostingFails) {
  Start();
  Memory memory(a_->device(), 4);
  SetFaults({.fail_post_rate = 1, .refuse_receive_rate = 1});
  EXPECT_EQ(a_->Write(1, {}, 0, 0).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(a_->device()->PostReceive(1, memory.Part(4)).code(),
            absl::StatusCode::kResourceExhausted);
  SetFaults({.fail_post_rate = 1});
  std::array<SendRequest, 4> requests;
  for (SendRequest& request : requests) {
    request.opcode = Opcode::kWrite;
    request.signalled = true;
  }
  EXPECT_FALSE(a_->connection->Post(requests).ok());
  EXPECT_EQ(a_->Poll().size(), 2u);
}

// A write that failed may have arrived in part: a prefix of its bytes and nothing behind that.
TEST_F(FakeVerbsTest, AWriteThatFailsMayHaveArrivedInPart) {
  constexpr std::size_t kBytes = 1000;
  Start();
  Memory from(a_->device(), kBytes);
  Memory to(b_->device(), kBytes, /*remote_write=*/true);
  std::fill(from.bytes.begin(), from.bytes.end(), std::byte{1});
  fabric_.FailNext(Outcome::kRetriesExceeded, /*arrived=*/true);
  ASSERT_TRUE(a_->Write(1, from.Part(kBytes), to.address(), to.region->remote_key()).ok());
  EXPECT_THAT(Shown(a_->Poll()), ElementsAre("s1 retries"));
  const auto end = std::find(to.bytes.begin(), to.bytes.end(), std::byte{0});
  EXPECT_NE(end, to.bytes.begin());
  EXPECT_NE(end, to.bytes.end());
  EXPECT_EQ(std::count(end, to.bytes.end(), std::byte{0}), to.bytes.end() - end);
}

// With all delays: the order stays within a connection, and changes between connections.
TEST_F(FakeVerbsTest, DelaysReorderOnlyBetweenConnections) {
  Open();
  SetFaults({.delay_rate = 0.5, .delayed_completion_rate = 0.5, .delayed_event_rate = 0.5});
  Establish();
  std::unique_ptr<Connection> other = std::move(a_->connection);
  std::unique_ptr<Connection> other_b = std::move(b_->connection);
  Establish();
  b_->PostReceives(80, 4);
  Memory from(a_->device(), 4);
  for (std::uint64_t id = 0; id < 40; ++id) {
    ASSERT_TRUE(a_->Send(id, from.Part(4)).ok());
    std::swap(a_->connection, other);
    ASSERT_TRUE(a_->Send(1000 + id, from.Part(4)).ok());
    std::swap(a_->connection, other);
  }
  std::vector<std::uint64_t> first, second, all;
  for (int i = 0; i < 1000; ++i) {
    for (const Completion& one : a_->Poll()) {
      EXPECT_EQ(one.outcome, Outcome::kOk);
      (one.id < 1000 ? first : second).push_back(one.id);
      all.push_back(one.id);
    }
  }
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(second.size(), 40u);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  EXPECT_TRUE(std::is_sorted(second.begin(), second.end()));
  EXPECT_EQ(b_->Poll(1000).size(), 80u);
  EXPECT_FALSE(Readable(*a_->verbs));
}

TEST_F(FakeVerbsTest, TheSameSeedFailsAlike) {
  std::vector<std::string> runs[2];
  for (std::vector<std::string>& run : runs) {
    Open();
    for (int life = 0; life < 5; ++life) {
      SetFaults({});
      Establish();
      SetFaults({.seed = 9, .fail_rate = 0.1, .disconnect_rate = 0.05, .delay_rate = 0.3});
      for (std::uint64_t id = 0; id < 50; ++id) ASSERT_TRUE(a_->Write(id, {}, 0, 0).ok());
      for (std::string& one : Shown(a_->Poll(200))) run.push_back(std::move(one));
      Part();
    }
    a_ = nullptr;
    b_ = nullptr;
  }
  EXPECT_EQ(runs[0].size(), 250u);
  EXPECT_EQ(runs[0], runs[1]);
}

// Each side is run by a thread of its own that sleeps on the descriptor.
TEST_F(FakeVerbsTest, ThreadsThatSleepLoseNoWakeUp) {
  constexpr std::uint64_t kCount = 2000;
  Start();
  b_->PostReceives(4, 8);
  const auto wait = [](Side& side) {
    pollfd one{side.verbs->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&one, 1, 20'000), 1) << "a wake-up was lost";
  };
  std::thread receiver([&] {
    for (std::uint64_t got = 0; got < kCount;) {
      std::vector<Completion> some = b_->Poll();
      if (some.empty()) {
        b_->device()->Arm();
        some = b_->Poll();
      }
      for (const Completion& one : some) {
        ++got;
        ASSERT_TRUE(b_->device()->PostReceive(one.id, b_->receives[one.id]->Part(8)).ok());
      }
      if (some.empty()) wait(*b_);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
  Memory from(a_->device(), 8);
  for (std::uint64_t id = 0; id < kCount; ++id) {
    ASSERT_TRUE(a_->Send(id, from.Part(8)).ok());
    while (true) {
      std::vector<Completion> some = a_->Poll();
      if (some.empty()) {
        a_->device()->Arm();
        some = a_->Poll();
      }
      if (!some.empty()) break;
      wait(*a_);
    }
  }
  receiver.join();
  // The receives that are posted.
  EXPECT_EQ(fabric_.counters().receives, 4u);
}

using FakeVerbsDeathTest = FakeVerbsTest;

TEST_F(FakeVerbsDeathTest, ObjectsThatOutliveAVerbsAreNamed) {
  Start();
  auto kept = std::make_unique<Memory>(a_->device(), 4);
  EXPECT_DEATH(a_->verbs.reset(), "outlives its Verbs");
  b_->connection = nullptr;
}

}  // namespace
}  // namespace leeway::van::verbs
