// Tests of shared memory alone: an arena that is full or too small, and that nothing is left of a
// process that was killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/loop/real_loop.h"
#include "van/shm/shm_transport.h"
#include "van/testing/test_processes.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

// Two vans with an arena of that size, on loops that this thread runs.
class ShmPair {
 public:
  explicit ShmPair(std::uint64_t arena_bytes) : factory_(NewShmFactory(arena_bytes)) {
    server = factory_->New(&server_loop, IdentityOf(Role::kServer, 2), {}, &at_server);
    worker = factory_->New(&worker_loop, IdentityOf(Role::kWorker, 3), {}, &at_worker);
    const std::string address = server->Listen(factory_->AnyAddress("")).value();
    peer = worker->Connect(address, absl::Seconds(30)).value();
    EXPECT_TRUE(RunUntil([&] { return at_worker.IsUp(peer); }));
  }
  bool RunUntil(const std::function<bool()>& done) {
    const absl::Time until = server_loop.Now() + absl::Seconds(60);
    while (!done() && server_loop.Now() < until) {
      server_loop.RunReady();
      worker_loop.RunReady();
    }
    return done();
  }

  runtime::RealLoop server_loop{1}, worker_loop{2};
  Recorder at_server, at_worker;

 private:
  std::unique_ptr<Factory> factory_;

 public:
  std::unique_ptr<Van> server, worker;
  PeerId peer = 0;
};

TEST(ShmArenaIsFull, MessagesThatAreKeptDoNotStopTheOthers) {
  ShmPair pair(1 << 20);
  constexpr int kMessages = 100;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {Pattern(100'000, i)})).ok());
  }
  ASSERT_TRUE(pair.RunUntil([&] { return pair.at_server.messages.size() == kMessages; }));
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(pair.at_server.messages[i].message.payload[0].text(), Pattern(100'000, i));
  }
}

TEST(ShmArenaIsFull, NorDoThoseThatLeaveItInShreds) {
  ShmPair pair(1 << 20);
  // Every second message is kept.
  std::vector<Message> kept;
  int got = 0;
  pair.at_server.on_message = [&](PeerId, Message message) {
    if (got++ % 2 == 0) kept.push_back(std::move(message));
  };
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {Pattern(5000, i)})).ok());
  }
  ASSERT_TRUE(pair.RunUntil([&] { return got == 300; }));
  int whole = 0;
  pair.at_server.on_message = [&](PeerId, Message message) {
    EXPECT_EQ(message.payload[0].text(), Pattern(250'000, whole));
    ++whole;
  };
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {Pattern(250'000, i)})).ok());
  }
  ASSERT_TRUE(pair.RunUntil([&] { return whole == 20; }));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    ASSERT_EQ(kept[i].payload[0].text(), Pattern(5000, static_cast<int>(2 * i)));
  }
}

TEST(ShmArenaIsFull, FramesLargerThanItComeInPieces) {
  for (const std::uint64_t arena : {4096u, 16384u, 1u << 20}) {
    ShmPair pair(arena);
    const std::string header = Pattern(3'000'000, 1);
    const std::vector<std::string> payload = {Pattern(5'000'001, 2), "", Pattern(4097, 3), "x",
                                              Pattern(2'000'000, 4)};
    DoneProbe done;
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage(header, payload), done.New()).ok());
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("after it"), done.New()).ok());
    ASSERT_TRUE(pair.RunUntil(
        [&] { return pair.at_server.messages.size() == 2 && done.state().called == 2; }));
    const Message& whole = pair.at_server.messages[0].message;
    EXPECT_TRUE(whole.header.text() == header);
    ASSERT_EQ(whole.payload.size(), payload.size());
    for (std::size_t i = 0; i < payload.size(); ++i) {
      EXPECT_TRUE(whole.payload[i].text() == payload[i]) << i;
    }
  }
}

