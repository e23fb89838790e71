// Updates that no value of a push betrays: finite 16-bit values whose sum is infinite, and integers
// that wrap around.
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "ps/store/testing/store_test_util.h"

namespace leeway::ps::overflow_test {
namespace {

constexpr std::uint64_t kWidth = 3;

template <class T>
TableSpec SpecOf(TableKind kind) {
  TableSpec spec = kind == TableKind::kDense    ? TableSpec::Dense("w", {kWidth}, DTypeOf<T>)
                   : kind == TableKind::kSparse ? TableSpec::Sparse("w", kWidth, DTypeOf<T>)
                                                : TableSpec::Ragged("w", DTypeOf<T>);
  return WithUpdater(spec, "add");
}

// `value` for one block or row, among others that do nothing.
template <class T>
PushView PushOf(TableKind kind, T value) {
  const std::vector<T> values = {T(), value, T()};
  switch (kind) {
    case TableKind::kDense:
      return DensePush<T>(0, values);
    case TableKind::kSparse:
      return SparsePush<T>({7}, values);
    case TableKind::kRagged:
      return RaggedPush<T>({7}, {kWidth}, values);
  }
  return {};
}

// `large` fits once, and not twice.
template <class T>
void ExpectSeen(T large) {
  for (const TableKind kind : {TableKind::kDense, TableKind::kSparse, TableKind::kRagged}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const PushView push = PushOf(kind, large);
    Shard store(SpecOf<T>(kind));
    EXPECT_FALSE(*store->WouldOverflow(push));
    ASSERT_TRUE(store->Apply(push).ok());
    EXPECT_FALSE(store->TakeOverflow());
    const std::uint64_t before = store->Digest();
    EXPECT_TRUE(*store->WouldOverflow(push));
    EXPECT_FALSE(store->TakeOverflow());
    EXPECT_EQ(store->Digest(), before);
    EXPECT_FALSE(*store->WouldOverflow(PushOf(kind, T())));
    ASSERT_TRUE(store->Apply(push).ok());
    EXPECT_TRUE(store->TakeOverflow());
    EXPECT_FALSE(store->TakeOverflow());

    // The sum of several, at once and in two steps.
    Shard together(SpecOf<T>(kind)), in_steps(SpecOf<T>(kind));
    ASSERT_TRUE(together->ApplyCombined(std::vector<PushView>{push, push}, 2).ok());
    EXPECT_TRUE(together->TakeOverflow());
    const auto sum = in_steps->Combine(std::vector<PushView>{push, push}, 2);
    ASSERT_TRUE(sum.ok()) << sum.status();
    if (!IsInteger(DTypeOf<T>)) {  // Combine has wrapped around
      EXPECT_TRUE(*in_steps->SumWouldOverflow(*sum));
    }
    EXPECT_FALSE(*in_steps->SumWouldOverflow(*in_steps->Combine({&push, 1}, 1)));
    EXPECT_EQ(in_steps->Digest(), Shard(SpecOf<T>(kind))->Digest());
    ASSERT_TRUE(in_steps->ApplyAggregate(*sum).ok());
    EXPECT_TRUE(in_steps->TakeOverflow());
    EXPECT_EQ(together->Digest(), in_steps->Digest());
  }
}

template <class Half>
Half Bits(std::uint16_t bits) {
  Half half;
  half.bits = bits;
  return half;
}

TEST(Overflow, OfFloat16) { ExpectSeen(Bits<Float16>(0x7b53)); }    // 60,000
TEST(Overflow, OfBFloat16) { ExpectSeen(Bits<BFloat16>(0x7f7f)); }  // 3.4e38
TEST(Overflow, OfInt32) {
  ExpectSeen(std::int32_t{1} << 30);
  ExpectSeen(std::numeric_limits<std::int32_t>::min());
}
TEST(Overflow, OfInt64) {
  ExpectSeen(std::int64_t{1} << 62);
  ExpectSeen(std::numeric_limits<std::int64_t>::min());
}

TEST(Overflow, OfLongRowsOfIntegers) {
  constexpr std::uint64_t kLong = 1500;
  Shard store(WithUpdater(TableSpec::Sparse("w", kLong, DType::kInt64), "add"));
  std::vector<std::int64_t> values(kLong, 1);
  values.back() = std::numeric_limits<std::int64_t>::max();
  const PushView push = SparsePush<std::int64_t>({1}, values);
  ASSERT_TRUE(store->Apply(push).ok());
  EXPECT_FALSE(store->TakeOverflow());
  EXPECT_TRUE(*store->WouldOverflow(push));
  ASSERT_TRUE(store->Apply(push).ok());
  EXPECT_TRUE(store->TakeOverflow());
}

TEST(Overflow, AssignedValuesNeverDo) {
  Shard store(WithUpdater(TableSpec::Dense("w", {kWidth}, DType::kInt64), "assign"));
  const auto push =
      PushOf<std::int64_t>(TableKind::kDense, std::numeric_limits<std::int64_t>::max());
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(*store->WouldOverflow(push));
    ASSERT_TRUE(store->Apply(push).ok());
    EXPECT_FALSE(store->TakeOverflow());
  }
}

// A lossy codec's message is added up as float32.
TEST(Overflow, OfWhatACodecCarries) {
  TableSpec spec = WithUpdater(TableSpec::Dense("w", {kWidth}, DType::kFloat16), "add");
  spec.codec = "none";
  spec.codecs = {"qsgd"};
  Shard store(spec);
  const PushView push = PushOf(TableKind::kDense, Bits<Float16>(0x7b53));
  ASSERT_TRUE(store->Apply(push).ok());
  EXPECT_TRUE(*store->WouldOverflow(push));
  ASSERT_TRUE(store->Apply(push).ok());
  EXPECT_TRUE(store->TakeOverflow());
}

}  // namespace
}  // namespace leeway::ps::overflow_test
