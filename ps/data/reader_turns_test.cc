#include "ps/data/reader_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "runtime/loop/timer_queue.h"

namespace leeway::ps {
namespace {

using testing::ElementsAre;

// Turns when the test says so, on a clock that work moves on.
class HandLoop final : public runtime::Loop {
 public:
  absl::Time Now() const override { return now; }
  void Post(runtime::Task task) override { posted_.push_back(std::move(task)); }
  runtime::TimerId After(absl::Duration delay, runtime::Task task) override {
    return timers_.Add(now + delay, std::move(task));
  }
  bool Cancel(runtime::TimerId timer) override { return timers_.Remove(timer).has_value(); }
  std::uint64_t Random() override { return 1; }
  void AddSource(runtime::Source*) override {}
  void RemoveSource(runtime::Source*) override {}

  void Turn() {
    for (runtime::Task& task : std::exchange(posted_, {})) std::move(task)();
    const runtime::TimerId newest = timers_.newest();
    while (auto task = timers_.PopDue(now, newest)) std::move (*task)();
  }
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);

 private:
  std::vector<runtime::Task> posted_;
  runtime::TimerQueue<runtime::Task> timers_;
};

class ReaderTurnsTest : public testing::Test {
 protected:
  void Ask(van::PeerId reader, int requests = 1) {
    for (int i = 0; i < requests; ++i) {
      Inbound inbound;
      inbound.peer = reader;
      ASSERT_TRUE(turns_.Check(inbound).ok());
      turns_.Add(std::move(inbound));
    }
  }

