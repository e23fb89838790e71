// Tests of zero-copy exports: frames are not copied, `done` waits until they are given back, and a
// peer that never gives them back blocks no one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/loop/real_loop.h"
#include "runtime/memory/shared_memory.h"
#include "van/shm/memory/shm_format.h"
#include "van/shm/shm_transport.h"
#include "van/testing/test_processes.h"

namespace leeway::van {
namespace {

using runtime::SharedMemory;

constexpr std::size_t kArrayBytes = 1 << 20;

std::shared_ptr<SharedMemory> Filled(char with, std::size_t bytes = kArrayBytes) {
  std::shared_ptr<SharedMemory> memory = SharedMemory::New(bytes).value();
  std::memset(memory->data(), with, bytes);
  return memory;
}

Message Exporting(const SharedMemory& memory, std::size_t at = 0, std::size_t size = kArrayBytes) {
  Message message = TextMessage("m");
  message.payload.push_back(Buffer::Unowned(memory.data() + at, size));
  return message;
}

std::string All(char with, std::size_t size = kArrayBytes) { return std::string(size, with); }

// A worker that exports to a server which keeps what it gets, on loops that this thread runs.
class ShmExportTest : public testing::Test {
 protected:
  ShmExportTest() { Connect(); }
  void Connect() {
    server_ = factory_->New(&server_loop_, IdentityOf(Role::kServer, 2), {}, &at_server_);
    worker_ = factory_->New(&worker_loop_, IdentityOf(Role::kWorker, 3), {}, &at_worker_);
    const std::string address = server_->Listen(factory_->AnyAddress("")).value();
    peer_ = worker_->Connect(address, absl::Seconds(30)).value();
    EXPECT_TRUE(RunUntil([&] { return at_worker_.IsUp(peer_); }));
    at_server_.on_message = [this](PeerId, Message message) {
      kept_.push_back(std::move(message));
    };
  }
  bool RunUntil(const std::function<bool()>& done) {
    const absl::Time until = server_loop_.Now() + absl::Seconds(60);
    while (!done() && server_loop_.Now() < until) Turn();
    return done();
  }
  void Turn() {
    server_loop_.RunReady();
    worker_loop_.RunReady();
  }
  void Send(Message message) {
    ASSERT_TRUE(worker_->Send(peer_, std::move(message), done_.New()).ok());
  }
  bool RunUntilKept(std::size_t messages) {
    return RunUntil([&] { return kept_.size() == messages; });
  }
  int done() { return done_.state().called; }

