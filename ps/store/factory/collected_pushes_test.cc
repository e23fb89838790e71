#include "ps/store/factory/collected_pushes.h"

#include "ps/store/testing/random_pushes.h"

namespace leeway::ps {
namespace {

using testing::ElementsAre;

TableSpec DenseSpec(DType dtype) {
  TableSpec spec = TableSpec::Dense("w", {1000}, dtype);
  spec.consistency = Consistency::FedBuff(3);
  return spec;
}

TableSpec SparseSpec(DType dtype) { return TableSpec::Sparse("w", kTestRowWidth, dtype); }

// By row and element, as numbers: -0 is 0.
template <class Stored>
std::map<std::uint64_t, std::vector<ComputeOf<Stored>>> Contents(const Shard& shard) {
  std::map<std::uint64_t, std::vector<ComputeOf<Stored>>> contents;
  for (const FrozenPiece& piece : shard->Freeze().pieces) {
    ForEachRow(piece, [&](const FrozenRow& row) {
      std::vector<ComputeOf<Stored>>& values = contents[row.key];
      values.resize(row.width);
      Load(reinterpret_cast<const Stored*>(row.values.data()), row.width, values.data());
    });
  }
  return contents;
}

// The sum is what the table's store would have combined.
template <class Stored>
void ExpectSumsOf(const TableSpec& spec) {
  const Shard store(spec, kTestContext);
  CollectedPushes collected(spec, kTestContext);
  RandomPushes<Stored> pushes(spec, /*last_wins=*/false, 7, 40);
  const PushView first = pushes.Next();
  std::vector<PushView> all;
  for (int i = 0; i < 3; ++i) {
    PushView push = pushes.Next();
    if (spec.kind == TableKind::kDense) push.block = first.block;
    if (spec.kind == TableKind::kSparse && push.keys.empty()) continue;
    if (!store->Check(push).ok()) continue;  // another block's size
    const auto weighted = Weighted(*store.operator->(), spec.dtype, push, 1);
    ASSERT_TRUE(weighted.ok()) << weighted.status();
    ASSERT_TRUE(collected.Add(*weighted).ok());
    all.push_back(std::move(push));
  }
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(collected.count(all.front().block), all.size());
  // Loaded elsewhere it is the same.
  CollectedPushes loaded(spec, kTestContext);
  for (const FrozenPiece& piece : collected.Freeze()) ASSERT_TRUE(loaded.Load(piece).ok());
  EXPECT_EQ(loaded.count(all.front().block), all.size());
  EXPECT_EQ(Digest(loaded.Freeze()), Digest(collected.Freeze()));
  CollectedPushes restored(spec, kTestContext);
  for (const FrozenPiece& piece : collected.Freeze()) {
    const auto any = restored.LoadElsewhere(piece, kTestContext.block_bytes);
    ASSERT_TRUE(any.ok()) << any.status();
    EXPECT_TRUE(*any);
  }
  EXPECT_EQ(restored.count(all.front().block), all.size());
  EXPECT_EQ(Digest(restored.Freeze()), Digest(collected.Freeze()));
  const auto expected = store->Combine(all, 1);
  ASSERT_TRUE(expected.ok());
  Shard one(spec, kTestContext), other(spec, kTestContext);
  ASSERT_TRUE(one->ApplyAggregate(*expected).ok());
  ASSERT_TRUE(other->ApplyAggregate(loaded.Take(all.front().block, 1)).ok());
  const auto expected_rows = Contents<Stored>(one), rows = Contents<Stored>(other);
  ASSERT_EQ(rows.size(), expected_rows.size());
  for (const auto& [key, values] : expected_rows) {
    for (std::size_t i = 0; i < values.size(); ++i) {  // added up in another order
      EXPECT_NEAR(static_cast<double>(rows.at(key)[i]), static_cast<double>(values[i]), 1e-2);
    }
  }
  EXPECT_TRUE(loaded.blocks().empty());
}

TEST(CollectedPushesTest, AreTheSum) {
  for (const auto& spec_of : {DenseSpec, SparseSpec}) {
    ExpectSumsOf<float>(spec_of(DType::kFloat32));
    ExpectSumsOf<double>(spec_of(DType::kFloat64));
    ExpectSumsOf<Float16>(spec_of(DType::kFloat16));
    ExpectSumsOf<BFloat16>(spec_of(DType::kBFloat16));
    ExpectSumsOf<std::int32_t>(spec_of(DType::kInt32));
    ExpectSumsOf<std::int64_t>(spec_of(DType::kInt64));
  }
}

TEST(CollectedPushesTest, WeightsAndMeansMultiply) {
  const TableSpec spec = TableSpec::Sparse("w", 2, DType::kFloat32);
  const StoreContext context = {.block_bytes = 1 << 20};
  const Shard store(spec, context);
  CollectedPushes collected(spec, context);
  const auto add = [&](std::uint64_t key, float value, double weight) {
    const PushView push = SparsePush<float>({key}, {value, value});
    EXPECT_TRUE(
        collected.Add(Weighted(*store.operator->(), spec.dtype, push, weight).value()).ok());
  };
  add(1, 8, 0.5);
  add(2, 8, 1);
  add(1, 4, 0.25);
  const AggregatedPush sum = collected.Take(0, 2);
  ASSERT_TRUE(store->Check(PushView{.keys = sum.keys, .values = sum.values}).ok());
  std::map<std::uint64_t, float> values;
  for (std::size_t i = 0; i < 2; ++i) {
    values[sum.keys.as<std::uint64_t>()[i]] = sum.values.as<float>()[2 * i];
  }
  EXPECT_THAT(values, ElementsAre(std::pair(1u, 2.5f), std::pair(2u, 4.0f)));
}

// Of a new replica: the learning rate of the last push that had one is that of the update.
TEST(CollectedPushesTest, ComeWithTheirRate) {
  const TableSpec spec = TableSpec::Sparse("w", 2, DType::kFloat32);
  const StoreContext context = {.block_bytes = 1 << 20};
  const Shard store(spec, context);
  CollectedPushes collected(spec, context), loaded(spec, context);
  PushView push = SparsePush<float>({1}, {8, 8});
  push.learning_rate = 0.25;
  ASSERT_TRUE(collected.Add(Weighted(*store.operator->(), spec.dtype, push, 1).value()).ok());
  for (const FrozenPiece& piece : collected.Freeze()) ASSERT_TRUE(loaded.Load(piece).ok());
  EXPECT_EQ(loaded.Take(0, 1).learning_rate, 0.25);
}

// Each push has rows in several shards: of those the most that one had is the number of pushes.
TEST(CollectedPushesTest, OfSeveralShardsArePushesOnce) {
  const TableSpec spec = TableSpec::Sparse("w", 1, DType::kFloat32);
  CollectedPushes restored(spec, {.block_bytes = 1 << 20});
  for (const std::uint32_t shard : {0u, 1u}) {
    const StoreContext context = {.shard = shard, .num_shards = 2, .block_bytes = 1 << 20};
    const Shard store(spec, context);
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; keys.size() < 2; ++key) {
      if (store->Check(SparsePush<float>({key}, {1})).ok()) keys.push_back(key);
    }
    CollectedPushes collected(spec, context);
    for (std::uint32_t pushes = 0; pushes < 2 + shard; ++pushes) {
      const PushView push = SparsePush<float>(keys, {1, 1});
      ASSERT_TRUE(collected.Add(Weighted(*store.operator->(), spec.dtype, push, 1).value()).ok());
    }
    for (const FrozenPiece& piece : collected.Freeze()) {
      ASSERT_TRUE(*restored.LoadElsewhere(piece, 1 << 20));
    }
  }
  EXPECT_EQ(restored.count(0), 3u);
  EXPECT_EQ(restored.Take(0, 1).keys.as<std::uint64_t>().size(), 4u);
}

TEST(CollectedPushesTest, APieceThatDoesNotFitIsRefused) {
  const TableSpec spec = DenseSpec(DType::kFloat32);
  CollectedPushes collected(spec, kTestContext);
  FrozenPiece piece{.kind = TableKind::kDense, .dtype = DType::kFloat64, .collected = 2};
  EXPECT_FALSE(collected.Load(piece).ok());
  EXPECT_TRUE(collected.blocks().empty());
}

}  // namespace
}  // namespace leeway::ps
