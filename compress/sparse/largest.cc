#include "compress/sparse/largest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "compress/common/float_codec.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/mix.h"

namespace leeway::compress {
namespace {

constexpr std::size_t kFew = 512;         // up to this many are sorted partly, not counted
constexpr std::size_t kSampled = 4096;    // with fewer elements a sample is too small
constexpr std::size_t kSampleShare = 64;  // one of so many is in the sample
constexpr std::size_t kLargestSample = 1 << 16;
constexpr std::size_t kElementsAtOnce = 4096;  // elements in one call of a kernel
constexpr int kCorrections = 3;

std::uint32_t MagnitudeOf(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

// One digit of a radix selection.
struct Digit {
  int shift;
  std::uint32_t values;
};
constexpr std::array<Digit, 3> kDigits = {{{20, 2048}, {10, 1024}, {0, 1024}}};

// Writes those of `count` candidates that are among the k largest.
class Taker {
 public:
  Taker(const float* values, std::uint32_t first, RankedMagnitude last, std::size_t k)
      : values_(values), first_(first), last_(last.magnitude), ties_(k - last.larger) {}

  // to[0, count) may be the candidates themselves. Returns the number of places written.
  std::size_t Take(const std::uint32_t* candidates, std::size_t count, std::uint32_t* to) {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t place = candidates[i], magnitude = MagnitudeOf(values_[place - first_]);
      const bool tie = magnitude == last_ && ties_ > 0;
      ties_ -= tie ? 1 : 0;
      to[taken] = place;
      taken += magnitude > last_ || tie ? 1 : 0;
    }
    return taken;
  }

 private:
  const float* values_;
  std::uint32_t first_;
  std::uint32_t last_;
  std::size_t ties_;  // of magnitude last_, still to be taken
};

}  // namespace

std::uint64_t CountOfRatio(double ratio, std::uint64_t elements) {
  if (elements == 0) return 0;
  const double exact = ratio * static_cast<double>(elements) * (1 - 0x1p-50);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(exact)), 1, elements);
}

std::uint64_t CountOfRatio(double ratio, const CodecShape& shape) {
  const std::uint64_t group = GroupElements(shape, 0);
  if (group == 0) return 0;
  return shape.elements / group * CountOfRatio(ratio, group) +
         CountOfRatio(ratio, shape.elements % group);
}

RankedMagnitude KthLargest(std::uint32_t* magnitudes, std::size_t size, std::size_t k) {
  if (size <= kFew) {
    std::nth_element(magnitudes, magnitudes + (k - 1), magnitudes + size, std::greater<>());
    const std::uint32_t kth = magnitudes[k - 1];
    return {kth, static_cast<std::size_t>(std::count_if(
                     magnitudes, magnitudes + k, [kth](std::uint32_t one) { return one > kth; }))};
  }
  RankedMagnitude ranked;
  std::array<std::uint32_t, 2048> counts;
  for (const Digit digit : kDigits) {
    std::fill_n(counts.begin(), digit.values, 0u);
    const std::uint32_t mask = digit.values - 1;
    for (std::size_t i = 0; i < size; ++i) ++counts[magnitudes[i] >> digit.shift & mask];
    std::uint32_t value = mask;
    while (ranked.larger + counts[value] < k) ranked.larger += counts[value--];
    ranked.magnitude |= value << digit.shift;
    // From here on only candidates with the same first digits matter.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t one = magnitudes[i];
      magnitudes[kept] = one;
      kept += (one >> digit.shift & mask) == value ? 1 : 0;
    }
    size = kept;
  }
  return ranked;
}

bool PlaceFinder::AppendAtLeast(const float* values, std::size_t size, std::uint32_t magnitude,
                                std::uint32_t first, std::vector<std::uint32_t>* places) {
  const auto select = ChosenKernels().sparse.select;
  std::size_t found = places->size();
  for (std::size_t begin = 0; begin < size; begin += kElementsAtOnce) {
    const std::size_t stretch = std::min(kElementsAtOnce, size - begin);
    if (places->size() - found < stretch) {
      places->resize(std::max(found + stretch, places->size() + places->size() / 2));
    }
    std::uint32_t* const to = places->data() + found;
    const std::size_t more =
        select(values + begin, stretch, magnitude, first + static_cast<std::uint32_t>(begin), to);
    for (std::size_t i = 0; i < more; ++i) {
      if (MagnitudeOf(values[to[i] - first]) >= kInfiniteMagnitude) return false;
    }
    found += more;
  }
  places->resize(found);
  return true;
}

