#include <cmath>
#include <limits>
#include <thread>

#include "proto/messages/layout.h"
#include "ps/store/testing/store_test_util.h"
#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

constexpr std::uint64_t kBlockBytes = 64;  // 16 floats

TableSpec Small(const std::string& updater, std::map<std::string, double> parameters = {}) {
  return WithUpdater(TableSpec::Dense("w", {40}), updater, std::move(parameters));
}

TEST(DenseStore, PushesAndPullsBlocks) {
  const Shard shard(Small("add"), {.block_bytes = kBlockBytes});
  EXPECT_EQ(shard.Block<float>(1, 16), std::vector<float>(16, 0));
  EXPECT_TRUE(shard->Apply(DensePush(1, std::vector<float>(16, 2))).ok());
  EXPECT_TRUE(shard->Apply(DensePush(1, std::vector<float>(16, 3))).ok());
  EXPECT_TRUE(shard->Apply(DensePush(2, std::vector<float>(8, 1))).ok());  // the short last one
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 0));
  EXPECT_EQ(shard.Block<float>(1, 16), std::vector<float>(16, 5));
  EXPECT_EQ(shard.Block<float>(2, 8), std::vector<float>(8, 1));
  EXPECT_EQ(shard->stats().blocks, 3u);
  EXPECT_EQ(shard->stats().value_bytes, 160u);
}

// Wherever they are: a push is looked at in stretches.
TEST(DenseStore, SaysWhetherWhatItAppliesIsFinite) {
  constexpr std::size_t kSize = 4096;
  const TableSpec spec = WithUpdater(TableSpec::Dense("w", {kSize}), "add");
  const Shard shard(spec, {.block_bytes = kSize * sizeof(float)});
  bool nonfinite = true;
  EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(kSize, 1)), &nonfinite).ok());
  EXPECT_FALSE(nonfinite);
  for (const std::size_t place : {0, 1, 255, 256, 1023, 1024, 2000, 4095}) {
    std::vector<float> values(kSize, 1);
    values[place] = place % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                   : -std::numeric_limits<float>::infinity();
    nonfinite = false;
    EXPECT_TRUE(shard->Apply(DensePush(0, values), &nonfinite).ok());
    EXPECT_TRUE(nonfinite) << place;
  }
  const std::vector<float> sums = shard.Block<float>(0, kSize);
  EXPECT_EQ(sums[2], 9) << "it is applied all the same";
  EXPECT_TRUE(std::isnan(sums[256]));
}

TEST(DenseStore, RefusesWhatDoesNotFit) {
  const Shard shard(Small("sgd"), {.block_bytes = kBlockBytes});
  const auto push = [&](const PushView& view) {
    EXPECT_EQ(shard->Check(view), shard->Apply(view));
    return shard->Apply(view);
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  ExpectError(push(DensePush(3, std::vector<float>(16))), absl::StatusCode::kOutOfRange,
              "table 'w': block 3 was asked for, but it has 3 blocks");
  ExpectError(push(DensePush(~0ull, std::vector<float>(16))), absl::StatusCode::kOutOfRange,
              "block 18446744073709551615");
  ExpectError(push(DensePush(2, std::vector<float>(16))), kInvalid,
              "table 'w': a push of 64 bytes to block 2, which has 8 elements of 4 bytes each");
  ExpectError(push(DensePush(0, std::vector<float>())), kInvalid, "a push of 0 bytes");
  ExpectError(push(DensePush(0, std::vector<float>(16), -1)), kInvalid, "learning_rate is -1");
  ExpectError(push(DensePush(0, std::vector<float>(16), 1 / 0.0)), kInvalid,
              "learning_rate is inf");
  PushView with_keys = DensePush(0, std::vector<float>(16));
  with_keys.keys = BufferOf(std::vector<std::uint64_t>{1});
  ExpectError(push(with_keys), kInvalid, "it is dense");

  ExpectError(shard->Pull({.block = 3, .elements = 16}).status(), absl::StatusCode::kOutOfRange,
              "table 'w': block 3");
  ExpectError(shard->Pull({.block = 2, .elements = 16}).status(), kInvalid,
              "a pull of 16 elements from block 2, which has 8");
  EXPECT_EQ(shard->stats().blocks, 0u);
}

TEST(DenseStore, RefusesBlocksOfOtherShards) {
  const StoreContext context = {
      .table = 7, .shard = 1, .num_shards = 3, .block_bytes = kBlockBytes};
  const Shard shard(WithUpdater(TableSpec::Dense("w", {1600}), "add"), context);
  for (std::uint64_t block = 0; block < 100; ++block) {
    const std::uint32_t owner = proto::ShardOfBlock(7, block, 3);
    const absl::Status pushed = shard->Apply(DensePush(block, std::vector<float>(16)));
    const absl::Status pulled = shard->Pull({.block = block, .elements = 16}).status();
    EXPECT_EQ(pushed.ok(), owner == 1);
    EXPECT_EQ(pulled.ok(), owner == 1);
    if (owner != 1) {
      ExpectError(pushed, absl::StatusCode::kInvalidArgument,
                  absl::StrCat("block ", block, " was asked for in shard 1 of 3, but belongs to ",
                               "shard ", owner));
    }
  }
}

// A reader keeps what it pulled, whatever is pushed later, and costs a copy only while it does.
TEST(DenseStore, APulledBlockNeverChanges) {
  const Shard shard(Small("momentum"), {.block_bytes = kBlockBytes});
  std::vector<runtime::Buffer> held;
  std::vector<std::vector<float>> seen;
  for (int i = 0; i < 5; ++i) {
    held.push_back(shard->Pull({.block = 0, .elements = 16})->payload[0]);
    seen.push_back(ValuesOf<float>(held.back()));
    EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(16, 1))).ok());
    EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(16, 1))).ok());  // in place
  }
  EXPECT_EQ(shard->stats().copies_on_write, 5u);
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(ValuesOf<float>(held[i]), seen[i]);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(seen[i], seen[j]);
  }
}

