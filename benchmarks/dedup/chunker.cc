#include "dedup/chunker.h"

#include <algorithm>
#include <bit>

#include "runtime/base/random.h"

namespace leeway::bench {
namespace {

constexpr std::size_t kUnitBytes = 4;
constexpr int kLevel = 2;

// The `bits` highest bits, which depend on the last 64 bytes; lower bits depend on fewer.
std::uint64_t Mask(int bits) { return ~std::uint64_t{0} << (64 - bits); }

}  // namespace

// Only every fourth byte may be a cut; the masks have two bits fewer to make up for that.
Chunker::Chunker(std::size_t average_bytes)
    : average_(average_bytes), least_(average_bytes / 4), most_(average_bytes * 8) {
  for (std::size_t i = 0; i < gear_.size(); ++i) gear_[i] = runtime::RandomAt(1, 0, i);
  const int bits = std::countr_zero(average_bytes / kUnitBytes);
  strict_ = Mask(bits + kLevel);
  loose_ = Mask(std::max(1, bits - kLevel));
}

std::size_t Chunker::Next(std::span<const std::byte> bytes) const {
  if (bytes.size() <= least_) return bytes.size();
  const std::size_t end = std::min(bytes.size(), most_);
  std::uint64_t hash = 0;
  for (std::size_t i = least_; i < end; ++i) {
    hash = (hash << 1) + gear_[static_cast<std::size_t>(bytes[i])];
    const std::size_t size = i + 1;
    if (size % kUnitBytes == 0 && (hash & (size < average_ ? strict_ : loose_)) == 0) return size;
  }
  return end;
}

}  // namespace leeway::bench
