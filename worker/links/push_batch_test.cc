#include "worker/links/push_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "proto/messages/limits.h"

namespace leeway::worker {
namespace {

using ::testing::ElementsAre;

proto::Request NewPush(std::uint64_t sequence, std::uint32_t shard = 3) {
  return {.id = {.incarnation = 7, .sequence = sequence, .worker = 2, .shard = shard},
          .epoch = 5,
          .table = 4,
          .clock = 6,
          .elements = 2,
          .timeout_ms = 1000,
          .after = sequence - 1,
          .priority = 1};
}

runtime::Buffer Values(float a, float b) {
  const std::array<float, 2> values = {a, b};
  return runtime::Buffer::CopyOf(values.data(), sizeof(values));
}

bool Takes(const proto::Request& request, std::size_t bytes) {
  const runtime::Buffer values = runtime::Buffer::CopyOf(std::vector<char>(bytes).data(), bytes);
  return PushBatch::Takes(request, {&values, 1});
}

TEST(PushBatchTest, TakesSmallPushesToDenseTables) {
  proto::Request request = NewPush(1);
  EXPECT_TRUE(Takes(request, proto::kBatchedPushBytesMax));
  EXPECT_FALSE(Takes(request, proto::kBatchedPushBytesMax + 4));
  request.kind = TableKind::kSparse;
  EXPECT_FALSE(Takes(request, 8));
  request = NewPush(1);
  request.op = proto::Op::kPull;
  EXPECT_FALSE(PushBatch::Takes(request, {}));
  request.op = proto::Op::kPushPull;
  EXPECT_FALSE(Takes(request, 8));
}

TEST(PushBatchTest, EachPushIsAsInAMessageOfItsOwn) {
  PushBatch batch;
  const proto::Request first = NewPush(9, 3), second = NewPush(4, 8);
  batch.Add(first, Values(1, 2));
  batch.Add(second, Values(3, 4));
  const PushBatch::Message message = batch.Take();
  EXPECT_TRUE(batch.empty());
  const auto& header = std::get<proto::PushBatch>(message.header);
  ASSERT_EQ(header.pushes.size(), 2u);
  for (const auto& [push, sent] :
       {std::pair(header.pushes[0], first), {header.pushes[1], second}}) {
    const proto::Request request = proto::RequestOf(header, push);
    EXPECT_EQ(request.id, sent.id);
    EXPECT_EQ(request.after, sent.after);
    EXPECT_EQ(request.table, sent.table);
    EXPECT_EQ(request.epoch, sent.epoch);
    EXPECT_EQ(request.clock, sent.clock);
    EXPECT_EQ(request.elements, sent.elements);
    EXPECT_EQ(request.priority, sent.priority);
    EXPECT_EQ(request.timeout_ms, sent.timeout_ms);
    EXPECT_FALSE(request.has_learning_rate);
  }
  EXPECT_THAT(message.values.as<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(PushBatchTest, ASinglePushIsARequest) {
  PushBatch batch;
  batch.Add(NewPush(9), Values(1, 2));
  const PushBatch::Message message = batch.Take();
  EXPECT_EQ(std::get<proto::Request>(message.header).id, NewPush(9).id);
  EXPECT_THAT(message.values.as<float>(), ElementsAre(1, 2));
}

TEST(PushBatchTest, OnlyPushesThatAgreeShareAMessage) {
  PushBatch batch;
  EXPECT_TRUE(batch.Fits(NewPush(1), 8));
  batch.Add(NewPush(1), Values(1, 2));
  EXPECT_TRUE(batch.Fits(NewPush(2), 8));
  const auto fits = [&](auto change) {
    proto::Request request = NewPush(2);
    change(request);
    return batch.Fits(request, 8);
  };
  EXPECT_FALSE(fits([](auto& m) { m.epoch = 6; }));
  EXPECT_FALSE(fits([](auto& m) { m.clock = 7; }));
  EXPECT_FALSE(fits([](auto& m) { m.dtype = DType::kInt32; }));
  EXPECT_FALSE(fits([](auto& m) { m.priority = 0; }));
  EXPECT_FALSE(fits([](auto& m) { m.has_learning_rate = true; }));
  EXPECT_FALSE(fits([](auto& m) { m.timeout_ms = 2000; }));
  EXPECT_FALSE(fits([](auto& m) { m.timeout_ms = 0; })) << "0 is without end";
  EXPECT_TRUE(fits([](auto& m) { m.timeout_ms = 999; }));
}

TEST(PushBatchTest, TheShortestTimeoutCounts) {
  PushBatch batch;
  proto::Request later = NewPush(2);
  later.timeout_ms = 995;
  batch.Add(NewPush(1), Values(1, 2));
  batch.Add(later, Values(1, 2));
  EXPECT_EQ(std::get<proto::PushBatch>(batch.Take().header).timeout_ms, 995u);
}

TEST(PushBatchTest, IsFullAtItsLimits) {
  PushBatch batch;
  for (std::uint64_t i = 1; i <= proto::kPushesPerBatchMax; ++i) {
    ASSERT_TRUE(batch.Fits(NewPush(i), 8));
    batch.Add(NewPush(i), Values(1, 2));
  }
  EXPECT_FALSE(batch.Fits(NewPush(1000), 8));
  batch.Clear();
  EXPECT_TRUE(batch.empty());
  const std::vector<char> large(proto::kBatchedPushBytesMax);
  std::size_t pushes = 0;
  for (; batch.Fits(NewPush(1 + pushes), large.size()); ++pushes) {
    batch.Add(NewPush(1 + pushes), runtime::Buffer::CopyOf(large.data(), large.size()));
  }
  EXPECT_EQ(pushes, proto::kBatchBytesMax / proto::kBatchedPushBytesMax);
}

// Even for many pushes, each with a slightly shorter timeout than the one before.
TEST(PushBatchTest, NoPushGetsAMuchShorterTimeout) {
  PushBatch batch;
  proto::Request request = NewPush(1);
  request.timeout_ms = 30'000;
  batch.Add(request, Values(1, 2));
  for (const std::uint64_t timeout_ms : {29'995, 29'990}) {
    ++request.id.sequence;
    request.timeout_ms = timeout_ms;
    ASSERT_TRUE(batch.Fits(request, 8));
    batch.Add(request, Values(1, 2));
  }
  request.timeout_ms = 29'985;  // too much shorter than 30 s
  EXPECT_FALSE(batch.Fits(request, 8));
  EXPECT_EQ(std::get<proto::PushBatch>(batch.Take().header).timeout_ms, 29'990u);
}

}  // namespace
}  // namespace leeway::worker
