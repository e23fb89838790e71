#include "worker/slicing/sort_keys.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::worker {
namespace {

TEST(SortKeys, OrdersByKeyThenByPlace) {
  runtime::Random random(1);
  for (const std::size_t size : {0, 1, 2, 63, 64, 65, 1000, 5000}) {
    // Few keys, so that they repeat; keys equal in most bytes; any keys, the largest among them.
    for (const std::uint64_t below :
         {std::uint64_t{10}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
      std::vector<std::uint64_t> keys(size);
      for (std::uint64_t& key : keys) key = random.Below(below);
      if (size > 2) keys[size / 2] = below;
      std::vector<PlacedKey> expected(size);
      for (std::size_t i = 0; i < size; ++i) expected[i] = {keys[i], i};
      std::sort(expected.begin(), expected.end(), [](const PlacedKey& a, const PlacedKey& b) {
        return a.key != b.key ? a.key < b.key : a.place < b.place;
      });
      EXPECT_EQ(SortedByKey(keys), expected) << size << " keys below " << below;
    }
  }
}

}  // namespace
}  // namespace leeway::worker
