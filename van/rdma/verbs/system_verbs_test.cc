// The system's verbs on a device of this machine, both ends in one process. Skipped where there is
// none. RDMA_TEST_HOST is an address of the device; otherwise it is found by its GIDs.
#include "van/rdma/verbs/system_verbs.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::van::verbs {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(30);

// The first IPv4 address of a port that is up.
std::string FoundHost() {
  for (const FoundDevice& device : TakeInventory().devices) {
    for (const FoundPort& port : device.ports) {
      for (const FoundGid& gid : port.gids) {
        absl::string_view address = gid.gid;
        if (port.up && absl::ConsumePrefix(&address, "::ffff:")) return std::string(address);
      }
    }
  }
  return "";
}

sockaddr_storage AddressOf(const std::string& host, std::uint16_t port) {
  sockaddr_storage storage{};
  auto* const address = reinterpret_cast<sockaddr_in*>(&storage);
  address->sin_family = AF_INET;
  address->sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address->sin_addr), 1) << host;
  return storage;
}

// Memory with its registration.
struct Registered {
  Registered(Device* device, std::size_t bytes, bool remote_write = false) : memory(bytes) {
    auto made = device->Register(memory.data(), bytes, remote_write);
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) region = *std::move(made);
  }
  Segment All() const { return Part(0, memory.size()); }
  Segment Part(std::size_t offset, std::size_t bytes) const {
    return {memory.data() + offset, static_cast<std::uint32_t>(bytes), region->local_key()};
  }
  void Fill(const std::string& text) { std::memcpy(memory.data(), text.data(), text.size()); }
  std::string Text(std::size_t bytes) const {
    return {reinterpret_cast<const char*>(memory.data()), bytes};
  }

  std::vector<std::byte> memory;
  std::unique_ptr<MemoryRegion> region;
};

std::vector<std::byte> Bytes(const std::string& text) {
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

class SystemVerbsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status viable = provider_->Viable(); !viable.ok()) {
      GTEST_SKIP() << "no rdma here: " << viable.message();
    }
    const char* const told = std::getenv("RDMA_TEST_HOST");
    host_ = told != nullptr ? told : FoundHost();
    ASSERT_NE(host_, "") << "no IPv4 address on any rdma device; set RDMA_TEST_HOST";
    server_ = Open({});
    client_ = Open({});
    const absl::StatusOr<std::uint16_t> port = server_->Listen(AddressOf(host_, 0));
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *port;
  }

  std::unique_ptr<Verbs> Open(const Options& options) {
    auto opened = provider_->Open(options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  // Goes on as soon as a descriptor says so.
  template <class Done>
  bool Until(Done done) {
    const auto until = Clock::now() + kPatience;
    while (!done()) {
      if (Clock::now() > until) return false;
      pollfd any[2] = {{server_->fd(), POLLIN, 0}, {client_->fd(), POLLIN, 0}};
      ::poll(any, 2, 100);
    }
    return true;
  }

  // The next event of one, while both go on.
  Event Next(Verbs* verbs) {
    Event event;
    EXPECT_TRUE(Until([&] { return verbs->NextEvent(&event); })) << "no event";
    return event;
  }

  absl::StatusOr<std::unique_ptr<Connection>> DialServer() {
    return client_->Dial(AddressOf(host_, port_));
  }

  // A dialled connection up to where the other side is asked.
  void Request() {
    auto dialled = DialServer();
    ASSERT_TRUE(dialled.ok()) << dialled.status();
    dialled_ = *std::move(dialled);
    Event resolved = Next(client_.get());
    ASSERT_EQ(resolved.kind, EventKind::kResolved) << resolved.why;
    ASSERT_EQ(resolved.connection, dialled_.get());
    ASSERT_TRUE(dialled_->Connect(Bytes("from the client")).ok());
    Event request = Next(server_.get());
    ASSERT_EQ(request.kind, EventKind::kRequest);
    asked_ = request.private_data;
    accepted_ = std::move(request.accepted);
  }

  void Establish() {
    Request();
    if (HasFatalFailure()) return;
    const absl::Status accepted = accepted_->Accept(Bytes("from the server"));
    ASSERT_TRUE(accepted.ok()) << accepted;
    Event established = Next(client_.get());
    ASSERT_EQ(established.kind, EventKind::kEstablished) << established.why;
    answered_ = established.private_data;
    Event there = Next(server_.get());
    ASSERT_EQ(there.kind, EventKind::kEstablished) << there.why;
  }

  Completion NextCompletion(Device* device) {
    Completion completion;
    const bool found = Until([&] {
      if (device->Poll({&completion, 1}) == 1) return true;
      device->Arm();
      return device->Poll({&completion, 1}) == 1;
    });
    EXPECT_TRUE(found) << "no completion";
    return completion;
  }

  absl::Status Send(Connection* connection, std::uint64_t id, const Segment& segment,
                    bool signalled = true) {
    SendRequest request;
    request.id = id;
    request.segments = {&segment, 1};
    request.signalled = signalled;
    return connection->Post({&request, 1});
  }

  absl::Status Write(Connection* connection, std::uint64_t id, const Segment& segment,
                     const Registered& to) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::kWrite;
    request.segments = {&segment, 1};
    request.remote_address = reinterpret_cast<std::uintptr_t>(to.memory.data());
    request.remote_key = to.region->remote_key();
    request.signalled = true;
    return connection->Post({&request, 1});
  }

  const std::unique_ptr<Provider> provider_ = NewSystemProvider();
  std::string host_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Verbs> server_, client_;
  std::unique_ptr<Connection> dialled_, accepted_;
  std::vector<std::byte> asked_, answered_;
};

