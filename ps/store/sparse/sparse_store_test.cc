#include <algorithm>

#include "proto/messages/layout.h"
#include "ps/store/elements.h"
#include "ps/store/frozen_piece.h"
#include "ps/store/testing/store_test_util.h"
#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

using testing::ElementsAre;
using Keys = std::vector<std::uint64_t>;
using Floats = std::vector<float>;

TableSpec Pairs(const std::string& updater, std::map<std::string, double> parameters = {}) {
  return WithUpdater(TableSpec::Sparse("e", 2), updater, std::move(parameters));
}

TEST(SparseStore, PushesAndPullsRows) {
  const Shard shard(Pairs("add"));
  const std::uint64_t far = ~0ull;
  EXPECT_TRUE(shard->Apply(SparsePush<float>({7, far, 3}, {1, 2, 3, 4, 5, 6})).ok());
  EXPECT_TRUE(shard->Apply(SparsePush<float>({3, 7}, {10, 20, 30, 40})).ok());
  EXPECT_THAT(shard.Rows<float>({3, 7, far, 0, 3}),
              ElementsAre(15, 26, 31, 42, 3, 4, 0, 0, 15, 26));
  EXPECT_TRUE(shard.Rows<float>({}).empty());
  EXPECT_TRUE(shard->Apply(SparsePush<float>({}, {})).ok());
  EXPECT_EQ(shard->stats().rows, 3u);
}

TEST(SparseStore, PullingKeepsNothing) {
  TableSpec spec = Pairs("add");
  spec.initializer = Initializer::Normal(0, 1, 5);
  const Shard shard(spec);
  const Floats before = shard.Rows<float>({1, 2, 3});
  EXPECT_EQ(shard->stats().rows, 0u);
  EXPECT_EQ(shard->stats().value_bytes, 0u);
  EXPECT_EQ(shard.Rows<float>({3, 1, 2}),
            Floats({before[4], before[5], before[0], before[1], before[2], before[3]}));
  // The first push starts from the same values.
  EXPECT_TRUE(shard->Apply(SparsePush<float>({2}, {1, 1})).ok());
  EXPECT_EQ(shard.Rows<float>({2}), Floats({before[2] + 1, before[3] + 1}));
}

TEST(SparseStore, APulledRowNeverChanges) {
  const Shard shard(Pairs("add"));
  EXPECT_TRUE(shard->Apply(SparsePush<float>({1}, {1, 2})).ok());
  const auto pulled = shard->Pull(KeysPull({1}));
  EXPECT_TRUE(shard->Apply(SparsePush<float>({1}, {1, 2})).ok());
  EXPECT_THAT(ValuesOf<float>(pulled->payload[0]), ElementsAre(1, 2));
}

