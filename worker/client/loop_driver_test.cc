// Real threads around a real loop, which wait for timers, tasks and each other.
#include "worker/client/loop_driver.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leeway::worker {
namespace {

class LoopDriverTest : public ::testing::Test {
 protected:
  // Runs a task on the loop after `delay`.
  void Later(absl::Duration delay, std::function<void()> what) {
    driver_.Do([&] {
      driver_.loop()->After(delay, [this, what = std::move(what)] {
        what();
        driver_.Notify();
      });
    });
  }

  LoopDriver driver_{1};
};

// A callback uses another worker, whose callback runs within it.
TEST_F(LoopDriverTest, ACallbackIsInAllDriversWhoseCallbacksItRunsIn) {
  LoopDriver other(2);
  bool inner = false, outer = false, waited = true;
  driver_.Do([&] {
    driver_.CallUnlocked([&] {
      other.Do([&] {
        other.CallUnlocked([&] {
          inner = driver_.InCallback() && other.InCallback();
          waited = driver_.WaitUntil([] { return true; }) == Driver::Waited::kDone;
        });
      });
      outer = driver_.InCallback() && !other.InCallback();
    });
  });
  EXPECT_TRUE(inner);
  EXPECT_TRUE(outer);
  EXPECT_FALSE(waited);
  EXPECT_FALSE(driver_.InCallback());
}

TEST_F(LoopDriverTest, AWaitingThreadDrives) {
  bool done = false;
  std::thread::id driver;
  Later(absl::Milliseconds(20), [&] {
    done = true;
    driver = std::this_thread::get_id();
  });
  EXPECT_EQ(driver_.WaitUntil([&] { return done; }), Driver::Waited::kDone);
  EXPECT_EQ(driver, std::this_thread::get_id());
}

TEST_F(LoopDriverTest, AThreadThatComesToWaitDrivesWhileTheDrivingOneRunsACallback) {
  bool done = false, second = false;
  Later(absl::Milliseconds(20), [&] {
    driver_.CallUnlocked([&] {
      // Longer than a thread takes to begin: it must drive, and not find that the time has come.
      Later(absl::Milliseconds(100), [&] { second = true; });
      std::thread([&] {
        EXPECT_EQ(driver_.WaitUntil([&] { return second; }), Driver::Waited::kDone);
      }).join();
      done = true;
    });
  });
  EXPECT_EQ(driver_.WaitUntil([&] { return done; }), Driver::Waited::kDone);
  bool third = false;
  Later(absl::Milliseconds(1), [&] { third = true; });
  EXPECT_EQ(driver_.WaitUntil([&] { return third; }), Driver::Waited::kDone);
}

TEST_F(LoopDriverTest, TheHelperDrivesWhenNoOtherThreadDoes) {
  std::atomic<bool> done = false;
  std::atomic<bool> by_other = false;
  const std::thread::id self = std::this_thread::get_id();
  Later(absl::Milliseconds(1), [&] {
    by_other = std::this_thread::get_id() != self;
    done = true;
    done.notify_all();
  });
  done.wait(false);  // without driving
  EXPECT_TRUE(by_other);
}

TEST_F(LoopDriverTest, TheHelperFinishesManyCallsIfNoThreadWaits) {
  std::atomic<bool> done = false;
  driver_.DoOneOfMany([&] {
    driver_.loop()->BeforeSleep([&] {
      done = true;
      done.notify_all();
    });
  });
  done.wait(false);
}

TEST_F(LoopDriverTest, AnEarlierTimerReachesAThreadThatSleepsUntilALaterOne) {
  std::atomic<int> fired = 0;
  Later(absl::Hours(1), [&] {});
  std::thread waiter([&] { driver_.WaitUntil([&] { return fired == 1; }); });
  Later(absl::Milliseconds(10), [&] { fired = 1; });
  waiter.join();
  EXPECT_EQ(fired, 1);
}

TEST_F(LoopDriverTest, ManyThreadsWaitAndSubmit) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 300;
  std::vector<std::thread> threads;
  std::atomic<int> finished = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        bool done = false;  // under the lock
        Later(absl::Microseconds((t * 37 + i * 11) % 300), [&] { done = true; });
        EXPECT_EQ(driver_.WaitUntil([&] { return done; }), Driver::Waited::kDone);
      }
      ++finished;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(finished, kThreads);
}

TEST_F(LoopDriverTest, ANotificationReachesASleepingThread) {
  bool done = false;
  std::thread waiter(
      [&] { EXPECT_EQ(driver_.WaitUntil([&] { return done; }), Driver::Waited::kDone); });
  driver_.Do([&] {
    done = true;
    driver_.Notify();
  });
  waiter.join();
}

TEST_F(LoopDriverTest, CallbacksRunUnlockedAndMaySubmit) {
  int called = 0;
  bool chained = false;
  driver_.Do([&] {
    driver_.CallUnlocked([&] {
      ++called;
      driver_.Do([&] {
        driver_.CallUnlocked([&] {
          ++called;
          chained = true;
        });
      });
      EXPECT_EQ(called, 1) << "callbacks must not nest";
      EXPECT_EQ(driver_.WaitUntil([] { return false; }), Driver::Waited::kInCallback)
          << "it would wait for itself";
    });
  });
  EXPECT_EQ(driver_.WaitUntil([&] { return chained; }), Driver::Waited::kDone);
  EXPECT_EQ(called, 2);
}

// Both threads, the one that drives and the one that waits for its turn, ask and are told.
TEST(LoopDriverInterruptTest, EndsTheWaitsOfAllThreads) {
  std::atomic<int> asked = 0;
  std::atomic<bool> interrupt = false;
  LoopDriver driver(1, absl::ZeroDuration(), [&] {
    ++asked;
    return interrupt.load();
  });
  const auto wait = [&] {
    EXPECT_EQ(driver.WaitUntil([] { return false; }), Driver::Waited::kInterrupted);
  };
  std::thread first(wait), second(wait);
  while (asked < 3) std::this_thread::yield();
  interrupt = true;
  first.join();
  second.join();
  EXPECT_EQ(driver.WaitUntil([] { return true; }), Driver::Waited::kDone);
}

TEST_F(LoopDriverTest, StopsWhileTheHelperSleeps) {
  driver_.Stop();
  bool done = false;
  Later(absl::Milliseconds(1), [&] { done = true; });
  EXPECT_EQ(driver_.WaitUntil([&] { return done; }), Driver::Waited::kDone);
}

}  // namespace
}  // namespace leeway::worker