// ---- connecting ----

TEST_F(SystemVerbsTest, BothSidesGetWhatTheOtherSays) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  asked_.resize(15);
  answered_.resize(15);
  EXPECT_EQ(asked_, Bytes("from the client"));
  EXPECT_EQ(answered_, Bytes("from the server"));
  EXPECT_EQ(dialled_->peer_address(), host_ + ":" + std::to_string(port_));
  EXPECT_THAT(accepted_->peer_address(), HasSubstr(host_));
  const DeviceInfo& info = dialled_->device()->info();
  EXPECT_THAT(info.gid, HasSubstr(host_));
  EXPECT_GE(info.gid_index, 0);
  EXPECT_GE(info.mtu_bytes, 256u);
  EXPECT_EQ(info.send_depth, Options().send_depth);
  EXPECT_EQ(client_->devices().size(), 1u);
}

TEST_F(SystemVerbsTest, NobodyListens) {
  auto dialled = client_->Dial(AddressOf(host_, static_cast<std::uint16_t>(port_ ^ 1)));
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  ASSERT_EQ(Next(client_.get()).kind, EventKind::kResolved);
  ASSERT_TRUE((*dialled)->Connect({}).ok());
  const Event failed = Next(client_.get());
  EXPECT_EQ(failed.kind, EventKind::kFailed);
  EXPECT_THAT(failed.why.message(), HasSubstr("connection refused: nobody listens there"));
  EXPECT_THAT(failed.why.message(), HasSubstr(host_));
}

TEST_F(SystemVerbsTest, TheListenerRefuses) {
  Request();
  ASSERT_FALSE(HasFatalFailure());
  accepted_ = nullptr;
  const Event failed = Next(client_.get());
  EXPECT_EQ(failed.kind, EventKind::kFailed);
  EXPECT_THAT(failed.why.message(), HasSubstr("refused by the process that listens"));
}

TEST_F(SystemVerbsTest, NoWayThere) {
  auto dialled = client_->Dial(AddressOf("203.0.113.1", 9));
  absl::Status why = dialled.status();
  if (dialled.ok()) {
    const Event failed = Next(client_.get());
    EXPECT_EQ(failed.kind, EventKind::kFailed);
    why = failed.why;
  }
  EXPECT_THAT(why.message(), HasSubstr("cannot connect to 203.0.113.1:9 over rdma"));
}

TEST_F(SystemVerbsTest, DroppedWhileItIsResolved) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(DialServer().ok());
  Establish();
}

TEST_F(SystemVerbsTest, APortIsTakenOnce) {
  const auto again = server_->Listen(AddressOf(host_, port_));
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  const auto other = client_->Listen(AddressOf("0.0.0.0", 0));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(*other, 0);
}

TEST_F(SystemVerbsTest, AnAddressWithoutDevice) {
  const auto here = client_->Listen(AddressOf("203.0.113.1", 0));
  EXPECT_TRUE(absl::IsUnavailable(here.status())) << here.status();
}

