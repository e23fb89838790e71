// What only shared memory has to show: what it does when the arena is full or too small, and that
// nothing is left of a process that was killed.
#include "van/shm/shm_van.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/real_loop.h"
#include "van/shm/shm_transport.h"
#include "van/test_world.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

int OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

int SharedMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "memfd:leeway")) ++count;
  }
  return count;
}

// Two vans with an arena of that size on loops that this thread turns.
class Pair {
 public:
  explicit Pair(std::uint64_t arena_bytes) : factory_(NewShmFactory(arena_bytes)) {
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

std::string Pattern(std::size_t size, int seed) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 31 + seed * 7) >> 3);
  return text;
}

TEST(ShmArenaIsFull, MessagesThatAreKeptDoNotStopTheOthers) {
  Pair pair(1 << 20);
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
  Pair pair(1 << 20);
  // Every second one is kept.
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
    Pair pair(arena);
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
  auto pair = std::make_unique<Pair>(1 << 20);
  DoneProbe done;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        pair->worker->Send(pair->peer, TextMessage("m", {Pattern(100'000, i)}), done.New()).ok());
  }
  const absl::Time start = pair->worker_loop.Now();
  pair->worker.reset();  // the server stands still
  EXPECT_LT(pair->worker_loop.Now() - start, absl::Seconds(5));
  EXPECT_EQ(done.state().called, 50);
  EXPECT_EQ(done.state().results.back().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(pair->RunUntil([&] { return pair->at_server.downs.size() == 1; }));
  EXPECT_GT(pair->at_server.messages.size(), 5u);
}

TEST(ShmArenaIsFull, ADisconnectedPeerStillGetsWhatWaitedForRoom) {
  Pair pair(1 << 20);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {Pattern(100'000, i)})).ok());
  }
  pair.worker->Disconnect(pair.peer, absl::OkStatus());
  ASSERT_TRUE(pair.RunUntil([&] { return pair.at_server.downs.size() == 1; }));
  EXPECT_TRUE(pair.at_server.downs[0].why.ok()) << pair.at_server.downs[0].why;
  EXPECT_EQ(pair.at_server.messages.size(), 50u);
}

// ---- a process that is killed ----

// Runs `body` in a process of its own, which never returns from here.
pid_t InChild(const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) body();
  ::_exit(0);
}

void Kill(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

bool TurnUntil(runtime::RealLoop* loop, const std::function<bool()>& done,
               absl::Duration at_most = absl::Seconds(60)) {
  const absl::Time until = loop->Now() + at_most;
  while (!done() && loop->Now() < until) {
    if (!loop->RunReady()) loop->Wait(loop->PrepareWait(until));
  }
  return done();
}

// Sends large and small messages for as long as it lives.
void SendForEver(runtime::RealLoop* loop, Van* van, Recorder* recorder, PeerId peer) {
  std::uint64_t next = 0;
  recorder->on_message = [](PeerId, Message) {};
  TurnUntil(loop, [&] {
    while (van->Writable(peer)) {
      const std::size_t size = ++next % 3 == 0 ? 20'000'000 : next % 3 * 70'000;
      van->Send(peer, TextMessage(absl::StrCat(next), {std::string(size, 'k')})).IgnoreError();
    }
    return recorder->IsDown(peer);
  });
}

TEST(ShmKilled, AWorkerLeavesNothingBehind) {
  const int descriptors = OpenDescriptors(), mappings = SharedMappings();
  const auto factory = NewShmFactory();
  runtime::RealLoop loop(1);
  Recorder recorder;
  std::uint64_t next = 0;
  std::vector<Message> held;
  recorder.on_message = [&](PeerId, Message message) {
    EXPECT_EQ(std::string(message.header.text()), absl::StrCat(++next));
    ASSERT_EQ(message.payload[0].text().find_first_not_of('k'), absl::string_view::npos);
    if (next % 2 == 0 && held.size() < 100) held.push_back(std::move(message));
  };
  auto server = factory->New(&loop, IdentityOf(Role::kServer, 2), {}, &recorder);
  const std::string address = server->Listen(factory->AnyAddress("")).value();
  for (const std::uint64_t messages : {1, 2, 5, 40}) {
    next = 0;
    const std::size_t downs = recorder.downs.size();
    const pid_t child = InChild([&] {
      runtime::RealLoop child_loop(2);
      Recorder child_recorder;
      auto van = factory->New(&child_loop, IdentityOf(Role::kWorker, 3), {}, &child_recorder);
      const PeerId peer = van->Connect(address, absl::Seconds(30)).value();
      TurnUntil(&child_loop, [&] { return child_recorder.IsUp(peer); });
      SendForEver(&child_loop, van.get(), &child_recorder, peer);
    });
    ASSERT_TRUE(TurnUntil(&loop, [&] { return next >= messages; }));
    Kill(child);
    ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.downs.size() == downs + 1; }));
    EXPECT_EQ(recorder.downs.back().why.code(), absl::StatusCode::kUnavailable);
    // What was kept can still be read.
    for (const Message& message : held) {
      ASSERT_EQ(message.payload[0].text().find_first_not_of('k'), absl::string_view::npos);
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

// Pauses of every length, so that a message comes before, while and after the other side falls
// asleep; a wake-up that gets lost stops it for good.
TEST(ShmSleep, NoWakeUpIsLost) {
  const auto factory = NewShmFactory();
  runtime::RealLoop server_loop(1), loop(2);
  Recorder server_recorder, recorder;
  auto server = factory->New(&server_loop, {}, {}, &server_recorder);
  server_recorder.on_message = [&](PeerId peer, Message message) {
    EXPECT_TRUE(server->Send(peer, std::move(message)).ok());
  };
  const std::string address = server->Listen(factory->AnyAddress("")).value();
  std::thread server_thread([&] { server_loop.Run(); });
  auto van = factory->New(&loop, {}, {}, &recorder);
  int answers = 0;
  recorder.on_message = [&](PeerId, Message) { ++answers; };
  const PeerId peer = van->Connect(address, absl::Seconds(30)).value();
  for (int i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(van->Send(peer, TextMessage("m", {std::string(i % 9000, 'x')})).ok());
    ASSERT_TRUE(TurnUntil(&loop, [&] { return answers == i; }));
    const absl::Time until = loop.Now() + absl::Microseconds(i % 150);
    while (loop.Now() < until) {
    }
  }
  van.reset();
  server_loop.Stop();
  server_thread.join();
}

// The way a worker uses it: one thread sleeps on the loop's descriptors, others send under the lock
// and turn the loop themselves.
TEST(ShmSleep, ASenderOnAnotherThreadDoesNotLoseTheSleepersWakeUp) {
  const auto factory = NewShmFactory();
  runtime::RealLoop server_loop(1), loop(2);
  std::mutex mutex;
  Recorder server_recorder, recorder;
  auto server = factory->New(&server_loop, {}, {}, &server_recorder);
  auto van = factory->New(&loop, {}, {}, &recorder);
  server_recorder.on_message = [&](PeerId peer, Message message) {
    EXPECT_TRUE(server->Send(peer, std::move(message)).ok());
  };
  int answers = 0;
  recorder.on_message = [&](PeerId, Message) { ++answers; };
  const std::string address = server->Listen(factory->AnyAddress("")).value();
  std::thread server_thread([&] { server_loop.Run(); });
  const PeerId peer = van->Connect(address, absl::Seconds(30)).value();
  constexpr int kMessages = 500;
  const auto wait_for = [&](int count) {
    while (true) {
      runtime::RealLoop::WaitSet set;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        while (loop.RunReady()) {
        }
        if (answers >= count) return true;
        set = loop.PrepareWait(loop.Now() + absl::Seconds(20));
      }
      runtime::RealLoop::Wait(set);
    }
  };
  std::vector<std::thread> senders;
  for (int t = 0; t < 2; ++t) {
    senders.emplace_back([&] {
      for (int i = 0; i < kMessages; ++i) {
        const std::lock_guard<std::mutex> lock(mutex);
        EXPECT_TRUE(van->Send(peer, TextMessage("m", {std::string(5000, 'x')})).ok());
        while (loop.RunReady()) {
        }
      }
    });
  }
  wait_for(2 * kMessages);
  for (std::thread& sender : senders) sender.join();
  van.reset();
  server_loop.Stop();
  server_thread.join();
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
