#include "runtime/loop/real_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/loop/adaptive_busy_poll.h"
#include "runtime/testing/test_event.h"

namespace leeway::runtime {
namespace {

const absl::Time kNow = absl::InfinitePast();  // WaitSet::until when the loop must not sleep

// A source like an edge-triggered socket: having work and having a readable fd are two things.
class FakeSource final : public Source {
 public:
  explicit FakeSource(std::function<bool()> poll)
      : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), poll_(std::move(poll)) {}
  ~FakeSource() override { ::close(fd_); }

  int fd() const override { return fd_; }
  bool Poll() override { return poll_(); }
  void Signal() { ASSERT_EQ(::eventfd_write(fd_, 1), 0); }
  void Drain() {
    eventfd_t count;
    ::eventfd_read(fd_, &count);
  }

 private:
  const int fd_;
  const std::function<bool()> poll_;
};

// A source with events in memory: its fd becomes readable only between BeginSleep and EndSleep.
class FakeBusyPollSource final : public BusyPollSource {
 public:
  bool Ready() const override {
    ++looks;
    return ready;
  }
  void BeginSleep() override {
    ++sleeps;
    if (news_before_sleep) ready = true;
  }
  void EndSleep() override { ++wakes; }

  mutable std::atomic<int> looks{0};
  std::atomic<bool> ready{false};
  bool news_before_sleep = false;
  int sleeps = 0, wakes = 0;
};

class BusyPolledSource final : public Source {
 public:
  explicit BusyPolledSource(std::shared_ptr<FakeBusyPollSource> busy_poll)
      : busy_poll_(std::move(busy_poll)) {}
  int fd() const override { return fake_.fd(); }
  bool Poll() override { return busy_poll_->ready.exchange(false); }
  std::shared_ptr<BusyPollSource> busy_poll() override { return busy_poll_; }