// Guesses a threshold that a little more than k values reach, from a sample, and corrects it if the
// sample misled. False: no threshold was found, or *finite became false.
bool PlaceFinder::AppendBySample(const float* values, std::size_t size, std::size_t k,
                                 std::uint32_t first, std::vector<std::uint32_t>* places,
                                 bool* finite) {
  const auto select = ChosenKernels().sparse.select;
  const std::size_t sampled = std::min(size / kSampleShare, kLargestSample);
  const std::size_t distance = size / sampled;
  const double share = static_cast<double>(sampled) / static_cast<double>(size);
  const double expected = static_cast<double>(k) * share;
  // The expected number, two standard deviations and a bit; more after each attempt that fell
  // short.
  double margin = 2 * std::sqrt(expected) + 2;
  for (int correction = 0; correction < kCorrections; ++correction, margin *= 3) {
    const auto rank = static_cast<std::size_t>(expected + margin);
    if (rank >= sampled) return false;
    // At a random place within each stretch, so that the sample's period meets none of the values'.
    magnitudes_.resize(sampled);
    for (std::size_t i = 0; i < sampled; ++i) {
      const std::size_t offset = (runtime::MixKey(i) >> 32) * distance >> 32;
      magnitudes_[i] = MagnitudeOf(values[i * distance + offset]);
    }
    const std::uint32_t threshold = KthLargest(magnitudes_.data(), sampled, rank).magnitude;
    const std::size_t room =
        static_cast<std::size_t>(2 * static_cast<double>(rank) / share) + kElementsAtOnce;
    if (candidates_.size() < room) candidates_.resize(room);
    std::size_t found = 0, begin = 0;
    for (; begin < size; begin += kElementsAtOnce) {
      const std::size_t stretch = std::min(kElementsAtOnce, size - begin);
      if (room - found < stretch) break;
      found += select(values + begin, stretch, threshold, first + static_cast<std::uint32_t>(begin),
                      candidates_.data() + found);
    }
    if (begin < size) return false;  // more than twice as many: equal values, or an unlucky order
    if (found < k) continue;
    magnitudes_.resize(std::max(magnitudes_.size(), found));
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < found; ++i) {
      magnitudes_[i] = MagnitudeOf(values[candidates_[i] - first]);
      largest = std::max(largest, magnitudes_[i]);
    }
    *finite = largest < kInfiniteMagnitude;
    if (!*finite) return false;
    Taker taker(values, first, KthLargest(magnitudes_.data(), found, k), k);
    const std::size_t taken = taker.Take(candidates_.data(), found, candidates_.data());
    places->insert(places->end(), candidates_.begin(),
                   candidates_.begin() + static_cast<std::ptrdiff_t>(taken));
    return true;
  }
  return false;
}

bool PlaceFinder::AppendLargest(const float* values, std::size_t size, std::size_t k,
                                std::uint32_t first, std::vector<std::uint32_t>* places) {
  const Kernels& kernels = ChosenKernels();
  if (k > 1 && k < size && size >= kSampled) {
    bool finite = true;
    if (AppendBySample(values, size, k, first, places, &finite)) return true;
    if (!finite) return false;
  }
  const std::uint32_t largest = MagnitudeOf(kernels.reduce.max_abs(values, size));
  if (largest >= kInfiniteMagnitude) return false;
  if (k == 1) {
    std::size_t place = 0;
    while (MagnitudeOf(values[place]) != largest) ++place;
    places->push_back(first + static_cast<std::uint32_t>(place));
    return true;
  }
  RankedMagnitude last;
  if (k < size) {
    magnitudes_.resize(std::max(magnitudes_.size(), size));
    for (std::size_t i = 0; i < size; ++i) magnitudes_[i] = MagnitudeOf(values[i]);
    last = KthLargest(magnitudes_.data(), size, k);
  } else {
    last = {.magnitude = 0, .larger = 0};  // all of them, zeros too
  }
  Taker taker(values, first, last, k);
  candidates_.resize(std::max(candidates_.size(), std::min(size, kElementsAtOnce)));
  for (std::size_t begin = 0; begin < size; begin += kElementsAtOnce) {
    const std::size_t stretch = std::min(kElementsAtOnce, size - begin);
    const std::size_t found =
        kernels.sparse.select(values + begin, stretch, last.magnitude,
                              first + static_cast<std::uint32_t>(begin), candidates_.data());
    const std::size_t taken = taker.Take(candidates_.data(), found, candidates_.data());
    places->insert(places->end(), candidates_.begin(),
                   candidates_.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  return true;
}

bool FindLargest(const float* values, const CodecShape& shape, double ratio,
                 std::vector<std::uint32_t>* places) {
  const std::uint64_t group = GroupElements(shape, 0);
  places->reserve(CountOfRatio(ratio, shape));
  PlaceFinder finder;
  for (std::uint64_t begin = 0; begin < shape.elements; begin += group) {
    const std::uint64_t size = std::min(group, shape.elements - begin);
    if (!finder.AppendLargest(values + begin, size, CountOfRatio(ratio, size),
                              static_cast<std::uint32_t>(begin), places)) {
      return false;
    }
  }
  return true;
}

}  // namespace leeway::compress