TEST(SparseStore, InitialValuesDoNotDependOnTheShards) {
  TableSpec spec = TableSpec::Sparse("e", 3);
  spec.initializer = Initializer::Uniform(0, 1, 9);
  const Shard whole(spec);
  Floats all;
  for (std::uint64_t key = 0; key < 50; ++key) {
    const std::uint32_t owner = proto::ShardOfKey(key, 4);
    const Shard part(spec, {.shard = owner, .num_shards = 4});
    const Floats row = part.Rows<float>({key});
    EXPECT_EQ(row, whole.Rows<float>({key}));
    all.insert(all.end(), row.begin(), row.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());  // no two alike
}

TEST(SparseStore, RefusesWhatDoesNotFit) {
  const Shard shard(Pairs("sgd"));
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const auto push = [&](const PushView& view) {
    EXPECT_EQ(shard->Check(view), shard->Apply(view));
    return shard->Apply(view);
  };
  ExpectError(push(SparsePush<float>({1, 2}, {1, 2, 3})), kInvalid,
              "table 'e': a push of 12 bytes for 2 keys, but it has rows of 2 elements of 4 bytes");
  ExpectError(push(SparsePush<float>({}, {1, 2})), kInvalid, "a push of 8 bytes for 0 keys");
  ExpectError(push(SparsePush<float>({1}, {1, 2}, -0.5)), kInvalid, "learning_rate is -0.5");
  ExpectError(push(RaggedPush<float>({1}, {2}, {1, 2})), kInvalid, "it is sparse");
  PushView torn = SparsePush<float>({1}, {1, 2});
  torn.keys = runtime::Buffer::CopyOf("1234567");
  ExpectError(push(torn), kInvalid, "7 bytes were sent");
  EXPECT_EQ(shard->stats().rows, 0u);
}

TEST(SparseStore, RefusesKeysOfOtherShards) {
  const Shard shard(Pairs("add"), {.shard = 1, .num_shards = 3});
  for (std::uint64_t key = 0; key < 50; ++key) {
    const std::uint32_t owner = proto::ShardOfKey(key, 3);
    EXPECT_EQ(shard->Apply(SparsePush<float>({key}, {1, 2})).ok(), owner == 1);
    const absl::Status pulled = shard->Pull(KeysPull({key})).status();
    EXPECT_EQ(pulled.ok(), owner == 1);
    if (owner != 1) {
      ExpectError(pulled, absl::StatusCode::kInvalidArgument,
                  absl::StrCat("table 'e': key ", key, " was sent to shard 1 of 3, but belongs to ",
                               "shard ", owner));
    }
  }
}

TEST(SparseStore, RefusesToGatherMoreThanAFrameHolds) {
  const Shard shard(Pairs("add"), {.pull_bytes_max = 24});
  EXPECT_EQ(shard.Rows<float>({1, 2, 3}).size(), 6u);
  ExpectError(shard->Pull(KeysPull({1, 2, 3, 4})).status(), absl::StatusCode::kResourceExhausted,
              "table 'e': a pull of 32 bytes, but a reply holds 24 at most; pull fewer keys at a "
              "time or raise LEEWAY_MESSAGE_BYTES_MAX");
}

// Repeated keys are one update, as repeated gradients of one row are one gradient.
TEST(SparseStore, RepeatedKeysAreCombined) {
  // Momentum 0.5, rate 1. Key 5: v = 1 + 3, w = −4; then v = 2 + 1, w = −7.
  const Shard shard(Pairs("momentum", {{"momentum", 0.5}, {"learning_rate", 1}}));
  EXPECT_TRUE(shard->Apply(SparsePush<float>({5, 2, 5}, {1, 10, 2, 20, 3, 30})).ok());
  EXPECT_THAT(shard.Rows<float>({5, 2}), ElementsAre(-4, -40, -2, -20));
  EXPECT_TRUE(shard->Apply(SparsePush<float>({5}, {1, 1})).ok());
  EXPECT_THAT(shard.Rows<float>({5}), ElementsAre(-7, -61));

  const Shard assigned(Pairs("assign"));
  EXPECT_TRUE(assigned->Apply(SparsePush<float>({5, 2, 5}, {1, 10, 2, 20, 3, 30})).ok());
  EXPECT_THAT(assigned.Rows<float>({5, 2}), ElementsAre(3, 30, 2, 20));
}

TEST(SparseStore, CombinesInTheOrderGiven) {
  const std::vector<PushView> pushes = {
      SparsePush<float>({1, 2}, {1e8f, 1e8f, 1e8f, 1e8f}), SparsePush<float>({2}, {-1e8f, -1e8f}),
      SparsePush<float>({2, 1}, {1, 1, 1, 1}), SparsePush<float>({1}, {-1e8f, -1e8f})};
  const Shard shard(Pairs("add"));
  EXPECT_TRUE(shard->ApplyCombined(pushes, 4).ok());
  EXPECT_THAT(shard.Rows<float>({1, 2}), ElementsAre(0, 0, 1, 1));
}

TEST(SparseStore, EachRowCountsItsOwnSteps) {
  // Adam's first step is the rate, whenever it comes.
  const Shard shard(Pairs("adam", {{"learning_rate", 0.5}, {"epsilon", 1e-12}}));
  EXPECT_TRUE(shard->Apply(SparsePush<float>({1}, {1, 1})).ok());
  EXPECT_TRUE(shard->Apply(SparsePush<float>({1}, {1, 1})).ok());
  EXPECT_TRUE(shard->Apply(SparsePush<float>({2}, {3, 3})).ok());
  EXPECT_THAT(shard.Rows<float>({2}), testing::Each(testing::FloatNear(-0.5f, 1e-6f)));
}

TEST(SparseStore, TheMeanIsOverTheContributors) {
  TableSpec spec = Pairs("add");
  spec.aggregate = Aggregate::kMean;
  const Shard shard(spec);
  const std::vector<PushView> pushes = {SparsePush<float>({1, 2}, {2, 4, 6, 8}),
                                        SparsePush<float>({2}, {2, 2})};
  EXPECT_TRUE(shard->ApplyCombined(pushes, 2).ok());
  EXPECT_THAT(shard.Rows<float>({1, 2}), ElementsAre(1, 2, 4, 5));
}

TEST(SparseStore, NothingIsAppliedWhenOnePushIsWrong) {
  const Shard shard(Pairs("add"));
  const std::vector<PushView> pushes = {SparsePush<float>({1}, {2, 4}),
                                        SparsePush<float>({2}, {2})};
  EXPECT_FALSE(shard->ApplyCombined(pushes, 2).ok());
  EXPECT_EQ(shard->stats().rows, 0u);
}

// Rows stay where they are while others are added, slab after slab, wide and narrow.
TEST(SparseStore, HoldsManyRows) {
  for (const std::uint64_t width : {1, 3, 5000, 40000}) {
    const Shard shard(WithUpdater(TableSpec::Sparse("e", width), "momentum",
                                  {{"momentum", 0.5}, {"learning_rate", 1}}));
    const std::uint64_t rows = width < 100 ? 40000 : 40;
    for (int round = 0; round < 2; ++round) {
      for (std::uint64_t key = 0; key < rows; key += 20) {
        Keys keys;
        Floats values;
        for (std::uint64_t k = key; k < key + 20; ++k) {
          keys.push_back(k * 0x9e3779b97f4a7c15);
          values.insert(values.end(), width, static_cast<float>(k % 1000));
        }
        ASSERT_TRUE(shard->Apply(SparsePush(keys, values)).ok());
      }
    }
    EXPECT_EQ(shard->stats().rows, rows);
    for (std::uint64_t k = 0; k < rows; k += 7) {  // −g − 1.5 g
      const float expected = -2.5f * static_cast<float>(k % 1000);
      ASSERT_EQ(shard.Rows<float>({k * 0x9e3779b97f4a7c15}), Floats(width, expected));
    }
  }
}

// Rows are looked up some ahead of those that are updated, and updated in a way of their own where
// that is quicker: which must not be seen. Some of them are new, some are looked at by a snapshot
// and have to move meanwhile.
template <class Stored>
void ExpectBatchesAreTheirRows(const TableSpec& spec) {
  const Shard whole(spec), row_by_row(spec);
  runtime::Random random(1);
  std::vector<StoreSnapshot> snapshots;
  for (const std::size_t size :
       {1, 7, 8, 9, 16, 17, 31, 32, 33, 40, 41, 63, 64, 65, 300, 2000, 2000}) {
    for (int round = 0; round < 2; ++round) {
      Keys keys;
      while (keys.size() < size) keys.push_back(random.Below(600) * 0x9e3779b97f4a7c15);
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      std::vector<Stored> values;
      for (std::size_t i = 0; i < keys.size() * spec.row_width; ++i) {
        values.push_back(Stored(static_cast<ComputeOf<Stored>>(random.Below(1000)) - 500));
      }
      if (random.Below(2) == 0) snapshots.push_back(whole->Freeze());
      if (random.Below(4) == 0) snapshots.clear();
      ASSERT_EQ(whole->Apply(SparsePush(keys, values)), absl::OkStatus());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto* const row = values.data() + i * spec.row_width;
        const std::vector<Stored> one(row, row + spec.row_width);
        ASSERT_EQ(row_by_row->Apply(SparsePush(Keys{keys[i]}, one)), absl::OkStatus());
      }
      const auto digest = [](const Shard& shard) { return Digest(shard->Freeze().pieces); };
      ASSERT_EQ(digest(whole), digest(row_by_row)) << size;
      ASSERT_EQ(whole->Pull(KeysPull(keys))->payload[0].text(),
                row_by_row->Pull(KeysPull(keys))->payload[0].text());
    }
  }
}

