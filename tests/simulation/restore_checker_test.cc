// Tests that the checker finds faults: a shard of one table, and wrong checkpoints of it.
#include "tests/simulation/restore_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/encoding/encoding.h"
#include "runtime/base/random.h"

namespace leeway::simulation {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kKnownAs = 77;
constexpr std::uint32_t kTable = 5;
constexpr std::size_t kPushes = 4;

class RestoreCheckerTest : public testing::TestWithParam<Consistency> {
 protected:
  RestoreCheckerTest() : history_(tables_.size(), 1) {
    tables_.front().spec.consistency = GetParam();
    history_.lives[0].incarnation = 1;
    history_.lives[0].known_as = {kKnownAs};
    manifest_.num_shards = 1;
    manifest_.block_bytes = kBlockBytes;
    manifest_.clock = 2;
    manifest_.tables = {{.id = kTable, .spec = tables_.front().spec}};
    // One in each clock.
    for (std::size_t i = 0; i < kPushes; ++i) {
      history_.pushes(tables_.front(), 0)
          .push_back({.clock = i, .incarnation = 1, .places = 1, .submitted = absl::UnixEpoch()});
      sent_.Hear(van::Overheard("worker0", "", {}, MessageOf(i)));
      sent_.Hear(van::Overheard("worker0", "", {}, MessageOf(i)));
      sent_.Hear(van::Overheard("server0", "", {}, MessageOf(i + kPushes)));
    }
  }

  // A push to block 0.
  van::Message MessageOf(std::size_t number) const {
    proto::Request request;
    request.id = {.incarnation = kKnownAs, .sequence = number + 1, .worker = 0, .shard = 0};
    request.table = kTable;
    request.kind = TableKind::kDense;
    request.dtype = DType::kInt64;
    request.clock = number;
    std::vector<std::int64_t> values(kBlockBytes / sizeof(std::int64_t));
    request.elements = values.size();
    AddPush(tables_[0], values, 0, number);
    return {proto::Encode(request),
            {runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(std::int64_t))}};
  }

  // A checkpoint with the first `pushes` pushes, whose record of the worker says `admitted`.
  ps::ShardContent Saved(std::size_t pushes, std::uint64_t admitted) {
    RestoredShard shard(manifest_, 0, &history_);
    ps::ShardContent content;
    content.num_shards = 1;
    content.block_bytes = kBlockBytes;
    content.clock = 2;
    EXPECT_TRUE(shard.Begin(manifest_, {content}).ok());
    for (std::size_t i = 0; i < pushes; ++i) EXPECT_TRUE(shard.Take(sent_.To(0).at(i)));
    shard.End();
    for (const auto& [id, store] : shard.shard().stores()) {
      content.tables.push_back({.id = kTable,
                                .spec = tables_.front().spec,
                                .state_slots = 0,
                                .pieces = store->Freeze().pieces});
    }
    for (const auto& [id, collected] : shard.shard().collected()) {
      content.tables.front().collected = collected.Freeze();
    }
    content.sessions = {{.rank = 0,
                         .incarnation = kKnownAs,
                         .clock = 2,
                         .admitted = GetParam().is_bsp() ? 0 : admitted,
                         .admitted_held = GetParam().is_bsp() ? admitted : 0}};
    return content;
  }

  std::string Judge(const ps::ShardContent& content) const {
    return RestoreChecker(&tables_, &history_, &sent_, [](auto, auto, auto) { return false; })
        .Judge(manifest_, {content}, absl::UnixEpoch());
  }

  runtime::Random random_{1};
  std::vector<SimTable> tables_ =
      ChooseTables(1, /*ragged=*/false, &random_);  // the first: dense counters
  History history_;
  SentPushes sent_;
  checkpoint::Manifest manifest_;
};
INSTANTIATE_TEST_SUITE_P(Modes, RestoreCheckerTest,
                         testing::Values(Consistency::Bsp(), Consistency::Ssp(2),
                                         Consistency::Asp(), Consistency::FedBuff(3)));

TEST_P(RestoreCheckerTest, OneThatIsRight) {
  EXPECT_EQ(sent_.To(0).size(), kPushes);
  for (std::size_t pushes = 0; pushes <= kPushes; ++pushes) {
    EXPECT_EQ(Judge(Saved(pushes, pushes)), "") << pushes;
  }
}

// A push that was delayed while a change of its table was being decided.
TEST_P(RestoreCheckerTest, AMessageThatLeftAfterItsFollowerIsSentAgainFirst) {
  sent_ = SentPushes();
  for (const std::size_t number : {0, 2, 3, 1})
    sent_.Hear(van::Overheard("worker0", "", {}, MessageOf(number)));
  ASSERT_EQ(sent_.To(0).size(), kPushes);
  for (std::size_t i = 0; i < kPushes; ++i) {
    EXPECT_EQ(sent_.To(0)[i].request.id.sequence, i + 1);
  }
  EXPECT_EQ(Judge(Saved(2, 2)), "");
}

TEST_P(RestoreCheckerTest, OneThatKnowsTooLittle) {
  EXPECT_THAT(Judge(Saved(2, 1)), HasSubstr("push 1 of worker 0 (clock 1) to place 0"));
  EXPECT_THAT(Judge(Saved(2, 1)), HasSubstr(" 2 times"));
  ps::ShardContent content = Saved(2, 2);
  content.sessions.clear();
  EXPECT_THAT(Judge(content), HasSubstr(" 2 times"));
}

TEST_P(RestoreCheckerTest, OneThatClaimsTooMuch) {
  EXPECT_THAT(Judge(Saved(2, 3)), HasSubstr("push 2 of worker 0 (clock 2) to place 0"));
  EXPECT_THAT(Judge(Saved(2, 3)), HasSubstr(" 0 times"));
}

TEST_P(RestoreCheckerTest, OneThatLacksWhatIsCollected) {
  if (!GetParam().collects()) return;
  ps::ShardContent content = Saved(2, 2);
  content.tables.front().collected.clear();
  EXPECT_THAT(Judge(content), HasSubstr("push 0 of worker 0 (clock 0) to place 0"));
  EXPECT_THAT(Judge(content), HasSubstr(" 0 times"));
}

// Its pushes in clocks that had not closed may be lost with it, but are not there twice.
TEST_P(RestoreCheckerTest, AKilledWorkers) {
  history_.lives[0].killed = 1;
  EXPECT_EQ(Judge(Saved(2, 3)) == "", GetParam().is_bsp());
  EXPECT_THAT(Judge(Saved(2, 1)), HasSubstr(" 2 times"));
}

// The pushes of its earlier incarnation are not sent again.
TEST_P(RestoreCheckerTest, AWorkerThatCameBack) {
  history_.lives[0].killed = 1;
  history_.lives[0].incarnation = 2;
  history_.lives[0].known_as.push_back(kKnownAs + 1);
  ps::ShardContent content = Saved(2, 0);
  EXPECT_THAT(Judge(content), HasSubstr(" 2 times"));
  content.sessions.push_back({.rank = 0, .incarnation = kKnownAs + 1});
  EXPECT_EQ(Judge(content), "");
}

}  // namespace
}  // namespace leeway::simulation