  absl::Duration cost_ = absl::ZeroDuration();  // of a request
  bool can_hold_ = true;
  HandLoop loop_;
  std::vector<van::PeerId> served_;
  std::set<van::PeerId> held_;
  ReaderTurns turns_{&loop_,
                     {.serve =
                          [this](Inbound inbound) {
                            served_.push_back(inbound.peer);
                            loop_.now += cost_;
                          },
                      .hold =
                          [this](van::PeerId reader) {
                            if (can_hold_) held_.insert(reader);
                            return can_hold_;
                          },
                      .release = [this](van::PeerId reader) { held_.erase(reader); }}};
};

TEST_F(ReaderTurnsTest, ATurnServesALimitedNumber) {
  Ask(1, 40);
  EXPECT_EQ(served_.size(), 0u);
  loop_.Turn();
  EXPECT_EQ(served_.size(), std::size_t{ReaderTurns::kTurnRequestsMax});
  loop_.Turn();
  loop_.Turn();
  EXPECT_EQ(served_.size(), 40u);
  EXPECT_EQ(turns_.waiting(), 0u);
}

TEST_F(ReaderTurnsTest, ATurnEndsWhenItsTimeIsUp) {
  cost_ = 0.4 * ReaderTurns::kTurnTimeMax;
  Ask(1, 10);
  loop_.Turn();
  EXPECT_EQ(served_.size(), 3u);
}

TEST_F(ReaderTurnsTest, TheyTakeTurns) {
  Ask(1, 4);
  Ask(2);
  Ask(3);
  loop_.Turn();
  EXPECT_THAT(served_, ElementsAre(1, 2, 3, 1, 1, 1));
}

// Ten seconds in which a worker speaks in each turn, and readers ask without end.
TEST_F(ReaderTurnsTest, WhileOthersSpeakTheyGetAShare) {
  cost_ = absl::Microseconds(100);
  const absl::Time begin = loop_.now;
  const absl::Duration time = absl::Seconds(10);
  while (loop_.now - begin < time) {
    if (turns_.waiting() < 100) Ask(1, 100);
    turns_.OthersSpoke();
    loop_.now += absl::Microseconds(50);  // the worker's request
    loop_.Turn();
  }
  const absl::Duration took = cost_ * static_cast<double>(served_.size());
  EXPECT_LT(took, ReaderTurns::kShare * (loop_.now - begin) + 2 * ReaderTurns::kSaved);
  EXPECT_GT(took, 0.8 * ReaderTurns::kShare * time);
}

TEST_F(ReaderTurnsTest, ReadersGetAllTheTimeWhileOthersAreSilent) {
  cost_ = absl::Microseconds(100);
  turns_.OthersSpoke();
  Ask(1, 200);
  const absl::Time begin = loop_.now;
  while (turns_.waiting() > 0) {
    const absl::Time before = loop_.now;
    loop_.Turn();
    if (loop_.now == before) loop_.now += absl::Milliseconds(1);  // it sleeps
  }
  EXPECT_EQ(served_.size(), 200u);
  EXPECT_LT(loop_.now - begin, ReaderTurns::kQuiet + 200 * cost_ + absl::Milliseconds(2));
}

TEST_F(ReaderTurnsTest, AReaderWithManyRequestsIsHeld) {
  Ask(1, ReaderTurns::kReaderRequestsMax - 1);
  Ask(2);
  EXPECT_TRUE(held_.empty());
  Ask(1);
  EXPECT_THAT(held_, ElementsAre(1));
  loop_.Turn();
  EXPECT_THAT(held_, ElementsAre(1));
  while (turns_.waiting() > ReaderTurns::kReaderRequestsMax / 2) loop_.Turn();
  EXPECT_TRUE(held_.empty());
  EXPECT_GT(turns_.waiting(), 0u);
}

TEST_F(ReaderTurnsTest, AReaderWithLongRequestsIsHeld) {
  Inbound inbound;
  inbound.peer = 1;
  inbound.payload = {runtime::Buffer::CopyOf(std::string(ReaderTurns::kReaderBytesMax, 'k'))};
  ASSERT_TRUE(turns_.Check(inbound).ok());
  turns_.Add(std::move(inbound));
  EXPECT_THAT(held_, ElementsAre(1));
  loop_.Turn();
  EXPECT_TRUE(held_.empty());
}

TEST_F(ReaderTurnsTest, ManyReadersAreHeldBeforeAnyIsRefused) {
  const int readers = 4 * ReaderTurns::kRequestsMax / ReaderTurns::kReaderRequestsMax;
  for (int asked = 0; asked < static_cast<int>(ReaderTurns::kReaderRequestsMax); ++asked) {
    for (int reader = 1; reader <= readers; ++reader) {
      if (!held_.contains(static_cast<van::PeerId>(reader))) {
        ASSERT_NO_FATAL_FAILURE(Ask(static_cast<van::PeerId>(reader)));
      }
    }
  }
  EXPECT_EQ(held_.size(), static_cast<std::size_t>(readers));
  EXPECT_LE(turns_.waiting(), ReaderTurns::kRequestsMax / 2 + readers);
  while (turns_.waiting() > 0) loop_.Turn();
  EXPECT_TRUE(held_.empty());
}

TEST_F(ReaderTurnsTest, WithoutHoldingTheQueueIsLimited) {
  can_hold_ = false;
  turns_.OthersSpoke();
  for (van::PeerId reader = 1; reader <= 4; ++reader) Ask(reader, ReaderTurns::kRequestsMax / 4);
  Inbound more;
  more.peer = 1;
  const absl::Status refused = turns_.Check(more);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("ask again"));
  turns_.DropPeer(2);
  EXPECT_TRUE(turns_.Check(more).ok());
}

TEST_F(ReaderTurnsTest, BytesOfALostReaderAreGivenBack) {
  Inbound large;
  large.peer = 1;
  large.payload = {runtime::Buffer::CopyOf(std::string(ReaderTurns::kBytesMax, 'k'))};
  turns_.Add(std::move(large));
  Inbound more;
  more.peer = 2;
  EXPECT_EQ(turns_.Check(more).code(), absl::StatusCode::kUnavailable);
  turns_.DropPeer(1);
  Ask(2);
  EXPECT_TRUE(turns_.Check(more).ok());
}

TEST_F(ReaderTurnsTest, RequestsOfALostReaderAreDropped) {
  Ask(1, 300);
  Ask(2, 2);
  turns_.DropPeer(1);
  EXPECT_EQ(turns_.waiting(), 2u);
  loop_.Turn();
  EXPECT_THAT(served_, ElementsAre(2, 2));
}

}  // namespace
}  // namespace leeway::ps