TEST(SparseStore, ABatchDoesWhatItsRowsDo) {
  for (const std::uint64_t width : {1, 16, 80}) {
    for (const std::string updater : {"add", "adam"}) {
      TableSpec spec = WithUpdater(TableSpec::Sparse("e", width), updater);
      spec.initializer = Initializer::Normal(0, 1, 5);
      ExpectBatchesAreTheirRows<float>(spec);
      spec.dtype = DType::kBFloat16;
      ExpectBatchesAreTheirRows<BFloat16>(spec);
    }
  }
}

// Whatever way it goes: alone, or with other pushes, which goes through the kernels.
template <class Stored>
void ExpectSums(std::uint64_t width, Stored first, Stored second, Stored sum) {
  TableSpec spec = WithUpdater(TableSpec::Sparse("e", width), "add");
  spec.dtype = DTypeOf<Stored>;
  const Shard alone(spec), among(spec);
  for (const Stored value : {first, second}) {
    const PushView push = SparsePush<Stored>({1, 2}, std::vector<Stored>(2 * width, value));
    const PushView nothing = SparsePush<Stored>({3, 3}, std::vector<Stored>(2 * width, Stored{}));
    ASSERT_EQ(alone->Apply(push), absl::OkStatus());
    ASSERT_EQ(among->ApplyCombined(std::vector<PushView>{push, nothing}, 1), absl::OkStatus());
  }
  EXPECT_EQ(alone.Rows<Stored>({1, 2}), std::vector<Stored>(2 * width, sum));
  EXPECT_EQ(among.Rows<Stored>({1, 2}), std::vector<Stored>(2 * width, sum));
}

