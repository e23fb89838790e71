// Tests of every Loop, real and simulated.
#include "runtime/loop/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/loop/real_loop.h"
#include "runtime/sim/sim_world.h"
#include "runtime/testing/test_event.h"

namespace leeway::runtime {
namespace {

using ::testing::ElementsAre;

// A real or simulated host, and the way in which a test waits for events on it.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual Host* host() = 0;
  virtual bool Await(TestEvent* done) = 0;
};

class RealStage final : public Stage {
 public:
  Host* host() override { return host_.get(); }
  bool Await(TestEvent* done) override { return done->Wait(); }

 private:
  std::unique_ptr<Host> host_ = NewRealHost();
};

class SimStage final : public Stage {
 public:
  Host* host() override { return host_.get(); }
  bool Await(TestEvent* done) override {
    return world_.RunUntil([&] { return done->happened(); }, absl::Hours(1)).ok();
  }

 private:
  SimWorld world_{1};
  std::unique_ptr<Host> host_ = world_.NewHost("host");
};

class LoopTest : public ::testing::TestWithParam<bool> {
 protected:
  LoopTest() {
    if (GetParam()) {
      stage_ = std::make_unique<SimStage>();
    } else {
      stage_ = std::make_unique<RealStage>();
    }
    runner_ = stage_->host()->Spawn("loop");
    loop_ = runner_->loop();
  }

  // Runs `script` on the loop until Done() is called.
  template <class Script>
  void Play(Script script) {
    loop_->Post(std::move(script));
    ASSERT_TRUE(stage_->Await(&done_)) << "the script did not end";
  }
  void Done() { done_.Notify(); }
  Task Note(std::string what) {
    return [this, what = std::move(what)] { notes_.push_back(what); };
  }

  std::unique_ptr<Stage> stage_;
  std::vector<std::string> notes_;  // written on the loop, read after Play
  TestEvent done_;
  std::unique_ptr<LoopRunner> runner_;
  Loop* loop_ = nullptr;
};

TEST_P(LoopTest, TasksBeforeTheSleepRun) {
  TestEvent done;
  std::vector<std::string> order;
  loop_->Post([&] {
    loop_->BeforeSleep([&] {
      order.push_back("before the sleep");
      loop_->Post([&] { done.Notify(); });
    });
    loop_->Post([&] { order.push_back("posted"); });
    order.push_back("task");
  });
  ASSERT_TRUE(stage_->Await(&done));
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[0], "task") << "not within the call";
}

INSTANTIATE_TEST_SUITE_P(All, LoopTest, ::testing::Values(false, true),
                         [](const auto& kind) { return kind.param ? "Sim" : "Real"; });

TEST_P(LoopTest, TasksRunInTheOrderPosted) {
  Play([this] {
    loop_->Post(Note("a"));
    loop_->Post([this] {
      loop_->Post([this] {
        notes_.push_back("d");
        Done();
      });
      notes_.push_back("b");
    });
    loop_->Post(Note("c"));
  });
  EXPECT_THAT(notes_, ElementsAre("a", "b", "c", "d"));
}

TEST_P(LoopTest, TimersRunByTimeAndThenInTheOrderSet) {
  Play([this] {
    loop_->After(absl::Milliseconds(30), [this] { Done(); });
    loop_->After(absl::Milliseconds(20), Note("20"));
    loop_->After(absl::Milliseconds(10), Note("10"));
    loop_->After(absl::Milliseconds(-5), Note("past"));
    loop_->After(absl::ZeroDuration(), Note("zero"));
  });
  ASSERT_EQ(notes_.size(), 4u);
  EXPECT_EQ(notes_[2], "10");
  EXPECT_EQ(notes_[3], "20");
}

TEST_P(LoopTest, ATimerIsNeverEarly) {
  absl::Time set;
  absl::Time ran;
  Play([&, this] {
    set = loop_->Now();
    loop_->After(absl::Milliseconds(5), [&, this] {
      ran = loop_->Now();
      Done();
    });
  });
  EXPECT_GE(ran - set, absl::Milliseconds(5));
}

TEST_P(LoopTest, ATimerNeverRunsWithinTheCallThatSetsIt) {
  Play([this] {
    loop_->After(absl::ZeroDuration(), [this] {
      notes_.push_back("timer");
      Done();
    });
    notes_.push_back("set");
  });
  EXPECT_THAT(notes_, ElementsAre("set", "timer"));
}

TEST_P(LoopTest, TimersThatSetThemselvesAgainLetOthersRun) {
  // It refers to itself, so it must outlive the loop's use of it.
  std::function<void()> again = [&, this] {
    if (!done_.happened()) loop_->After(absl::ZeroDuration(), [&] { again(); });
  };
  Play([&, this] {
    again();
    loop_->Post([this] { loop_->Post([this] { Done(); }); });
  });
  runner_.reset();
}

