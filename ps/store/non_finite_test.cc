#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {
namespace {

template <class T>
bool Has(const std::vector<T>& values) {
  return HasNonFinite(DTypeOf<T>, std::as_bytes(std::span<const T>(values)));
}

// Finite values of all kinds pass; one that is not is found wherever it stands.
template <class T>
void ExpectFound(const std::vector<T>& finite, const std::vector<T>& other) {
  std::vector<T> values;
  for (int i = 0; i < 9001; ++i) values.push_back(finite[i % finite.size()]);
  EXPECT_FALSE(Has(values));
  for (const T bad : other) {
    for (const std::size_t at : {0, 1, 31, 32, 63, 64, 127, 128, 4095, 4096, 8999, 9000}) {
      const T kept = values[at];
      values[at] = bad;
      EXPECT_TRUE(Has(values)) << at;
      values[at] = kept;
    }
  }
  EXPECT_FALSE(Has(values));
  EXPECT_FALSE(Has(std::vector<T>{}));
}

template <class T>
void ExpectFoundInFull() {
  using Limits = std::numeric_limits<T>;
  ExpectFound<T>({0, T(-0.0), 1, -1, Limits::max(), Limits::lowest(), Limits::denorm_min()},
                 {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                  -Limits::quiet_NaN(), Limits::signaling_NaN()});
}

template <class Half>
Half Bits(std::uint16_t bits) {
  Half half;
  half.bits = bits;
  return half;
}

TEST(HasNonFinite, Float32) { ExpectFoundInFull<float>(); }
TEST(HasNonFinite, Float64) { ExpectFoundInFull<double>(); }

TEST(HasNonFinite, Float16) {
  const auto h = Bits<Float16>;
  ExpectFound<Float16>({h(0), h(0x8000), h(0x3c00), h(0x7bff), h(0xfbff), h(1)},
                       {h(0x7c00), h(0xfc00), h(0x7e00), h(0xffff), h(0x7c01)});
}

TEST(HasNonFinite, BFloat16) {
  const auto h = Bits<BFloat16>;
  ExpectFound<BFloat16>({h(0), h(0x8000), h(0x3f80), h(0x7f7f), h(0xff7f), h(1)},
                        {h(0x7f80), h(0xff80), h(0x7fc0), h(0xffff), h(0x7f81)});
}

TEST(HasNonFinite, IntegersNeverAre) {
  EXPECT_FALSE(Has(std::vector<std::int32_t>{-1, 0x7f800000}));
  EXPECT_FALSE(Has(std::vector<std::int64_t>{-1, 0x7ff0000000000000}));
}

}  // namespace
}  // namespace leeway::ps