 private:
  FakeSource fake_{[] { return false; }};
  const std::shared_ptr<FakeBusyPollSource> busy_poll_;
};

TEST(RealLoopTest, ALoopSaysThatItSleepsAndLooksOnceMore) {
  RealLoop loop(1);
  const auto busy_poll = std::make_shared<FakeBusyPollSource>();
  BusyPolledSource source(busy_poll);
  loop.AddSource(&source);
  while (loop.RunReady()) {
  }
  busy_poll->news_before_sleep = true;
  const absl::Time start = loop.Now();
  loop.Wait(loop.PrepareWait(start + absl::Seconds(30)));
  EXPECT_LT(loop.Now() - start, absl::Seconds(20)) << "it slept through the news";
  EXPECT_EQ(busy_poll->sleeps, 1);
  EXPECT_EQ(busy_poll->wakes, 1);
  EXPECT_TRUE(loop.RunReady());
  loop.RemoveSource(&source);
}

TEST(RealLoopTest, BusyPollingIsEndedByAPost) {
  if (AdaptiveBusyPoll::CoresOfThisProcess() < 2)
    GTEST_SKIP() << "nobody looks where there is one core";
  RealLoop loop(1);
  const auto busy_poll = std::make_shared<FakeBusyPollSource>();
  BusyPolledSource source(busy_poll);
  loop.AddSource(&source);
  int ran = 0;
  // Short waits, so that the loop starts to poll.
  for (int i = 0; i < 20; ++i) {
    while (loop.RunReady()) {
    }
    const RealLoop::WaitSet set = loop.PrepareWait(absl::InfiniteFuture());
    loop.Post([&] { ++ran; });
    loop.Wait(set);
    while (loop.RunReady()) {
    }
    EXPECT_EQ(ran, i + 1);
  }
  EXPECT_GT(busy_poll->looks, 20);
  loop.RemoveSource(&source);
}

// A thread that polls memory also sees readable descriptors.
TEST(RealLoopTest, BusyPollingSeesDescriptorsToo) {
  if (AdaptiveBusyPoll::CoresOfThisProcess() < 2)
    GTEST_SKIP() << "nobody looks where there is one core";
  RealLoop loop(1);
  const auto busy_poll = std::make_shared<FakeBusyPollSource>();
  BusyPolledSource busy_polled(busy_poll);
  FakeSource plain([] { return false; });
  loop.AddSource(&busy_polled);
  loop.AddSource(&plain);
  while (loop.RunReady()) {
  }
  plain.Signal();
  AdaptiveBusyPoll pace(AdaptiveBusyPoll::kBusyPoll, /*cores=*/2);
  for (int i = 0; i < 20; ++i) pace.Saw(absl::Microseconds(1));
  RealLoop::WaitSet set = loop.PrepareWait(absl::InfiniteFuture());
  set.pace = &pace;
  busy_poll->looks = 0;
  loop.Wait(set);
  EXPECT_GT(busy_poll->looks, 1);
  EXPECT_LT(busy_poll->looks, 1000) << "it looked for as long as it may";
  loop.RemoveSource(&plain);
  loop.RemoveSource(&busy_polled);
}

constexpr absl::Time kBegin = absl::FromUnixSeconds(1000);

TEST(AdaptiveBusyPollTest, LooksOnlyWhereWaitsHaveBeenShort) {
  AdaptiveBusyPoll pace(AdaptiveBusyPoll::kBusyPoll, /*cores=*/2);
  EXPECT_EQ(pace.Limit(kBegin), absl::ZeroDuration());
  for (int i = 0; i < 20; ++i) pace.Saw(absl::Microseconds(10));
  EXPECT_GT(pace.Limit(kBegin), absl::ZeroDuration());
  EXPECT_LE(pace.Limit(kBegin), absl::Milliseconds(1));
  pace.Saw(absl::Seconds(1));
  EXPECT_EQ(pace.Limit(kBegin), absl::ZeroDuration()) << "one long wait is enough";
  for (int i = 0; i < 20; ++i) pace.Saw(absl::Microseconds(10));
  EXPECT_GT(pace.Limit(kBegin), absl::ZeroDuration());
  for (int i = 0; i < 20; ++i) pace.Saw(absl::Milliseconds(5));
  EXPECT_EQ(pace.Limit(kBegin), absl::ZeroDuration());
  AdaptiveBusyPoll alone(AdaptiveBusyPoll::kBusyPoll, /*cores=*/1);
  for (int i = 0; i < 20; ++i) alone.Saw(absl::Microseconds(10));
  EXPECT_EQ(alone.Limit(kBegin), absl::ZeroDuration());
}

TEST(AdaptiveBusyPollTest, DoesNotLookForLongWhereOthersWantTheCores) {
  AdaptiveBusyPoll pace(AdaptiveBusyPoll::kBusyPoll, /*cores=*/2);
  const auto short_waits = [&pace] {
    for (int i = 0; i < 20; ++i) pace.Saw(absl::Microseconds(10));
  };
  short_waits();
  pace.SawYield(absl::Microseconds(1), kBegin);
  pace.SawYield(absl::Microseconds(100), kBegin);
  EXPECT_GT(pace.Limit(kBegin), absl::ZeroDuration()) << "an interrupt is not another thread";
  const auto two_long_yields_at = [&pace](absl::Time time) {
    pace.SawYield(absl::Milliseconds(3), time - absl::Milliseconds(4));
    pace.SawYield(absl::Milliseconds(3), time);
  };
  for (const int seconds : {-3, -2, -1}) {
    pace.SawYield(absl::Milliseconds(3), kBegin + absl::Seconds(seconds));
  }
  EXPECT_GT(pace.Limit(kBegin), absl::ZeroDuration()) << "something always happens on a machine";
  two_long_yields_at(kBegin);
  EXPECT_EQ(pace.Limit(kBegin), absl::ZeroDuration()) << "two turns of another are enough";
  short_waits();
  EXPECT_EQ(pace.Limit(kBegin + absl::Milliseconds(500)), absl::ZeroDuration())
      << "waits may well be short again once it sleeps";
  EXPECT_GT(pace.Limit(kBegin + absl::Seconds(2)), absl::ZeroDuration()) << "it looks again later";
  two_long_yields_at(kBegin + absl::Seconds(2));
  EXPECT_EQ(pace.Limit(kBegin + absl::Seconds(2)), absl::ZeroDuration());
}

TEST(RealLoopTest, PostsOfSeveralThreadsAllRunInTheirOrder) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 5000;
  const auto host = NewRealHost();
  const auto runner = host->Spawn("loop");
  std::vector<int> next(kThreads, 0);  // only on the loop
  int left = kThreads * kPosts;
  TestEvent done;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i) {
        runner->loop()->Post([&, t, i] {
          EXPECT_EQ(next[t]++, i);
          if (--left == 0) done.Notify();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(done.Wait());
}

TEST(RealLoopTest, LoopsWakeEachOther) {
  const auto host = NewRealHost();
  const auto ping = host->Spawn("ping");
  const auto pong = host->Spawn("pong");
  TestEvent done;
  std::function<void(int)> hit = [&](int left) {
    if (left == 0) return done.Notify();
    (left % 2 == 0 ? ping : pong)->loop()->Post([&hit, left] { hit(left - 1); });
  };
  hit(10'000);
  EXPECT_TRUE(done.Wait());
  // The thread that posted the last task may still be in Post when the loop has run it.
  for (const auto& runner : {ping.get(), pong.get()}) {
    TestEvent back;
    runner->loop()->Post([&] { back.Notify(); });
    EXPECT_TRUE(back.Wait());
  }
}

TEST(RealLoopTest, ItsThreadHasItsName) {
  const auto host = NewRealHost();
  const auto runner = host->Spawn("a rather long name");
  TestEvent done;
  std::string name(16, '\0');
  runner->loop()->Post([&] {
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    done.Notify();
  });
  ASSERT_TRUE(done.Wait());
  EXPECT_STREQ(name.c_str(), "a rather long n");
}

TEST(RealLoopTest, ASourceIsPolledWhenItsFdIsReadable) {
  const auto host = NewRealHost();
  const auto runner = host->Spawn("loop");
  TestEvent polled;
  FakeSource* self = nullptr;
  std::atomic<bool> signalled{false};
  FakeSource source([&] {
    if (!signalled.exchange(false)) return false;
    self->Drain();
    polled.Notify();
    return true;
  });
  self = &source;
  TestEvent added;
  runner->loop()->Post([&] {
    runner->loop()->AddSource(&source);
    added.Notify();
  });
  ASSERT_TRUE(added.Wait());
  signalled = true;
  source.Signal();
  EXPECT_TRUE(polled.Wait());
  runner->Stop();
  runner->Join();
  runner->loop()->RemoveSource(&source);
}

// The second source gives work to the first, which was polled already in this round, without making
// its fd readable: the loop must poll it once more before it sleeps.
TEST(RealLoopTest, SleepsOnlyAfterARoundInWhichNothingHappened) {
  RealLoop loop(1);
  int for_first = 0;
  int first_did = 0;
  int for_second = 1;
  FakeSource first([&] {
    if (for_first == 0) return false;
    --for_first;
    ++first_did;
    return true;
  });
  FakeSource second([&] {
    if (for_second == 0) return false;
    --for_second;
    ++for_first;
    return true;
  });
  loop.AddSource(&first);
  loop.AddSource(&second);
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).until, kNow) << "never asked";
  EXPECT_TRUE(loop.RunReady());
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).until, kNow) << "something happened";
  EXPECT_TRUE(loop.RunReady());
  EXPECT_EQ(first_did, 1);
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).until, kNow) << "something happened";
  EXPECT_FALSE(loop.RunReady());
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).until, absl::InfiniteFuture());
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).fds.size(), 3u);
}