  const std::unique_ptr<Factory> factory_ = NewShmFactory(1 << 20);
  runtime::RealLoop server_loop_{1}, worker_loop_{2};
  Recorder at_server_, at_worker_;
  std::unique_ptr<Van> server_, worker_;
  PeerId peer_ = 0;
  std::vector<Message> kept_;
  DoneProbe done_;
};

TEST_F(ShmExportTest, AFrameIsReadWhereItLiesAndDoneWhenItIsGivenBack) {
  const auto memory = Filled('a');
  Send(Exporting(*memory, 4096, 100'000));
  ASSERT_TRUE(RunUntilKept(1));
  const Buffer frame = kept_[0].payload[0];
  EXPECT_TRUE(frame.exported());
  EXPECT_TRUE(frame.may_change());
  EXPECT_EQ(frame.text(), All('a', 100'000));
  std::memset(memory->data() + 4096, 'b', 100'000);  // the frame is the same memory
  EXPECT_EQ(frame.text(), All('b', 100'000));
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_EQ(done(), 0);
  kept_.clear();
  Turn();
  EXPECT_EQ(done(), 0);  // `frame` still holds it
}

TEST_F(ShmExportTest, AnExportIsNotBackBecauseAnEarlierOneOfItsPlaceWas) {
  const auto memory = Filled('a');
  for (int before = 0; before < 2; ++before) {
    Send(Exporting(*memory));
    ASSERT_TRUE(RunUntilKept(1));
    kept_.clear();
    ASSERT_TRUE(RunUntil([&] { return done() == before + 1; }));
  }
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_EQ(done(), 2);
}

TEST_F(ShmExportTest, DoneComesWithTheLastOfItsFrames) {
  const auto one = Filled('1'), two = Filled('2');
  Message message = Exporting(*one);
  message.payload.push_back(Buffer::CopyOf("copied"));
  message.payload.push_back(Buffer::Unowned(two->data(), kArrayBytes));
  message.payload.push_back(Buffer::CopyOf(All('c', 50'000)));
  message.payload.push_back(Buffer::CopyOf(All('p', 3'000'000)));  // sent in pieces
  Send(std::move(message));
  ASSERT_TRUE(RunUntilKept(1));
  auto& payload = kept_[0].payload;
  EXPECT_EQ(payload[0].text(), All('1'));
  EXPECT_EQ(payload[1].text(), "copied");
  EXPECT_EQ(payload[2].text(), All('2'));
  EXPECT_EQ(payload[3].text(), All('c', 50'000));
  EXPECT_EQ(payload[4].text(), All('p', 3'000'000));
  EXPECT_FALSE(payload[1].exported() || payload[3].exported() || payload[4].exported());
  payload[0] = Buffer();
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_EQ(done(), 0);
  payload[2] = Buffer();
  EXPECT_TRUE(RunUntil([&] { return done() == 1; }));
  EXPECT_TRUE(done_.state().results[0].ok());
}

TEST_F(ShmExportTest, GivingBackInAnyOrderOnAnyThreadWakesTheExporter) {
  const auto memory = Filled('x');
  for (int i = 0; i < 64; ++i) Send(Exporting(*memory, i * 8192, 8192));
  ASSERT_TRUE(RunUntilKept(64));
  std::thread giver([&] {
    for (std::size_t i = 0; i < 64; ++i) kept_[i * 37 % 64] = Message();
  });
  while (done() < 64) {
    if (!worker_loop_.RunReady()) {
      runtime::RealLoop::Wait(worker_loop_.PrepareWait(worker_loop_.Now() + absl::Seconds(60)));
    }
  }
  giver.join();
}

TEST_F(ShmExportTest, WhereNoMoreCanBeExportedFramesAreCopied) {
  const auto memory = Filled('x', 8 << 20);
  const std::size_t most = kShmExportsMax;
  for (std::size_t i = 0; i < most + 10; ++i) Send(Exporting(*memory, i * 5000, 5000));
  ASSERT_TRUE(RunUntilKept(most + 10));
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    EXPECT_EQ(kept_[i].payload[0].exported(), i < most) << i;
    EXPECT_EQ(kept_[i].payload[0].text(), All('x', 5000));
  }
  kept_.clear();
  ASSERT_TRUE(RunUntil([&] { return done() == static_cast<int>(most + 10); }));
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  EXPECT_TRUE(kept_[0].payload[0].exported());
}

TEST_F(ShmExportTest, SmallFramesAndOthersAreCopiedAsEver) {
  const auto memory = Filled('x');
  Message message = Exporting(*memory, 0, kShmInlineBytesMax);
  message.payload.push_back(Buffer::CopyOf(All('y')));
  Send(std::move(message));
  ASSERT_TRUE(RunUntilKept(1));
  EXPECT_FALSE(kept_[0].payload[0].exported());
  EXPECT_FALSE(kept_[0].payload[1].exported());
  EXPECT_TRUE(RunUntil([&] { return done() == 1; }));
}

// ---- the end of memory ----

TEST_F(ShmExportTest, MemoryThatIsFreedIsUnmappedOnBothSidesThoughNothingMoreIsSent) {
  const int before = SharedMappings();
  for (int i = 0; i < 5; ++i) {
    auto memory = Filled(static_cast<char>('a' + i));
    Send(Exporting(*memory));
    ASSERT_TRUE(RunUntilKept(1));
    EXPECT_EQ(SharedMappings(), before + 2);
    kept_.clear();
    ASSERT_TRUE(RunUntil([&] { return done() == i + 1; }));
    memory.reset();
    EXPECT_TRUE(RunUntil([&] { return SharedMappings() == before; }));
  }
}

TEST_F(ShmExportTest, MemoryThatIsFreedWhileItIsReadStays) {
  auto memory = Filled('a');
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  memory.reset();  // the user frees it too early
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_EQ(kept_[0].payload[0].text(), All('a'));
  const int mapped = SharedMappings();
  kept_.clear();
  EXPECT_TRUE(RunUntil([&] { return done() == 1 && SharedMappings() == mapped - 2; }));
}

TEST_F(ShmExportTest, MoreMemoryThanOneCanHaveMappedComesOneAfterTheOther) {
  const int before = SharedMappings();
  for (std::size_t i = 0; i < kShmExportedFilesMax + 50; ++i) {
    const auto memory = Filled('a', 8192);
    Send(Exporting(*memory, 0, 8192));
    ASSERT_TRUE(RunUntilKept(1));
    EXPECT_TRUE(kept_[0].payload[0].exported()) << i;
    kept_.clear();
    ASSERT_TRUE(RunUntil([&] { return done() == static_cast<int>(i + 1); }));
  }
  EXPECT_TRUE(RunUntil([&] { return SharedMappings() == before; }));
}

// Only a page or two of it is ever touched.
TEST_F(ShmExportTest, MemoryThatIsFreedDoesNotCountAmongWhatMayBeExported) {
  constexpr std::size_t kEach = kShmExportedBytesMax / kShmExportedFilesMax;
  for (std::size_t i = 0; i < kShmExportedFilesMax + 2; ++i) {
    const std::shared_ptr<SharedMemory> memory = SharedMemory::New(kEach).value();
    Send(Exporting(*memory, 0, 8192));
    ASSERT_TRUE(RunUntilKept(1));
    EXPECT_TRUE(kept_[0].payload[0].exported()) << i;
    kept_.clear();
    ASSERT_TRUE(RunUntil([&] { return done() == static_cast<int>(i + 1); }));
  }
}

// ---- a peer that does not give back ----

TEST_F(ShmExportTest, WhenTheConnectionIsDroppedTheMemoryIsFreeAndTheOtherSideSeesItAsItWas) {
  const auto memory = Filled('a');
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  Send(Exporting(*memory, 8192, 100'000));  // still in the ring when the connection ends
  worker_->Disconnect(peer_, absl::OkStatus());
  while (done() < 2) worker_loop_.RunReady();
  std::memset(memory->data(), 'b', kArrayBytes);
  EXPECT_EQ(kept_[0].payload[0].text(), All('a'));
  ASSERT_TRUE(RunUntilKept(2));
  EXPECT_TRUE(kept_[1].payload[0].exported());
  EXPECT_EQ(kept_[1].payload[0].text(), All('a', 100'000));
  EXPECT_EQ(memory->data()[kArrayBytes - 1], std::byte{'b'});
}

TEST_F(ShmExportTest, DetachedMemoryIsCopiedFromThenOn) {
  const auto memory = Filled('a');
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  worker_->Disconnect(peer_, absl::OkStatus());
  ASSERT_TRUE(RunUntil([&] { return done() == 1; }));
  worker_.reset();
  server_.reset();
  kept_.clear();
  at_worker_ = Recorder();
  at_server_ = Recorder();
  std::memset(memory->data(), 'b', kArrayBytes);
  Connect();
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  EXPECT_FALSE(kept_[0].payload[0].exported());
  EXPECT_EQ(kept_[0].payload[0].text(), All('b'));
}

TEST_F(ShmExportTest, AVanThatGoesEndsWhatItExported) {
  const auto memory = Filled('a');
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  worker_.reset();
  EXPECT_EQ(done(), 1);
  std::memset(memory->data(), 'b', kArrayBytes);
  EXPECT_EQ(kept_[0].payload[0].text(), All('a'));
}

TEST_F(ShmExportTest, AServerThatGoesEndsTheExportsOfItsWorker) {
  const auto memory = Filled('a');
  Send(Exporting(*memory));
  ASSERT_TRUE(RunUntilKept(1));
  const Message kept = std::move(kept_[0]);
  server_.reset();
  EXPECT_TRUE(RunUntil([&] { return done() == 1; }));
  std::memset(memory->data(), 'b', kArrayBytes);
  EXPECT_EQ(kept.payload[0].text(), All('a'));
}

// ---- other processes ----

// A server in another process that keeps what it gets for as long as it runs.
[[noreturn]] void KeepForEver(Factory* factory, const std::string& address) {
  runtime::RealLoop loop(2);
  Recorder recorder;
  auto van = factory->New(&loop, IdentityOf(Role::kServer, 2), {}, &recorder);
  std::vector<Message> kept;
  recorder.on_message = [&](PeerId peer, Message message) {
    van->Send(peer, TextMessage("got it")).IgnoreError();
    kept.push_back(std::move(message));
  };
  van->Listen(address).value();
  TurnUntil(
      &loop, [] { return false; }, absl::Minutes(10));
  ::_exit(0);
}

TEST(ShmExportKilled, AServerThatIsKilledGivesEverythingBack) {
  const int mappings = SharedMappings();
  {
    const auto factory = NewShmFactory();
    const std::string address = factory->AnyAddress("");
    runtime::RealLoop loop(1);
    Recorder recorder;
    auto worker = factory->New(&loop, IdentityOf(Role::kWorker, 3), {}, &recorder);
    for (int round = 0; round < 3; ++round) {
      const auto memory = Filled('a');
      const pid_t child = InChild([&] { KeepForEver(factory.get(), address); });
      const PeerId peer = worker->Connect(address, absl::Seconds(30)).value();
      ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.IsUp(peer); }));
      DoneProbe done;
      for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(worker->Send(peer, Exporting(*memory, i * 8192, 8192), done.New()).ok());
      }
      const std::size_t answers = recorder.messages.size();
      ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.messages.size() > answers; }));
      EXPECT_EQ(done.state().called, 0);
      Kill(child);
      ASSERT_TRUE(TurnUntil(&loop, [&] { return done.state().called == 10; }));
      ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.IsDown(peer); }));
      recorder.messages.clear();
    }
  }
  EXPECT_EQ(SharedMappings(), mappings);
}

TEST(ShmExportKilled, ExportsOfAKilledWorkerStayReadable) {
  const int mappings = SharedMappings();
  const auto factory = NewShmFactory();
  runtime::RealLoop loop(1);
  Recorder recorder;
  std::vector<Message> kept;
  recorder.on_message = [&](PeerId, Message message) { kept.push_back(std::move(message)); };
  auto server = factory->New(&loop, IdentityOf(Role::kServer, 2), {}, &recorder);
  const std::string address = server->Listen(factory->AnyAddress("")).value();
  const pid_t child = InChild([&] {
    runtime::RealLoop child_loop(2);
    Recorder child_recorder;
    auto van = factory->New(&child_loop, IdentityOf(Role::kWorker, 3), {}, &child_recorder);
    const PeerId peer = van->Connect(address, absl::Seconds(30)).value();
    TurnUntil(&child_loop, [&] { return child_recorder.IsUp(peer); });
    const auto memory = Filled('k');
    for (int i = 0; i < 10; ++i) van->Send(peer, Exporting(*memory)).IgnoreError();
    TurnUntil(
        &child_loop, [] { return false; }, absl::Minutes(10));
  });
  ASSERT_TRUE(TurnUntil(&loop, [&] { return kept.size() == 10; }));
  Kill(child);
  ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.downs.size() == 1; }));
  for (const Message& message : kept) {
    ASSERT_TRUE(message.payload[0].exported());
    ASSERT_EQ(message.payload[0].text(), All('k'));
  }
  kept.clear();
  while (loop.RunReady()) {
  }
  EXPECT_EQ(SharedMappings(), mappings);
}

TEST(ShmExportKilled, OneThatIsStoppedKeepsNothingOnceItIsGivenUp) {
  const auto factory = NewShmFactory();
  const std::string address = factory->AnyAddress("");
  runtime::RealLoop loop(1);
  Recorder recorder;
  auto worker = factory->New(&loop, IdentityOf(Role::kWorker, 3), {}, &recorder);
  const auto memory = Filled('a');
  const pid_t child = InChild([&] { KeepForEver(factory.get(), address); });
  const PeerId peer = worker->Connect(address, absl::Seconds(30)).value();
  ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.IsUp(peer); }));
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  DoneProbe done;
  ASSERT_TRUE(worker->Send(peer, Exporting(*memory), done.New()).ok());
  EXPECT_FALSE(TurnUntil(
      &loop, [&] { return done.state().called == 1; }, absl::Milliseconds(50)));
  worker->Disconnect(peer, absl::OkStatus());
  EXPECT_TRUE(TurnUntil(
      &loop, [&] { return done.state().called == 1; }, absl::Seconds(5)));
  Kill(child);
}

}  // namespace
}  // namespace leeway::van