TEST(DenseStore, APullCopiesNothingAndAReleasedBlockIsWrittenInPlace) {
  const Shard shard(Small("add"), {.block_bytes = kBlockBytes});
  const std::byte* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    const auto one = shard->Pull({.block = 0, .elements = 16});
    const auto two = shard->Pull({.block = 0, .elements = 16});
    EXPECT_EQ(one->payload[0].data(), two->payload[0].data());
    if (i == 0) first = one->payload[0].data();
    EXPECT_EQ(one->payload[0].data(), first);
    if (i < 2) continue;
    EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(16, 1))).ok());
    EXPECT_EQ(one->payload[0].as<float>()[0], 0);
  }
  EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(16, 1))).ok());
  EXPECT_EQ(shard->stats().copies_on_write, 1u);
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 2));
}

// Readers let go on other threads (a transport's) while the store pushes.
TEST(DenseStore, ReadersOnOtherThreadsSeeWholeBlocks) {
  const Shard shard(WithUpdater(TableSpec::Dense("w", {4096}), "add"));
  for (int round = 0; round < 200; ++round) {
    runtime::Buffer pulled = shard->Pull({.block = 0, .elements = 4096})->payload[0];
    std::thread reader([buffer = std::move(pulled), round]() mutable {
      for (const float value : buffer.as<float>()) EXPECT_EQ(value, round);
      buffer = {};
    });
    EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(4096, 1))).ok());
    reader.join();
  }
}

TEST(DenseStore, CombinesInTheOrderGiven) {
  // In floats (1e8 + 1) − 1e8 is 0, but (1e8 − 1e8) + 1 is 1.
  const std::vector<float> big(16, 1e8f), one(16, 1), minus(16, -1e8f);
  const Shard first(Small("add"), {.block_bytes = kBlockBytes});
  const std::vector<PushView> order1 = {DensePush(0, big), DensePush(0, one), DensePush(0, minus)};
  EXPECT_TRUE(first->ApplyCombined(order1, 3).ok());
  EXPECT_EQ(first.Block<float>(0, 16), std::vector<float>(16, 0));
  const Shard second(Small("add"), {.block_bytes = kBlockBytes});
  const std::vector<PushView> order2 = {DensePush(0, big), DensePush(0, minus), DensePush(0, one)};
  EXPECT_TRUE(second->ApplyCombined(order2, 3).ok());
  EXPECT_EQ(second.Block<float>(0, 16), std::vector<float>(16, 1));
}

