#include "proto/messages/layout.h"
#include "proto/messages/limits.h"
#include "ps/store/testing/store_test_util.h"

namespace leeway::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Pulled {
  std::vector<std::uint32_t> widths;
  std::vector<float> values;
};

Pulled PullOf(const Shard& shard, const std::vector<std::uint64_t>& keys) {
  const auto result = shard->Pull(KeysPull(keys));
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->payload.size(), 2u);
  EXPECT_EQ(result->keys, keys.size());
  Pulled pulled = {ValuesOf<std::uint32_t>(result->payload[0]),
                   ValuesOf<float>(result->payload[1])};
  EXPECT_EQ(result->elements, pulled.values.size());
  return pulled;
}

TableSpec Lists(const std::string& updater, std::map<std::string, double> parameters = {}) {
  return WithUpdater(TableSpec::Ragged("r"), updater, std::move(parameters));
}

TEST(RaggedStore, RowsHaveTheirOwnWidth) {
  const Shard shard(Lists("assign"));
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({9, 4, 6}, {1, 3, 0}, {1, 2, 3, 4})).ok());
  const Pulled pulled = PullOf(shard, {4, 5, 9, 6, 4});
  EXPECT_THAT(pulled.widths, ElementsAre(3, 0, 1, 0, 3));
  EXPECT_THAT(pulled.values, ElementsAre(2, 3, 4, 1, 2, 3, 4));
  EXPECT_EQ(shard->stats().rows, 3u);
  EXPECT_EQ(shard->stats().value_bytes, 16u);
}

TEST(RaggedStore, AssignSetsTheWidth) {
  const Shard shard(Lists("assign"));
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({1}, {2}, {1, 2})).ok());
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({1}, {3}, {3, 4, 5})).ok());
  EXPECT_THAT(PullOf(shard, {1}).values, ElementsAre(3, 4, 5));
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({1}, {1}, {6})).ok());
  EXPECT_THAT(PullOf(shard, {1}).values, ElementsAre(6));
  EXPECT_EQ(shard->stats().value_bytes, 4u);
  // Of several widths the last one wins, too.
  const std::vector<PushView> pushes = {RaggedPush<float>({1}, {2}, {1, 2}),
                                        RaggedPush<float>({1, 1}, {1, 3}, {3, 4, 5, 6})};
  EXPECT_TRUE(shard->ApplyCombined(pushes, 2).ok());
  EXPECT_THAT(PullOf(shard, {1}).values, ElementsAre(4, 5, 6));
}

TEST(RaggedStore, WithOtherUpdatersTheFirstPushDoes) {
  // Momentum 0.5, rate 1: v = 1, w = −1; v = 0.5 + 1, w = −2.5.
  const Shard shard(Lists("momentum", {{"momentum", 0.5}, {"learning_rate", 1}}));
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({1}, {2}, {1, 10})).ok());
  ExpectError(shard->Apply(RaggedPush<float>({1}, {3}, {1, 2, 3})),
              absl::StatusCode::kInvalidArgument,
              "table 'r': a push of 3 elements to key 1, whose row has 2");
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({1}, {2}, {1, 10})).ok());
  EXPECT_THAT(PullOf(shard, {1}).values, ElementsAre(-2.5, -25));
}

TEST(RaggedStore, APushThatPassedMayBeRefusedLater) {
  const Shard shard(Lists("add"));
  const PushView narrow = RaggedPush<float>({1}, {1}, {1});
  const PushView wide = RaggedPush<float>({2, 1}, {1, 2}, {1, 1, 1});
  EXPECT_TRUE(shard->Check(narrow).ok());
  EXPECT_TRUE(shard->Check(wide).ok());
  EXPECT_TRUE(shard->Apply(narrow).ok());
  EXPECT_FALSE(shard->Apply(wide).ok());
  EXPECT_THAT(PullOf(shard, {1, 2}).values, ElementsAre(1));  // nothing of it was applied
}

TEST(RaggedStore, RowsThatAreAddedUpHaveOneWidth) {
  const Shard shard(Lists("add"));
  const std::vector<PushView> pushes = {RaggedPush<float>({1, 2}, {2, 1}, {1, 2, 3}),
                                        RaggedPush<float>({1}, {2}, {10, 20})};
  EXPECT_TRUE(shard->ApplyCombined(pushes, 2).ok());
  EXPECT_THAT(PullOf(shard, {1, 2}).values, ElementsAre(11, 22, 3));
  const std::vector<PushView> unequal = {RaggedPush<float>({7}, {1}, {1}),
                                         RaggedPush<float>({7}, {2}, {1, 2})};
  ExpectError(shard->ApplyCombined(unequal, 2), absl::StatusCode::kInvalidArgument,
              "table 'r': a push of 2 elements to key 7, to which others pushed 1");
  ExpectError(shard->Check(RaggedPush<float>({7, 7}, {1, 2}, {1, 2, 3})),
              absl::StatusCode::kInvalidArgument, "key 7");
}

TEST(RaggedStore, NewRowsStartFromTheInitializer) {
  TableSpec spec = Lists("add");
  spec.initializer = Initializer::Normal(0, 1, 3);
  const Shard shard(spec);
  EXPECT_THAT(PullOf(shard, {1}).values, IsEmpty());
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({1}, {4}, {0, 0, 0, 0})).ok());
  // As in a sparse table of that name.
  TableSpec sparse = TableSpec::Sparse("r", 4);
  sparse.initializer = spec.initializer;
  EXPECT_EQ(PullOf(shard, {1}).values, Shard(sparse).Rows<float>({1}));
}

TEST(RaggedStore, RefusesWhatDoesNotFit) {
  const Shard shard(Lists("assign"), {.shard = 0, .num_shards = 2, .pull_bytes_max = 8});
  std::uint64_t mine = 0;
  while (proto::ShardOfKey(mine, 2) != 0) ++mine;
  std::uint64_t other = 0;
  while (proto::ShardOfKey(other, 2) != 1) ++other;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  ExpectError(shard->Apply(RaggedPush<float>({other}, {1}, {1})), kInvalid, "belongs to shard 1");
  ExpectError(shard->Apply(RaggedPush<float>({mine}, {1, 1}, {1, 1})), kInvalid,
              "table 'r': a push of 1 key with 8 bytes of widths");
  ExpectError(shard->Apply(RaggedPush<float>({mine}, {2}, {1})), kInvalid,
              "a push of 4 bytes, but its widths add up to 2 elements of 4 bytes each");
  ExpectError(shard->Apply(RaggedPush<float>({mine}, {proto::kRowWidthMax + 1}, {1})), kInvalid,
              "a row of 16777217 elements, but it may have 16777216 at most");
  ExpectError(shard->Pull(KeysPull({other})).status(), kInvalid, "belongs to shard 1");
  EXPECT_TRUE(shard->Apply(RaggedPush<float>({mine}, {3}, {1, 2, 3})).ok());
  ExpectError(shard->Pull(KeysPull({mine})).status(), absl::StatusCode::kResourceExhausted,
              "a pull of 12 bytes, but a reply holds 8 at most");
}

}  // namespace
}  // namespace leeway::ps