TEST(ShmArenaIsFull, AVanThatClosesWaitsForRoomButNotForLong) {
  auto pair = std::make_unique<ShmPair>(1 << 20);
  DoneProbe done;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        pair->worker->Send(pair->peer, TextMessage("m", {Pattern(100'000, i)}), done.New()).ok());
  }
  const absl::Time start = pair->worker_loop.Now();
  pair->worker.reset();  // the server's loop does not run
  EXPECT_LT(pair->worker_loop.Now() - start, absl::Seconds(5));
  EXPECT_EQ(done.state().called, 50);
  EXPECT_EQ(done.state().results.back().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(pair->RunUntil([&] { return pair->at_server.downs.size() == 1; }));
  EXPECT_GT(pair->at_server.messages.size(), 5u);
}

TEST(ShmArenaIsFull, ADisconnectedPeerStillGetsWhatWaitedForRoom) {
  ShmPair pair(1 << 20);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {Pattern(100'000, i)})).ok());
  }
  pair.worker->Disconnect(pair.peer, absl::OkStatus());
  ASSERT_TRUE(pair.RunUntil([&] { return pair.at_server.downs.size() == 1; }));
  EXPECT_TRUE(pair.at_server.downs[0].why.ok()) << pair.at_server.downs[0].why;
  EXPECT_EQ(pair.at_server.messages.size(), 50u);
}

// ---- a process that is killed ----

TEST(ShmKilled, AWorkerLeavesNothingBehind) {
  const int descriptors = OpenDescriptors(), mappings = SharedMappings();
  const auto factory = NewShmFactory();
  runtime::RealLoop loop(1);
  Recorder recorder;
  std::uint64_t next = 0;
  std::vector<Message> held;
  recorder.on_message = [&](PeerId, Message message) {
    EXPECT_EQ(std::string(message.header.text()), absl::StrCat(++next));
    ASSERT_EQ(message.payload[0].text(), std::string(message.payload[0].size(), 'k'));
    if (next % 2 == 0 && held.size() < 100) held.push_back(std::move(message));
  };
  auto server = factory->New(&loop, IdentityOf(Role::kServer, 2), {}, &recorder);
  const std::string address = server->Listen(factory->AnyAddress("")).value();
  for (const std::uint64_t messages : {1, 2, 5, 40}) {
    next = 0;
    const std::size_t downs = recorder.downs.size();
    const pid_t child = WorkerThatSendsForEver(factory.get(), address);
    ASSERT_TRUE(TurnUntil(&loop, [&] { return next >= messages; }));
    Kill(child);
    ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.downs.size() == downs + 1; }));
    EXPECT_EQ(recorder.downs.back().why.code(), absl::StatusCode::kUnavailable);
    // Kept messages can still be read.
    for (const Message& message : held) {
      ASSERT_EQ(message.payload[0].text(), std::string(message.payload[0].size(), 'k'));
    }
    held.clear();
    while (loop.RunReady()) {
    }
    EXPECT_EQ(SharedMappings(), mappings);
  }
  server.reset();
  EXPECT_EQ(OpenDescriptors(), descriptors + 1);  // the loop's own
}

TEST(ShmKilled, AServerLeavesNothingBehind) {
  const int descriptors = OpenDescriptors(), mappings = SharedMappings();
  {
    const auto factory = NewShmFactory();
    runtime::RealLoop loop(1);
    Recorder recorder;
    auto worker = factory->New(&loop, IdentityOf(Role::kWorker, 3), {}, &recorder);
    const std::string address = factory->AnyAddress("");
    for (int round = 0; round < 4; ++round) {
      const pid_t child = InChild([&] {
        runtime::RealLoop child_loop(2);
        Recorder child_recorder;
        auto van = factory->New(&child_loop, IdentityOf(Role::kServer, 2), {}, &child_recorder);
        std::vector<Message> kept;
        child_recorder.on_message = [&](PeerId peer, Message message) {
          van->Send(peer, message).IgnoreError();
          kept.push_back(std::move(message));
        };
        van->Listen(address).value();
        TurnUntil(&child_loop, [] { return false; });
      });
      const PeerId peer = worker->Connect(address, absl::Seconds(30)).value();
      ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.IsUp(peer); }));
      DoneProbe done;
      auto live = std::make_shared<std::atomic<int>>(0);
      for (int i = 0; i < 40; ++i) {
        Message message = TextMessage("m");
        message.payload.push_back(TrackedBuffer(3'000'000, 'x', live));
        ASSERT_TRUE(worker->Send(peer, std::move(message), done.New()).ok());
      }
      ASSERT_TRUE(TurnUntil(&loop, [&] { return done.state().called > 5 * round; }));
      Kill(child);
      ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.IsDown(peer); }));
      EXPECT_EQ(recorder.WhyDown(peer).code(), absl::StatusCode::kUnavailable);
      ASSERT_TRUE(TurnUntil(&loop, [&] { return done.state().called == 40 && *live == 0; }));
      EXPECT_EQ(done.state().dropped, 0);
    }
    recorder.messages.clear();
  }
  EXPECT_EQ(SharedMappings(), mappings);
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST(ShmKilled, OneThatIsStoppedIsNotMistakenForDead) {
  const auto factory = NewShmFactory();
  runtime::RealLoop loop(1);
  Recorder recorder;
  auto worker = factory->New(&loop, IdentityOf(Role::kWorker, 3), {}, &recorder);
  const std::string address = factory->AnyAddress("");
  const pid_t child = InChild([&] {
    runtime::RealLoop child_loop(2);
    Recorder child_recorder;
    auto van = factory->New(&child_loop, IdentityOf(Role::kServer, 2), {}, &child_recorder);
    child_recorder.on_message = [&](PeerId peer, Message message) {
      van->Send(peer, std::move(message)).IgnoreError();
    };
    van->Listen(address).value();
    TurnUntil(&child_loop, [] { return false; });
  });
  const PeerId peer = worker->Connect(address, absl::Seconds(30)).value();
  ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.IsUp(peer); }));
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(worker->Send(peer, TextMessage("wake up")).ok());
  EXPECT_FALSE(TurnUntil(
      &loop, [&] { return !recorder.messages.empty() || !recorder.downs.empty(); },
      absl::Milliseconds(100)));
  ::kill(child, SIGCONT);
  EXPECT_TRUE(TurnUntil(&loop, [&] { return recorder.messages.size() == 1; }));
  Kill(child);
}

// ---- sleeping and waking ----

TEST(ShmSleep, NoWakeUpIsLost) { ExpectNoWakeUpIsLost(NewShmFactory().get(), ""); }

TEST(ShmSleep, ASenderOnAnotherThreadDoesNotLoseTheSleepersWakeUp) {
  ExpectNoWakeUpIsLostByASharedLoop(NewShmFactory().get(), "");
}

TEST(ShmAddress, NamesThatMakeNoSense) {
  EXPECT_EQ(ShmTransport::NameIn("shm://a/b").value(), "a/b");
  for (const std::string& address :
       {std::string("shm://"), std::string("shm:/a"), std::string("tcp://a:1"),
        std::string("shm://a b"), "shm://" + std::string(kShmNameBytesMax + 1, 'x')}) {
    EXPECT_THAT(std::string(ShmTransport::NameIn(address).status().message()),
                HasSubstr("shm://NAME"));
  }
  EXPECT_TRUE(NewShmFactory()->Viable().ok());
}

}  // namespace
}  // namespace leeway::van
