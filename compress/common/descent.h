// A gradient descent with compressed gradients, for tests: does it arrive under a codec?
#ifndef LEEWAY_COMPRESS_COMMON_DESCENT_H_
#define LEEWAY_COMPRESS_COMMON_DESCENT_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"
#include "leeway/codec.h"
#include "runtime/base/random.h"

namespace leeway::compress {

enum class Sent {
  kGradients,              // as they are
  kCompressed,             // decoded from the codec's message
  kCompressedWithFeedback  // likewise, with error feedback
};

// Minimises ½ Σ hᵢ (xᵢ − x*ᵢ)², hᵢ from 0.5 to 1.5, from x = 0. To each gradient noise ±20 is
// added, which changes its sign from step to step: it is far larger than the gradients, and its
// mean is 0. Returns the largest |xᵢ − x*ᵢ| in the end; in the beginning it is above 2.
inline double DistanceAfterDescent(const Codec& codec, Sent sent) {
  constexpr std::size_t kSize = 128;
  constexpr int kSteps = 4000;
  std::vector<float> x(kSize), minimum(kSize), carried(kSize), update(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    minimum[i] = static_cast<float>(runtime::NormalAt(3, 0, i));
  }
  const CodecShape shape = {.elements = kSize, .columns = kSize};
  std::vector<float> state(codec.StateElements(shape));
  std::vector<std::byte> out(codec.EncodedBytesMax(shape));
  for (int step = 0; step < kSteps; ++step) {
    const float rate = 1 / (10 + 0.2f * static_cast<float>(step));
    for (std::size_t i = 0; i < kSize; ++i) {
      const float curvature = 0.5f + static_cast<float>(i) / kSize;
      const float noise = (static_cast<std::size_t>(step) + i / 3) % 2 == 0 ? 20 : -20;
      const float scaled = rate * (curvature * (x[i] - minimum[i]) + noise);
      carried[i] = sent == Sent::kCompressedWithFeedback ? carried[i] + scaled : scaled;
    }
    update = carried;
    if (sent != Sent::kGradients) {
      const auto index = static_cast<std::uint64_t>(step);
      const auto bytes = codec.EncodeAndSubtract(
          carried.data(), {.shape = shape, .seed = index, .step = index, .state = state}, out);
      EXPECT_TRUE(bytes.ok()) << bytes.status();
      if (!bytes.ok()) return INFINITY;
      EXPECT_TRUE(codec.Decode(std::span(out).first(*bytes), shape, update.data()).ok());
    }
    for (std::size_t i = 0; i < kSize; ++i) x[i] -= update[i];
  }
  double distance = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    distance = std::max(distance, std::abs(static_cast<double>(x[i] - minimum[i])));
  }
  return distance;
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_DESCENT_H_
