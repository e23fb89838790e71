#include "van/send_pacer.h"

#include <gtest/gtest.h>

#include <deque>

namespace leeway::van {
namespace {

constexpr std::uint64_t kBlock = 64 << 10;

// A transport that takes `rate` bytes a second, and a sender that always has more to send.
struct Wire {
  SendPacer ahead;
  double rate = 0;
  absl::Time now = absl::UnixEpoch();
  std::deque<std::uint64_t> out = {};
  std::uint64_t most = 0;    // the most bytes that were under way
  bool all_at_once = false;  // completions are reported only when everything has been sent

  void Run(absl::Duration time) {
    for (const absl::Time end = now + time; now < end;) {
      while (ahead.MayHandOver(kBlock, true)) out.push_back(ahead.OnHandOver(kBlock, true, now));
      most = std::max(most, ahead.out());
      std::deque<std::uint64_t> done;
      do {
        now += absl::Seconds(static_cast<double>(out.front()) / rate);
        done.push_back(out.front());
        out.pop_front();
      } while (all_at_once && !out.empty());
      for (const std::uint64_t bytes : done) ahead.OnDone(bytes, now);
    }
  }
};

TEST(SendPacerTest, AMessageMayAlwaysBeUnderWayAndAnotherOnlyWithinTheLimit) {
  SendPacer ahead;
  const absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(ahead.MayHandOver(1ull << 40, true));
  const std::uint64_t out = ahead.OnHandOver(1ull << 40, true, now);
  EXPECT_FALSE(ahead.MayHandOver(1, true));
  ahead.OnDone(out, now + absl::Seconds(1));
  EXPECT_TRUE(ahead.MayHandOver(1, true));
}

TEST(SendPacerTest, AFastWireGetsMoreThanASlowOne) {
  Wire fast{.ahead = {}, .rate = 2e9};
  fast.Run(absl::Seconds(1));
  EXPECT_NEAR(static_cast<double>(fast.ahead.limit()), 20e6, 2e6);  // what it takes in 10 ms
  Wire slow{.ahead = {}, .rate = 1e6};
  slow.Run(absl::Seconds(10));
  EXPECT_EQ(slow.ahead.limit(), SendPacer::kBytesMin);
  EXPECT_LE(slow.most, SendPacer::kBytesMin);
}

TEST(SendPacerTest, AFastWireThatTellsOfManyAtOnceGetsAsMuch) {
  Wire wire{.ahead = {}, .rate = 2e9, .all_at_once = true};
  wire.Run(absl::Seconds(1));
  EXPECT_NEAR(static_cast<double>(wire.ahead.limit()), 20e6, 2e6);
}

TEST(SendPacerTest, AWireThatHasBecomeSlowGetsLessAgain) {
  Wire wire{.ahead = {}, .rate = 2e9};
  wire.Run(absl::Seconds(1));
  wire.rate = 50e6;
  wire.Run(absl::Seconds(3));
  EXPECT_NEAR(static_cast<double>(wire.ahead.limit()), 500e3, 100e3);
}

// Single messages go into the transport's buffers at once, which says nothing about the wire's
// rate.
TEST(SendPacerTest, AWorkerThatNeverWaitedGetsNoMore) {
  SendPacer ahead;
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(ahead.MayHandOver(1 << 20, true));
    const std::uint64_t out = ahead.OnHandOver(1 << 20, true, now);
    now += absl::Microseconds(10);
    ahead.OnDone(out, now);
    now += absl::Milliseconds(1);
  }
  EXPECT_EQ(ahead.limit(), SendPacer::kBytesMin);
}

TEST(SendPacerTest, AnotherConnectionBeginsWithNothingUnderWay) {
  SendPacer ahead;
  ahead.OnHandOver(1 << 20, true, absl::UnixEpoch());
  ahead.Reset();
  EXPECT_EQ(ahead.out(), 0u);
  EXPECT_TRUE(ahead.MayHandOver(1 << 20, true));
}

TEST(SendPacerTest, SmallOnesAreCountedTogetherAndOneInManyIsFollowed) {
  SendPacer ahead;
  std::uint64_t followed = 0;
  for (int i = 0; i < 1000; ++i) {
    if (ahead.OnHandOver(1 << 10, true, absl::UnixEpoch()) != 0) ++followed;
  }
  EXPECT_NEAR(static_cast<double>(followed), 1000 / 58, 1);  // 64 KiB / (1 KiB + kMessageBytes)
  EXPECT_GE(ahead.out(), (1000 - 64) << 10);
  EXPECT_FALSE(ahead.MayHandOver(1, true));
}

TEST(SendPacerTest, OneGoesBeyondWhatTheTransportTakesAtOnceAndIsFollowed) {
  SendPacer ahead;
  EXPECT_TRUE(ahead.MayHandOver(1, false));
  const std::uint64_t out = ahead.OnHandOver(1, false, absl::UnixEpoch());
  EXPECT_GT(out, 0u);
  EXPECT_FALSE(ahead.MayHandOver(1, false));
  EXPECT_TRUE(ahead.MayHandOver(1, true));
  ahead.OnDone(out, absl::UnixEpoch());
  EXPECT_TRUE(ahead.MayHandOver(1, false));
}

}  // namespace
}  // namespace leeway::van
