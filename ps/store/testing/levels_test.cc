// What a shard holds does not depend on what the processor can do.
#include <string>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/store/elements.h"
#include "ps/store/testing/store_test_util.h"
#include "ps/updaters/registry.h"
#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

constexpr std::uint64_t kElements = 2345;  // some stretches, some vectors and a rest

template <class Stored>
std::vector<Stored> Values(std::uint64_t size, runtime::Random& random) {
  std::vector<ComputeOf<Stored>> values(size);
  for (auto& value : values) {
    value =
        static_cast<ComputeOf<Stored>>(static_cast<double>(random.Below(1 << 24)) / 1000 - 8000);
  }
  std::vector<Stored> stored(size);
  Store(values.data(), size, stored.data());
  return stored;
}

std::vector<std::vector<std::byte>> BytesOf(Shard& shard) {
  std::vector<std::vector<std::byte>> bytes;
  for (const FrozenPiece& piece : shard->Freeze().pieces) {
    for (const runtime::Buffer* part : {&piece.values, &piece.state}) {
      const auto span = part->bytes();
      bytes.emplace_back(span.begin(), span.end());
    }
  }
  return bytes;
}

// A few clocks of five workers, and a push of one.
template <class Stored>
std::vector<std::vector<std::byte>> Dense(const TableSpec& spec) {
  Shard shard(spec);
  runtime::Random random(1);
  for (int clock = 0; clock < 3; ++clock) {
    std::vector<PushView> pushes;
    for (int worker = 0; worker < 5; ++worker) {
      pushes.push_back(DensePush(0, Values<Stored>(kElements, random)));
    }
    EXPECT_EQ(shard->ApplyCombined(pushes, 5), absl::OkStatus());
    EXPECT_EQ(shard->Apply(DensePush(0, Values<Stored>(kElements, random))), absl::OkStatus());
  }
  return BytesOf(shard);
}

template <class Stored>
std::vector<std::vector<std::byte>> Sparse(const TableSpec& spec) {
  Shard shard(spec);
  runtime::Random random(2);
  for (int clock = 0; clock < 3; ++clock) {
    std::vector<PushView> pushes;
    for (int worker = 0; worker < 5; ++worker) {
      pushes.push_back(SparsePush<Stored>({1, 2, 7}, Values<Stored>(3 * spec.row_width, random)));
    }
    EXPECT_EQ(shard->ApplyCombined(pushes, 5), absl::OkStatus());
  }
  return BytesOf(shard);
}

template <class Stored>
class OnEveryLevel : public testing::Test {
 protected:
  ~OnEveryLevel() override { compress::ChooseLevel(compress::LevelsHere().back()); }
};
using EveryType = testing::Types<float, double, Float16, BFloat16, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(OnEveryLevel, EveryType);

TYPED_TEST(OnEveryLevel, AShardHoldsTheSameBits) {
  std::size_t compared = 0;
  for (const std::string& name : UpdaterNames()) {
    if (std::is_integral_v<TypeParam> && name != "add" && name != "assign") continue;
    for (TableSpec spec : {TableSpec::Dense("t", {kElements}), TableSpec::Sparse("t", 19)}) {
      spec.dtype = DTypeOf<TypeParam>;
      spec.updater.name = name;
      // Other tests of this program register updaters that cannot be made.
      if (!MakeUpdater(spec).ok()) continue;
      ++compared;
      if (!std::is_integral_v<TypeParam> && name != "assign") spec.aggregate = Aggregate::kMean;
      std::vector<std::vector<std::byte>> expected;
      for (const compress::Level level : compress::LevelsHere()) {
        compress::ChooseLevel(level);
        const auto found =
            spec.kind == TableKind::kDense ? Dense<TypeParam>(spec) : Sparse<TypeParam>(spec);
        if (level == compress::Level::kScalar) expected = found;
        EXPECT_FALSE(found.empty());
        EXPECT_TRUE(found == expected) << name << ", " << Name(level);
      }
    }
  }
  EXPECT_GE(compared, std::is_integral_v<TypeParam> ? 4u : 20u);
}

}  // namespace
}  // namespace leeway::ps