TEST(RealLoopTest, SourcesMayComeAndGoWhileTheyAreAsked) {
  RealLoop loop(1);
  std::vector<std::string> asked;
  std::unique_ptr<FakeSource> first, second, third;
  second = std::make_unique<FakeSource>([&] {
    asked.push_back("second");
    return false;
  });
  third = std::make_unique<FakeSource>([&] {
    asked.push_back("third");
    return false;
  });
  first = std::make_unique<FakeSource>([&] {
    asked.push_back("first");
    loop.RemoveSource(first.get());
    loop.RemoveSource(second.get());
    second.reset();
    loop.AddSource(third.get());
    return true;
  });
  loop.AddSource(first.get());
  loop.AddSource(second.get());
  EXPECT_TRUE(loop.RunReady());
  EXPECT_FALSE(loop.RunReady());
  EXPECT_THAT(asked, ::testing::ElementsAre("first", "third", "third"));
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).fds.size(), 2u);
}

TEST(RealLoopTest, ByHandATaskIsThereBeforeTheSleep) {
  RealLoop loop(1);
  EXPECT_FALSE(loop.RunReady());
  int ran = 0;
  loop.Post([&] { ++ran; });
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).until, kNow);
  EXPECT_TRUE(loop.RunReady());
  EXPECT_EQ(ran, 1);
}