TEST_P(LoopTest, ACancelledTimerDoesNotRun) {
  Play([this] {
    const TimerId timer = loop_->After(absl::Milliseconds(1), Note("cancelled"));
    EXPECT_NE(timer, TimerId::kNone);
    EXPECT_TRUE(loop_->Cancel(timer));
    EXPECT_FALSE(loop_->Cancel(timer));
    EXPECT_FALSE(loop_->Cancel(TimerId::kNone));
    loop_->After(absl::Milliseconds(5), [this] { Done(); });
  });
  EXPECT_TRUE(notes_.empty());
}

TEST_P(LoopTest, ATimerThatHasRunCannotBeCancelled) {
  auto timer = std::make_shared<TimerId>();
  Play([=, this] {
    *timer = loop_->After(absl::ZeroDuration(), [=, this] {
      EXPECT_FALSE(loop_->Cancel(*timer));
      Done();
    });
  });
}

TEST_P(LoopTest, ATimerMayCancelOneThatIsDueAsWell) {
  auto other = std::make_shared<TimerId>();
  Play([=, this] {
    loop_->After(absl::Milliseconds(1), [=, this] { EXPECT_TRUE(loop_->Cancel(*other)); });
    *other = loop_->After(absl::Milliseconds(1), Note("cancelled"));
    loop_->After(absl::Milliseconds(2), [this] { Done(); });
  });
  EXPECT_TRUE(notes_.empty());
}

TEST_P(LoopTest, ATimerMayBeSetForEver) {
  Play([this] {
    const TimerId timer = loop_->After(absl::InfiniteDuration(), Note("never"));
    loop_->After(absl::Milliseconds(1), [=, this] {
      EXPECT_TRUE(loop_->Cancel(timer));
      Done();
    });
  });
  EXPECT_TRUE(notes_.empty());
}

// An object whose destructor calls the loop one last time.
class LastWords {
 public:
  LastWords(Loop* loop, TestEvent* gone) : loop_(loop), gone_(gone) {}
  ~LastWords() {
    loop_->Post([] {});
    gone_->Notify();
  }

 private:
  Loop* const loop_;
  TestEvent* const gone_;
};

TEST_P(LoopTest, CancellingDestroysTheTaskWhichMayCallTheLoop) {
  TestEvent gone;
  Play([&, this] {
    auto words = std::make_shared<LastWords>(loop_, &gone);
    const TimerId timer = loop_->After(absl::Hours(1), [words] {});
    words.reset();
    EXPECT_FALSE(gone.happened());
    EXPECT_TRUE(loop_->Cancel(timer));
    EXPECT_TRUE(gone.happened());
    Done();
  });
}

TEST_P(LoopTest, StoppingDropsWhatWasToCome) {
  TestEvent posted_gone, timer_gone, late_gone;
  Play([&, this] {
    loop_->After(absl::ZeroDuration(),
                 [this, words = std::make_shared<LastWords>(loop_, &timer_gone)] {
                   notes_.push_back("timer");
                 });
    loop_->Post([this, words = std::make_shared<LastWords>(loop_, &posted_gone)] {
      notes_.push_back("posted");
    });
    runner_->Stop();
    notes_.push_back("last");
    Done();
  });
  runner_->Join();
  EXPECT_TRUE(posted_gone.happened());
  EXPECT_TRUE(timer_gone.happened());
  loop_->Post(
      [this, words = std::make_shared<LastWords>(loop_, &late_gone)] { notes_.push_back("late"); });
  EXPECT_TRUE(late_gone.happened());
  EXPECT_THAT(notes_, ElementsAre("last"));
}

TEST_P(LoopTest, StopAndJoinMayBeCalledAgain) {
  runner_->Stop();
  runner_->Join();
  runner_->Stop();
  runner_->Join();
}

TEST_P(LoopTest, EachLoopDrawsItsOwnNumbers) {
  const std::unique_ptr<LoopRunner> other = stage_->host()->Spawn("loop");
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  Play([&, this] {
    first = loop_->Random();
    second = loop_->Random();
    Done();
  });
  EXPECT_NE(first, second);
  TestEvent drawn;
  std::uint64_t others = 0;
  other->loop()->Post([&] {
    others = other->loop()->Random();
    drawn.Notify();
  });
  ASSERT_TRUE(stage_->Await(&drawn));
  EXPECT_NE(first, others);
  EXPECT_NE(stage_->host()->Random(), stage_->host()->Random());
}

}  // namespace
}  // namespace leeway::runtime
