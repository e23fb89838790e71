// Many pushes in one message: each is what it would be by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using absl::StatusCode;
using testing::Each;
using testing::HasSubstr;

class BatchTest : public testing::Test {
 protected:
  // Adds a push of `value` to each element of a block.
  void Add(std::uint32_t table, float value, std::uint64_t block = 0) {
    const proto::Request push = bench_.DensePush(0, table, 0, block);
    batch_.incarnation = push.id.incarnation;
    batch_.worker = push.id.worker;
    batch_.epoch = push.epoch;
    batch_.pushes.push_back({.sequence = push.id.sequence,
                             .after = push.after,
                             .block = block,
                             .elements = Bench::kBlock,
                             .shard = push.id.shard,
                             .table = table});
    values_.insert(values_.end(), Bench::kBlock, value);
  }
  void Send() { bench_.Send(0, batch_, Bench::Values(values_)); }
  // By the place of the push in the batch.
  std::vector<absl::Status> Results() {
    std::vector<absl::Status> results(batch_.pushes.size(), absl::UnknownError("no answer"));
    for (const Answer& answer : bench_.Take(0)) {
      for (std::size_t i = 0; i < batch_.pushes.size(); ++i) {
        const proto::BatchedPush& push = batch_.pushes[i];
        const proto::RequestId& id = answer.reply().id;
        if (id.sequence == push.sequence && id.shard == push.shard) {
          results[i] = answer.reply().result;
        }
      }
    }
    return results;
  }

  Bench bench_;
  proto::PushBatch batch_;
  std::vector<float> values_;
};

TEST_F(BatchTest, AllAreAppliedAndAcknowledgedInOneMessage) {
  const std::uint32_t a = bench_.Install(AddTable("a", Consistency::Asp()));
  const std::uint32_t b = bench_.Install(AddTable("b", Consistency::Asp()));
  Add(a, 1);
  Add(b, 2, 1);
  Add(a, 4);
  Add(b, 8);
  Send();
  EXPECT_EQ(bench_.van().TakeSent(bench_.PeerOf(0)).size(), 1u);
  EXPECT_THAT(bench_.PullNow(0, a, 0), Each(5));
  EXPECT_THAT(bench_.PullNow(0, b, 0), Each(8));
  EXPECT_THAT(bench_.PullNow(0, b, 0, /*block=*/1), Each(2));
  EXPECT_EQ(bench_.counters().requests, 4u + 3);
  EXPECT_EQ(bench_.counters().pushes_applied, 4u);
}

TEST_F(BatchTest, SentAgainItIsAcknowledgedAndNotApplied) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  Add(table, 1);
  Add(table, 2);
  for (int i = 0; i < 3; ++i) {
    Send();
    EXPECT_THAT(Results(), Each(absl::OkStatus()));
  }
  EXPECT_THAT(bench_.PullNow(0, table, 0), Each(3));
  EXPECT_EQ(bench_.counters().duplicates, 4u);
}

TEST_F(BatchTest, ARefusedPushDoesNotAffectTheOthers) {
  TableSpec spec = AddTable("refuses", Consistency::Asp());
  spec.nonfinite = NonFinite::kRefuse;
  const std::uint32_t table = bench_.Install(spec);
  Add(table, 1);
  Add(table, std::numeric_limits<float>::infinity());
  Add(table, 2);
  Add(table + 1, 3);
  Send();
  const std::vector<absl::Status> results = Results();
  EXPECT_TRUE(results[0].ok());
  EXPECT_THAT(results[1].message(), HasSubstr("NaN"));
  EXPECT_TRUE(results[2].ok());
  EXPECT_EQ(results[3].code(), StatusCode::kUnavailable);  // it is not installed yet
  EXPECT_THAT(bench_.PullNow(1, table, 0), Each(3));
}

TEST_F(BatchTest, EarlyPushesWait) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  const proto::Request missing = bench_.DensePush(0, table, 0);
  Add(table, 1);
  Add(table, 2, 1);  // the other shard
  Send();
  const std::vector<absl::Status> results = Results();
  EXPECT_EQ(results[0].code(), StatusCode::kUnknown);
  EXPECT_TRUE(results[1].ok());
  batch_.pushes.pop_back();
  bench_.Send(0, missing, Bench::Filled(4));
  EXPECT_THAT(bench_.PullNow(1, table, 0), Each(5));
}

TEST_F(BatchTest, AnotherEpochLeavesAllNumbersUnused) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  Add(table, 1);
  Add(table, 2);
  bench_.map.epoch = 2;
  bench_.Publish();
  Send();
  for (const absl::Status& result : Results()) EXPECT_EQ(result.code(), StatusCode::kAborted);
  batch_.epoch = 3;
  Send();
  for (const absl::Status& result : Results()) EXPECT_EQ(result.code(), StatusCode::kUnavailable);
  batch_.epoch = 2;
  Send();
  EXPECT_THAT(Results(), Each(absl::OkStatus()));
  EXPECT_THAT(bench_.PullNow(0, table, 0), Each(3));
}

TEST_F(BatchTest, InTheNameOfAnotherDropsItsSender) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  Add(table, 1);
  batch_.worker = 1;
  Send();
  ASSERT_TRUE(bench_.van().Dropped(bench_.PeerOf(0)).has_value());
  EXPECT_THAT(bench_.PullNow(1, table, 0), Each(0));
}

// The pushes of an iteration are held until it ends, without the message that they came in.
TEST_F(BatchTest, OfABspTableAreHeld) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Bsp()));
  Add(table, 1);
  Add(table, 2);
  Send();
  EXPECT_THAT(Results(), Each(absl::OkStatus()));
  EXPECT_THAT(bench_.PullNow(0, table, 0), Each(0));
  bench_.Tick(0, 1);
  bench_.Tick(1, 1);
  bench_.Take(0);
  EXPECT_THAT(bench_.PullNow(0, table, 1), Each(3));
}

}  // namespace
}  // namespace leeway::ps