// More than the completion queue has room for at first.
TEST_F(SystemVerbsTest, ManyConnections) {
  std::vector<std::unique_ptr<Connection>> kept;
  for (int i = 0; i < 40; ++i) {
    Establish();
    ASSERT_FALSE(HasFatalFailure()) << i;
    kept.push_back(std::move(dialled_));
    kept.push_back(std::move(accepted_));
  }
  Device* const receiver = kept[79]->device();
  Registered from(kept[78]->device(), 4096), to(receiver, 4096);
  ASSERT_TRUE(receiver->PostReceive(7, to.All()).ok());
  ASSERT_TRUE(Send(kept[78].get(), 1, from.All()).ok());
  EXPECT_EQ(NextCompletion(receiver).id, 7u);
}

// ---- sending ----

TEST_F(SystemVerbsTest, SendsArriveInOrder) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  constexpr std::size_t kSizes[] = {1, 64, 128, 129, 5000, 65536};
  Registered to(accepted_->device(), 6 * 65536), from(dialled_->device(), 65536);
  for (std::size_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(accepted_->device()->PostReceive(100 + i, to.Part(i * 65536, 65536)).ok());
  }
  for (std::size_t i = 0; i < 65536; ++i) from.memory[i] = static_cast<std::byte>(i * 7);
  for (std::size_t i = 0; i < 6; ++i) {
    // Of two parts, and only the last asks for a completion.
    const std::size_t half = kSizes[i] / 2;
    const Segment parts[2] = {from.Part(0, half), from.Part(half, kSizes[i] - half)};
    SendRequest request;
    request.id = i;
    request.segments = parts;
    request.signalled = i == 5;
    ASSERT_TRUE(dialled_->Post({&request, 1}).ok());
  }
  for (std::size_t i = 0; i < 6; ++i) {
    const Completion got = NextCompletion(accepted_->device());
    EXPECT_EQ(got.outcome, Outcome::kOk) << StatusOf(got);
    EXPECT_TRUE(got.receive);
    EXPECT_EQ(got.id, 100 + i);
    EXPECT_EQ(got.bytes, kSizes[i]);
    EXPECT_EQ(got.queue_pair, accepted_->queue_pair());
    EXPECT_EQ(std::memcmp(to.memory.data() + i * 65536, from.memory.data(), kSizes[i]), 0);
  }
  const Completion sent = NextCompletion(dialled_->device());
  EXPECT_EQ(sent.id, 5u);
  EXPECT_FALSE(sent.receive);
}

TEST_F(SystemVerbsTest, ManyInOnePost) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  constexpr std::uint64_t kCount = 100;
  Registered to(accepted_->device(), kCount * 8), from(dialled_->device(), kCount * 8);
  std::vector<Segment> parts;
  std::vector<SendRequest> requests(kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(accepted_->device()->PostReceive(i, to.Part(i * 8, 8)).ok());
    std::memcpy(from.memory.data() + i * 8, &i, 8);
    parts.push_back(from.Part(i * 8, 8));
  }
  for (std::uint64_t i = 0; i < kCount; ++i) {
    requests[i].id = i;
    requests[i].segments = {&parts[i], 1};
    requests[i].signalled = i + 1 == kCount;
  }
  ASSERT_TRUE(dialled_->Post(requests).ok());
  for (std::uint64_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(NextCompletion(accepted_->device()).id, i);
  }
  EXPECT_EQ(to.memory, from.memory);
}

TEST_F(SystemVerbsTest, AWriteIsThereWhenTheNextSendIs) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  constexpr std::size_t kBytes = 1 << 20;
  Registered to(accepted_->device(), kBytes, /*remote_write=*/true),
      from(dialled_->device(), kBytes);
  Registered small(accepted_->device(), 64);
  for (std::size_t i = 0; i < kBytes; ++i) from.memory[i] = static_cast<std::byte>(i >> 8);
  ASSERT_TRUE(accepted_->device()->PostReceive(1, small.All()).ok());
  ASSERT_TRUE(Write(dialled_.get(), 1, from.All(), to).ok());
  ASSERT_TRUE(Send(dialled_.get(), 2, from.Part(0, 4)).ok());
  EXPECT_EQ(NextCompletion(accepted_->device()).bytes, 4u);
  EXPECT_EQ(to.memory, from.memory);
}

TEST_F(SystemVerbsTest, SendsWaitForAReceive) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered to(accepted_->device(), 64), from(dialled_->device(), 64);
  from.Fill("early");
  ASSERT_TRUE(Send(dialled_.get(), 1, from.All()).ok());
  ASSERT_TRUE(accepted_->device()->PostReceive(9, to.All()).ok());
  EXPECT_EQ(NextCompletion(accepted_->device()).id, 9u);
  EXPECT_EQ(to.Text(5), "early");
  EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kOk);
}

