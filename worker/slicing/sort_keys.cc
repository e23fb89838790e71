// A radix sort from the last byte to the first, which skips bytes that all keys share.
#include "worker/slicing/sort_keys.h"

#include <algorithm>
#include <array>

namespace leeway::worker {
namespace {

constexpr int kBits = 8;
constexpr std::size_t kDigits = 1 << kBits;
constexpr std::size_t kFew = 64;  // up to so many keys a comparison sort is faster

// Sorts stably by one digit.
void SortByDigit(const std::vector<PlacedKey>& from, int shift, std::vector<PlacedKey>* to) {
  const auto digit = [shift](const PlacedKey& one) { return one.key >> shift & (kDigits - 1); };
  std::array<std::size_t, kDigits> next{};
  for (const PlacedKey& one : from) ++next[digit(one)];
  std::size_t begin = 0;
  for (std::size_t& count : next) {
    const std::size_t size = count;
    count = begin;
    begin += size;
  }
  for (const PlacedKey& one : from) (*to)[next[digit(one)]++] = one;
}

}  // namespace

std::vector<PlacedKey> SortedByKey(std::span<const std::uint64_t> keys) {
  std::vector<PlacedKey> sorted(keys.size());
  std::uint64_t differ = 0;  // bits in which keys differ
  for (std::size_t i = 0; i < keys.size(); ++i) {
    sorted[i] = {keys[i], i};
    differ |= keys[i] ^ keys[0];
  }
  if (keys.size() <= kFew) {
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const PlacedKey& a, const PlacedKey& b) { return a.key < b.key; });
    return sorted;
  }
  std::vector<PlacedKey> other(keys.size());
  for (int shift = 0; shift < 64; shift += kBits) {
    if ((differ >> shift & (kDigits - 1)) == 0) continue;
    SortByDigit(sorted, shift, &other);
    sorted.swap(other);
  }
  return sorted;
}

}  // namespace leeway::worker
