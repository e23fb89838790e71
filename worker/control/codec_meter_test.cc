#include "worker/control/codec_meter.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/sim/sim_world.h"

namespace leeway::worker {
namespace codec_meter_test {
namespace {

constexpr absl::Duration kLatency = absl::Milliseconds(2);

// Two servers behind links whose speed the test sets, and a table with codec auto.
class CodecMeterTest : public testing::Test {
 protected:
  CodecMeterTest() : host_(world_.NewHost("worker")), runner_(host_->Spawn("loop")) {
    TableSpec spec = TableSpec::Dense("w", {1000});
    spec.codec = "auto";
    spec.codecs = {"none", "onebit"};
    coding_ = std::make_shared<TableCoding>(spec, *compress::TableCodecsOf(spec),
                                            PushContext{.table = 7, .block_bytes = 1 << 20});
    runner_->loop()->Post([this] {
      meter_ = std::make_unique<CodecMeter>(CodecMeter::World{
          .loop = runner_->loop(),
          .servers =
              [] {
                return std::vector<std::uint32_t>{0, 1};
              },
          .probe = [this](std::uint32_t rank, runtime::Buffer bytes,
                          Calls::Done done) { Probe(rank, bytes.size(), std::move(done)); },
          .bytes_moved = [this] { return bytes_moved_; },
          .report = [this](const proto::CodecReport& report) { reports_.push_back(report); }});
      meter_->Watch(coding_);
    });
    world_.RunFor(absl::Milliseconds(1));
  }
  ~CodecMeterTest() override {
    runner_->loop()->Post([this] { meter_.reset(); });
    world_.RunFor(absl::Milliseconds(1));
  }

  void Probe(std::uint32_t rank, std::uint64_t bytes, Calls::Done done) {
    largest_probe_ = std::max(largest_probe_, bytes);
    const absl::Duration takes = kLatency + (bytes > 0 ? busy_ : absl::ZeroDuration()) +
                                 absl::Seconds(static_cast<double>(bytes) / link_[rank]);
    auto kept = std::make_shared<Calls::Done>(std::move(done));
    runner_->loop()->After(takes, [kept] { (*kept)(Calls::Frames{runtime::Buffer()}); });
  }
  void Push() {
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    coding_->TakeSample(reinterpret_cast<const std::byte*>(values.data()), values.size());
  }
  double LastLink() const { return reports_.empty() ? 0 : reports_.back().link_bytes_per_s; }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::shared_ptr<TableCoding> coding_;
  std::unique_ptr<CodecMeter> meter_;
  std::vector<double> link_ = {1e9, 1e9};
  absl::Duration busy_;              // the wait of a probe for its turn
  std::uint64_t largest_probe_ = 0;  // bytes
  std::uint64_t bytes_moved_ = 0;
  std::vector<proto::CodecReport> reports_;
};

TEST_F(CodecMeterTest, ReportsNothingBeforeAPush) {
  world_.RunFor(absl::Seconds(5));
  EXPECT_TRUE(reports_.empty());
  Push();
  world_.RunFor(absl::Seconds(2));
  ASSERT_FALSE(reports_.empty());
  EXPECT_EQ(reports_[0].table, 7u);
  EXPECT_EQ(reports_[0].lossy, 2u);
  ASSERT_EQ(reports_[0].costs.size(), 2u);
  EXPECT_NEAR(reports_[0].costs[0], 2, 0.1);      // 1 GB/s is 1 ns a byte
  EXPECT_NEAR(reports_[0].costs[1], 1.03, 0.01);  // virtual time: coding takes none
}

TEST_F(CodecMeterTest, TheSlowestServerCounts) {
  link_[1] = 12.5e6;
  Push();
  world_.RunFor(absl::Seconds(3));
  EXPECT_NEAR(LastLink(), 12.5e6, 1e6);
}

TEST_F(CodecMeterTest, ALinkThatBecomesSlowOrFastIsNoticedWithinSeconds) {
  Push();
  world_.RunFor(absl::Seconds(3));
  EXPECT_NEAR(LastLink(), 1e9, 1e8);
  link_ = {12.5e6, 12.5e6};
  world_.RunFor(absl::Seconds(6));
  EXPECT_NEAR(LastLink(), 12.5e6, 1e6);
  link_ = {1e9, 1e9};
  world_.RunFor(absl::Seconds(2));
  EXPECT_NEAR(LastLink(), 1e9, 1e8);
}

// Probes behind a queue of values are slow, but the values are not.
TEST_F(CodecMeterTest, TrafficShowsThatALinkIsFast) {
  link_ = {5e6, 5e6};
  Push();
  for (int i = 0; i < 40; ++i) {
    world_.RunFor(absl::Milliseconds(100));
    bytes_moved_ += 160'000'000;  // over two links
  }
  EXPECT_GT(LastLink(), 6e8);
}

TEST_F(CodecMeterTest, AShortProbeThatSeemsSlowIsFollowedByLargerOnes) {
  link_[0] = link_[1] = 1e10;
  busy_ = absl::Milliseconds(1);
  Push();
  world_.RunFor(absl::Seconds(5));
  EXPECT_GT(LastLink(), 9e8);  // a quarter of that by the first probe
  EXPECT_EQ(largest_probe_, 1u << 20);
}

TEST_F(CodecMeterTest, NoLargeProbesOverASlowLink) {
  link_[0] = link_[1] = 1e7;
  Push();
  world_.RunFor(absl::Seconds(5));
  EXPECT_NEAR(LastLink(), 1e7, 1e6);
  EXPECT_EQ(largest_probe_, 256u << 10);
}

TEST_F(CodecMeterTest, AnUnansweredProbeCountsAsSlow) {
  Push();
  world_.RunFor(absl::Seconds(2));
  link_ = {1e4, 1e4};  // 26 s a probe
  world_.RunFor(absl::Seconds(8));
  EXPECT_LT(LastLink(), 3e5);
}

TEST_F(CodecMeterTest, UnchangedCostsAreReportedSeldom) {
  Push();
  world_.RunFor(absl::Seconds(20));
  EXPECT_LE(reports_.size(), 6u);
  EXPECT_GE(reports_.size(), 4u);
}

}  // namespace
}  // namespace codec_meter_test
}  // namespace leeway::worker