TEST_F(SystemVerbsTest, TheReceiveQueueHasAnEnd) {
  Options options;
  options.receive_depth = 16;
  server_ = Open(options);
  const auto port = server_->Listen(AddressOf(host_, 0));
  ASSERT_TRUE(port.ok());
  port_ = *port;
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Device* const device = accepted_->device();
  ASSERT_EQ(device->info().receive_depth, 16u);
  Registered to(device, 64);
  absl::Status status;
  int posted = 0;
  for (; posted < 1000 && status.ok(); ++posted) status = device->PostReceive(1, to.All());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status << " after " << posted;
}

// ---- being woken ----

TEST_F(SystemVerbsTest, ACompletionWakesOnce) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Device* const device = accepted_->device();
  Registered to(device, 64), from(dialled_->device(), 64);
  Event event;
  Completion completion;
  pollfd woken{server_->fd(), POLLIN, 0};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(device->PostReceive(1, to.All()).ok());
    device->Arm();
    ASSERT_EQ(device->Poll({&completion, 1}), 0u);
    ASSERT_FALSE(server_->NextEvent(&event));
    EXPECT_EQ(::poll(&woken, 1, 0), 0) << "awake without a reason";
    ASSERT_TRUE(Send(dialled_.get(), 1, from.All()).ok());
    EXPECT_EQ(::poll(&woken, 1, 10000), 1) << "not woken";
    EXPECT_FALSE(server_->NextEvent(&event));
    EXPECT_EQ(NextCompletion(device).id, 1u);
    EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kOk);
    while (server_->NextEvent(&event)) continue;
    EXPECT_EQ(::poll(&woken, 1, 0), 0) << "still awake";
  }
}

// ---- what is not granted ----

TEST_F(SystemVerbsTest, WhatIsDeregisteredIsNotWrittenTo) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered to(accepted_->device(), 4096, /*remote_write=*/true), from(dialled_->device(), 4096);
  from.Fill("first");
  ASSERT_TRUE(Write(dialled_.get(), 1, from.All(), to).ok());
  EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kOk);
  EXPECT_EQ(to.Text(5), "first");

  const std::uint32_t key = to.region->remote_key();
  to.region = nullptr;
  from.Fill("later");
  SendRequest late;
  const Segment segment = from.All();
  late.id = 2;
  late.opcode = Opcode::kWrite;
  late.segments = {&segment, 1};
  late.remote_address = reinterpret_cast<std::uintptr_t>(to.memory.data());
  late.remote_key = key;
  ASSERT_TRUE(dialled_->Post({&late, 1}).ok());
  ASSERT_TRUE(Send(dialled_.get(), 3, segment).ok());
  const Completion refused = NextCompletion(dialled_->device());
  EXPECT_EQ(refused.id, 2u);
  EXPECT_EQ(refused.outcome, Outcome::kRemoteAccess) << StatusOf(refused);
  EXPECT_EQ(refused.queue_pair, dialled_->queue_pair());
  const Completion behind = NextCompletion(dialled_->device());
  EXPECT_EQ(behind.id, 3u);
  EXPECT_EQ(behind.outcome, Outcome::kFlushed);
  EXPECT_EQ(to.Text(5), "first");
}

TEST_F(SystemVerbsTest, MemoryThatOnlyItsOwnerWrites) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered to(accepted_->device(), 4096), from(dialled_->device(), 4096);
  ASSERT_TRUE(Write(dialled_.get(), 1, from.All(), to).ok());
  EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kRemoteAccess);
}

TEST_F(SystemVerbsTest, BeyondTheEndOfTheRegion) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered to(accepted_->device(), 4096, /*remote_write=*/true), from(dialled_->device(), 8192);
  ASSERT_TRUE(Write(dialled_.get(), 1, from.All(), to).ok());
  EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kRemoteAccess);
}

TEST_F(SystemVerbsTest, AReceiveThatIsTooSmall) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered to(accepted_->device(), 64), from(dialled_->device(), 4096);
  ASSERT_TRUE(accepted_->device()->PostReceive(4, to.All()).ok());
  ASSERT_TRUE(Send(dialled_.get(), 1, from.All()).ok());
  const Completion sent = NextCompletion(dialled_->device());
  EXPECT_TRUE(sent.outcome == Outcome::kRemoteInvalid) << StatusOf(sent);
}