TEST(DenseStore, CombinedPushesAreOneUpdate) {
  // Momentum 0.5, rate 1: v = 1 + 2 + 3 = 6, w = −6; then v = 3 + 1 = 4, w = −10.
  const Shard shard(Small("momentum", {{"momentum", 0.5}, {"learning_rate", 1}}),
                    {.block_bytes = kBlockBytes});
  const std::vector<PushView> pushes = {DensePush(0, std::vector<float>(16, 1)),
                                        DensePush(0, std::vector<float>(16, 2)),
                                        DensePush(0, std::vector<float>(16, 3))};
  EXPECT_TRUE(shard->ApplyCombined(pushes, 3).ok());
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, -6));
  EXPECT_TRUE(shard->Apply(pushes[0]).ok());
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, -10));
}

TEST(DenseStore, TheMeanIsOverTheContributorsNotThePushes) {
  TableSpec spec = Small("add");
  spec.aggregate = Aggregate::kMean;
  const Shard shard(spec, {.block_bytes = kBlockBytes});
  // Worker 0 pushed twice.
  const std::vector<PushView> pushes = {DensePush(0, std::vector<float>(16, 1)),
                                        DensePush(0, std::vector<float>(16, 2)),
                                        DensePush(0, std::vector<float>(16, 3))};
  EXPECT_TRUE(shard->ApplyCombined(pushes, 2).ok());
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 3));
  // A push that is applied alone is not divided.
  EXPECT_TRUE(shard->Apply(pushes[0]).ok());
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 4));
}

TEST(DenseStore, TheLastAssignmentWinsAndIsNeverDivided) {
  TableSpec spec = Small("assign");
  spec.aggregate = Aggregate::kMean;
  const Shard shard(spec, {.block_bytes = kBlockBytes});
  const std::vector<PushView> pushes = {DensePush(0, std::vector<float>(16, 8)),
                                        DensePush(0, std::vector<float>(16, 2))};
  EXPECT_TRUE(shard->ApplyCombined(pushes, 2).ok());
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 2));
}

TEST(DenseStore, TheFirstPushSetsTheValuesOfATableThatBeginsWithOne) {
  TableSpec spec = Small("adam", {{"learning_rate", 1}});
  spec.initializer = Initializer::Pushed();
  const Shard shard(spec, {.block_bytes = kBlockBytes});
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 0));
  EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(16, 8))).ok());
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 8));
  EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<float>(16, 2))).ok());
  EXPECT_NEAR(shard.Block<float>(0, 16)[3], 7, 1e-5) << "adam's first step";
}

TEST(DenseStore, TheLastRateGivenIsUsed) {
  const std::vector<float> ones(16, 1);
  const Shard shard(Small("sgd", {{"learning_rate", 0.5}}), {.block_bytes = kBlockBytes});
  EXPECT_TRUE(shard->Apply(DensePush(0, ones)).ok());  // the table's
  EXPECT_EQ(shard.Block<float>(0, 16)[0], -0.5f);
  const std::vector<PushView> pushes = {DensePush(0, ones, 4), DensePush(0, ones, 2),
                                        DensePush(0, ones)};
  EXPECT_TRUE(shard->ApplyCombined(pushes, 3).ok());
  EXPECT_EQ(shard.Block<float>(0, 16)[0], -6.5f);
}

TEST(DenseStore, NothingIsAppliedOfPushesThatDoNotFitTogether) {
  const Shard shard(Small("add"), {.block_bytes = kBlockBytes});
  const std::vector<float> ones(16, 1);
  const std::vector<PushView> two_blocks = {DensePush(0, ones), DensePush(1, ones)};
  ExpectError(shard->ApplyCombined(two_blocks, 2), absl::StatusCode::kInvalidArgument,
              "table 'w': pushes to blocks 0 and 1 cannot be combined");
  const std::vector<PushView> one_wrong = {DensePush(0, ones), DensePush(0, std::vector<float>{1})};
  EXPECT_FALSE(shard->ApplyCombined(one_wrong, 2).ok());
  EXPECT_TRUE(shard->ApplyCombined({}, 0).ok());
  EXPECT_EQ(shard.Block<float>(0, 16), std::vector<float>(16, 0));
}

