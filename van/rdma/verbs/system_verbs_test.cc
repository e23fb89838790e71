// Tests of sending over the system's verbs, of refused requests, and of the end of connections.
#include "van/rdma/verbs/system_verbs.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "van/rdma/testing/system_verbs_fixture.h"

namespace leeway::van::verbs {
namespace {

using testing::HasSubstr;

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
    // Each send has two segments, and only the last one requests a completion.
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

TEST_F(SystemVerbsTest, DeregisteredMemoryIsNotWrittenTo) {
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
  if (!posted.ok()) return;  // some devices check the memory at once
  const Outcome outcome = NextCompletion(dialled_->device()).outcome;
  // Soft-RoCE reports IBV_WC_LOC_QP_OP_ERR.
  EXPECT_TRUE(outcome == Outcome::kLocalProtection || outcome == Outcome::kOther);
}

TEST_F(SystemVerbsTest, MemoryThatCanOnlyBeRead) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  constexpr std::size_t kBytes = 4096;
  void* const page =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const data = static_cast<std::byte*>(page);
  std::memcpy(data, "fixed", 5);
  ASSERT_EQ(::mprotect(page, kBytes, PROT_READ), 0);
  Registered to(accepted_->device(), kBytes);
  ASSERT_TRUE(accepted_->device()->PostReceive(1, to.All()).ok());
  EXPECT_FALSE(dialled_->device()->Register(data, kBytes, /*remote_write=*/true).ok());
  {
    const auto region = dialled_->device()->Register(data, kBytes, /*remote_write=*/false);
    ASSERT_TRUE(region.ok()) << region.status();
    const Segment segment{data, kBytes, (*region)->local_key()};
    ASSERT_TRUE(Send(dialled_.get(), 1, segment).ok());
    EXPECT_EQ(NextCompletion(accepted_->device()).bytes, kBytes);
    EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kOk);
  }
  EXPECT_EQ(to.Text(5), "fixed");
  ::munmap(page, kBytes);
}

// ---- the end ----

TEST_F(SystemVerbsTest, DisconnectingTellsBothAndFlushes) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered from(accepted_->device(), 64);
  ASSERT_TRUE(Send(accepted_.get(), 77, from.All()).ok());  // no receive is posted for it
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
  Establish();  // another connection, on the same devices
}

TEST_F(SystemVerbsTest, TheOtherSideIsDestroyed) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  dialled_ = nullptr;
  client_ = nullptr;
  client_ = Open({});
  EXPECT_EQ(Next(server_.get()).kind, EventKind::kDisconnected);
}

// The event that the other side is gone is not read; the queue pair fails by itself.
TEST_F(SystemVerbsTest, NobodyAcknowledges) {
  Options options;
  options.timeout_ms = 500;
  client_ = Open(options);
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  Registered from(dialled_->device(), 64);
  accepted_ = nullptr;
  const auto begin = SteadyClock::now();
  ASSERT_TRUE(Send(dialled_.get(), 1, from.All()).ok());
  EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kRetriesExceeded);
  const auto took = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  RecordProperty("seconds", std::to_string(took));
  EXPECT_GT(took, 0.1);
  EXPECT_LT(took, 10);
}

// ---- limits ----

// Sets CAP_IPC_LOCK of this thread, which registers the memory.
void MayLockAll(bool may) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  ASSERT_EQ(::syscall(SYS_capget, &header, data), 0);
  const std::uint32_t bit = 1u << (CAP_IPC_LOCK % 32);
  std::uint32_t& effective = data[CAP_IPC_LOCK / 32].effective;
  effective = may ? effective | bit : effective & ~bit;
  ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
}

// The kernel refuses rdma_cm's descriptors to a process whose credentials have changed since they
// were opened, so all are opened and closed in between.
TEST_F(SystemVerbsTest, NoMoreMemoryMayBeLocked) {
  const bool privileged = ::geteuid() == 0;
  client_ = nullptr;
  server_ = nullptr;
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