TEST(RealLoopTest, ByHandThereIsNoSleepWhileSomethingIsToRunBeforeIt) {
  RealLoop loop(1);
  while (loop.RunReady()) {
  }
  bool ran = false;
  loop.BeforeSleep([&] { ran = true; });
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).until, absl::InfinitePast());
  EXPECT_FALSE(loop.RunReady()) << "it is nothing that calls for another round";
  EXPECT_TRUE(ran);
  EXPECT_EQ(loop.PrepareWait(absl::InfiniteFuture()).until, absl::InfiniteFuture());
}

TEST(RealLoopTest, ByHandTheSleepEndsWithTheFirstTimer) {
  RealLoop loop(1);
  const absl::Time start = loop.Now();
  bool ran = false;
  loop.After(absl::Milliseconds(3), [&] { ran = true; });
  loop.After(absl::Hours(1), [] {});
  while (!ran) {
    if (loop.RunReady()) continue;
    const RealLoop::WaitSet set = loop.PrepareWait(absl::InfiniteFuture());
    EXPECT_LE(set.until, start + absl::Seconds(1));
    RealLoop::Wait(set);
  }
  EXPECT_GE(loop.Now() - start, absl::Milliseconds(3));
}

TEST(RealLoopTest, ByHandTheSleepEndsAtTheCallersTime) {
  RealLoop loop(1);
  loop.RunReady();
  const absl::Time until = loop.Now() + absl::Milliseconds(2);
  const RealLoop::WaitSet set = loop.PrepareWait(until);
  EXPECT_EQ(set.until, until);
  RealLoop::Wait(set);
  EXPECT_GE(loop.Now(), until);
}

// Each of these ends the sleep, whether it happens before or during it.
TEST(RealLoopTest, ByHandOthersEndTheSleep) {
  const std::function<void(RealLoop*)> ways[] = {
      [](RealLoop* loop) { loop->Wake(); },
      [](RealLoop* loop) { loop->Post([] {}); },
      [](RealLoop* loop) { loop->After(absl::ZeroDuration(), [] {}); },
      [](RealLoop* loop) { loop->Stop(); },
  };
  for (const auto& wake : ways) {
    RealLoop loop(1);
    loop.RunReady();
    const RealLoop::WaitSet set = loop.PrepareWait(absl::InfiniteFuture());
    std::thread other([&] { wake(&loop); });
    RealLoop::Wait(set);
    other.join();
  }
}

TEST(RealLoopTest, AWakeEndsOneSleepOnly) {
  RealLoop loop(1);
  loop.RunReady();
  loop.Wake();
  loop.Wake();
  RealLoop::Wait(loop.PrepareWait(absl::InfiniteFuture()));
  loop.RunReady();
  const absl::Time until = loop.Now() + absl::Milliseconds(2);
  RealLoop::Wait(loop.PrepareWait(until));
  EXPECT_GE(loop.Now(), until);
}

// As the threads of a worker do: a thread that waits runs the loop, under a lock that they share.
TEST(RealLoopTest, ByHandSeveralThreadsTakeTurns) {
  RealLoop loop(1);
  std::mutex mutex;
  int ran = 0;  // under mutex
  constexpr int kTasks = 2000;
  std::thread poster([&] {
    for (int i = 0; i < kTasks; ++i) loop.Post([&] { ++ran; });
  });
  std::mutex turn;
  const auto drive = [&] {
    while (true) {
      // One thread sleeps at a time; the next one polls for itself.
      const std::lock_guard my_turn(turn);
      RealLoop::WaitSet set;
      {
        const std::lock_guard lock(mutex);
        while (loop.RunReady()) {
        }
        if (ran == kTasks) return;
        set = loop.PrepareWait(absl::InfiniteFuture());
      }
      RealLoop::Wait(set);
    }
  };
  std::thread first(drive);
  std::thread second(drive);
  poster.join();
  first.join();
  second.join();
  EXPECT_EQ(ran, kTasks);
}

}  // namespace
}  // namespace leeway::runtime