TEST_F(SystemVerbsTest, MemoryOfThisSideThatIsNotRegistered) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered to(accepted_->device(), 4096), from(dialled_->device(), 4096);
  ASSERT_TRUE(accepted_->device()->PostReceive(4, to.All()).ok());
  const Segment segment = from.All();
  from.region = nullptr;
  const absl::Status posted = Send(dialled_.get(), 1, segment);
  if (!posted.ok()) return;  // some devices look at once
  const Outcome outcome = NextCompletion(dialled_->device()).outcome;
  // Soft-RoCE says IBV_WC_LOC_QP_OP_ERR.
  EXPECT_TRUE(outcome == Outcome::kLocalProtection || outcome == Outcome::kOther);
}

// ---- the end ----

TEST_F(SystemVerbsTest, DisconnectingTellsBothAndFlushes) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered from(accepted_->device(), 64);
  ASSERT_TRUE(Send(accepted_.get(), 77, from.All()).ok());  // no receive is there for it
  dialled_->Disconnect();
  EXPECT_EQ(Next(client_.get()).kind, EventKind::kDisconnected);
  const Event told = Next(server_.get());
  EXPECT_EQ(told.kind, EventKind::kDisconnected);
  EXPECT_EQ(told.connection, accepted_.get());
  const Completion flushed = NextCompletion(accepted_->device());
  EXPECT_EQ(flushed.id, 77u);
  EXPECT_EQ(flushed.outcome, Outcome::kFlushed);
  dialled_ = nullptr;
  accepted_ = nullptr;
  Establish();  // a new one, on the same devices
}

TEST_F(SystemVerbsTest, TheOtherSideIsDestroyed) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  dialled_ = nullptr;
  client_ = nullptr;
  client_ = Open({});
  EXPECT_EQ(Next(server_.get()).kind, EventKind::kDisconnected);
}

// The news that it has gone is not looked at; the queue pair notices by itself.
TEST_F(SystemVerbsTest, NobodyAcknowledges) {
  Options options;
  options.timeout_ms = 500;
  client_ = Open(options);
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered from(dialled_->device(), 64);
  accepted_ = nullptr;
  const auto begin = Clock::now();
  ASSERT_TRUE(Send(dialled_.get(), 1, from.All()).ok());
  EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kRetriesExceeded);
  const auto took = std::chrono::duration<double>(Clock::now() - begin).count();
  RecordProperty("seconds", std::to_string(took));
  EXPECT_GT(took, 0.1);
  EXPECT_LT(took, 10);
}

// ---- limits ----

// Of this thread, which is what registers.
void MayLockAll(bool may) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  ASSERT_EQ(::syscall(SYS_capget, &header, data), 0);
  const std::uint32_t bit = 1u << (CAP_IPC_LOCK % 32);
  std::uint32_t& effective = data[CAP_IPC_LOCK / 32].effective;
  effective = may ? effective | bit : effective & ~bit;
  ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
}

// The kernel lets nobody use rdma_cm's descriptors whose credentials have changed since they were
// opened, so all are opened and closed in between.
TEST_F(SystemVerbsTest, NoMoreMemoryMayBeLocked) {
  const bool privileged = ::geteuid() == 0;
  if (privileged) MayLockAll(false);
  server_ = Open({});
  client_ = Open({});
  const auto port = server_->Listen(AddressOf(host_, 0));
  ASSERT_TRUE(port.ok()) << port.status();
  port_ = *port;
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit little = before;
  little.rlim_cur = 1 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &little), 0);
  std::vector<std::byte> memory(16 << 20);
  const auto region = dialled_->device()->Register(memory.data(), memory.size(), false);
  const absl::Status viable = provider_->Viable();
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(region.status())) << region.status();
  EXPECT_THAT(region.status().message(), HasSubstr("1048576 bytes"));
  EXPECT_THAT(region.status().message(), HasSubstr("ulimit -l unlimited"));
  EXPECT_THAT(region.status().message(), HasSubstr("LimitMEMLOCK="));
  EXPECT_TRUE(absl::IsResourceExhausted(viable)) << viable;
  dialled_ = nullptr;
  accepted_ = nullptr;
  client_ = nullptr;
  server_ = nullptr;
  if (privileged) MayLockAll(true);
}

}  // namespace
}  // namespace leeway::van::verbs