TEST(DenseStore, HalvesAreAddedInFloatAndRoundedOnce) {
  // 1024 float16 contributions of 2^-11 to 1: each alone would be lost, together they are 0.5.
  const TableSpec spec = WithUpdater(TableSpec::Dense("h", {16}, DType::kFloat16), "add");
  TableSpec started = spec;
  started.initializer = Initializer::Constant(1);
  const Shard shard(started);
  const std::vector<Float16> small(16, Float16(0x1p-11f));
  const std::vector<PushView> pushes(1024, DensePush(0, small));
  EXPECT_TRUE(shard->ApplyCombined(pushes, 1024).ok());
  EXPECT_EQ(static_cast<float>(shard.Block<Float16>(0, 16)[0]), 1.5f);
  EXPECT_TRUE(shard->Apply(DensePush(0, small)).ok());
  EXPECT_EQ(static_cast<float>(shard.Block<Float16>(0, 16)[0]), 1.5f);
}

TEST(DenseStore, StateOfHalvesIsFloat) {
  // v = 0.5·v + g with g = 2^-12 beside a v of 2: float16 would lose it.
  const Shard shard(WithUpdater(TableSpec::Dense("h", {16}, DType::kFloat16), "momentum",
                                {{"momentum", 0.5}, {"learning_rate", 1}}));
  EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<Float16>(16, Float16(2)), 0)).ok());
  EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<Float16>(16, Float16(0x1p-12f)), 0)).ok());
  EXPECT_TRUE(shard->Apply(DensePush(0, std::vector<Float16>(16, Float16(-0.5)), 1)).ok());
  // v = (0.5·2 + 2^-12)·0.5 − 0.5 = 2^-13.
  EXPECT_EQ(static_cast<float>(shard.Block<Float16>(0, 16)[0]), -0x1p-13f);
}

// Initial values are the same however the tensor is cut.
template <class T>
std::vector<T> Assemble(const TableSpec& spec, std::uint32_t num_shards,
                        std::uint64_t block_bytes) {
  std::vector<Shard> shards;
  for (std::uint32_t i = 0; i < num_shards; ++i) {
    shards.emplace_back(
        spec,
        StoreContext{.table = 3, .shard = i, .num_shards = num_shards, .block_bytes = block_bytes});
  }
  std::vector<T> all;
  for (std::uint64_t block = 0; block < proto::NumBlocks(spec, block_bytes); ++block) {
    const Shard& shard = shards[proto::ShardOfBlock(3, block, num_shards)];
    const auto part = shard.Block<T>(block, proto::ElementsInBlock(spec, block_bytes, block));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(DenseStore, InitialValuesDoNotDependOnTheCut) {
  TableSpec spec = TableSpec::Dense("w", {50, 21});
  for (const Initializer& initializer :
       {Initializer::Constant(2.5), Initializer::Uniform(-3, 5, 42),
        Initializer::Normal(1, 2, 43)}) {
    spec.initializer = initializer;
    const auto whole = Assemble<float>(spec, 1, 1 << 20);
    EXPECT_EQ(whole.size(), 1050u);
    EXPECT_EQ(Assemble<float>(spec, 5, 64), whole);
    EXPECT_EQ(Assemble<float>(spec, 2, 1024), whole);
  }
}

TEST(DenseStore, InitialValuesAreWhatTheTableAsksFor) {
  TableSpec spec = TableSpec::Dense("w", {100000}, DType::kFloat64);
  spec.initializer = Initializer::Uniform(-3, 5, 42);
  double sum = 0;
  for (const double value : Assemble<double>(spec, 1, 1 << 20)) {
    EXPECT_GE(value, -3);
    EXPECT_LT(value, 5);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 1, 0.03);  // 8/√12/√100000 = 0.007
  spec.initializer = Initializer::Normal(1, 2, 42);
  const auto normal = Assemble<double>(spec, 1, 1 << 20);
  double squares = 0;
  for (const double value : normal) squares += (value - 1) * (value - 1);
  EXPECT_NEAR(squares / 100000, 4, 0.1);

  const auto again = [&](const std::string& name, std::uint64_t seed) {
    TableSpec other = spec;
    other.name = name;
    other.initializer.seed = seed;
    return Assemble<double>(other, 1, 1 << 20);
  };
  EXPECT_EQ(again("w", 42), normal);
  EXPECT_NE(again("v", 42), normal);
  EXPECT_NE(again("w", 41), normal);
}

TEST(DenseStore, IntegersTakeTheirConstant) {
  TableSpec spec = TableSpec::Dense("n", {5}, DType::kInt64);
  spec.initializer = Initializer::Constant(-7);
  EXPECT_EQ(Assemble<std::int64_t>(spec, 1, 4096), std::vector<std::int64_t>(5, -7));
}

}  // namespace
}  // namespace leeway::ps