TEST(SparseStore, ShortRowsAndLongOnesAreAddedAlike) {
  for (const std::uint64_t width : {1, 3, 4, 16, 63, 64, 65, 200}) {
    ExpectSums<float>(width, 0.1f, 0.2f, 0.1f + 0.2f);
    ExpectSums<double>(width, 0.1, 0.2, 0.1 + 0.2);
    ExpectSums<std::int32_t>(width, 2147483647, 2, -2147483647);  // wraps around
    ExpectSums<std::int64_t>(width, 9223372036854775807, 2, -9223372036854775807);
  }
}

TEST(SparseStore, AKeyOfAnotherShardIsFoundWhereverItStands) {
  const Shard shard(Pairs("add"), {.shard = 1, .num_shards = 4});
  Keys keys;
  for (std::uint64_t key = 0; keys.size() < 300; ++key) {
    if (proto::ShardOfKey(key, 4) == 1) keys.push_back(key);
  }
  std::uint64_t wrong = 0;
  while (proto::ShardOfKey(wrong, 4) == 1) ++wrong;
  EXPECT_TRUE(shard->Apply(SparsePush<float>(keys, Floats(2 * keys.size()))).ok());
  for (const std::size_t at : {0, 31, 32, 33, 255, 256, 299}) {
    Keys others = keys;
    others[at] = wrong;
    ExpectError(shard->Pull(KeysPull(others)).status(), absl::StatusCode::kInvalidArgument,
                absl::StrCat("key ", wrong, " was sent to shard 1 of 4, but belongs to shard ",
                             proto::ShardOfKey(wrong, 4)));
  }
}

}  // namespace
}  // namespace leeway::ps
