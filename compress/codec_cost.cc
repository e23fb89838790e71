#include "compress/codec_cost.h"

#include <algorithm>
#include <vector>

#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr int kRounds = 3;

}  // namespace

absl::StatusOr<CodecSpeed> MeasureCodec(const Codec& codec, const CodecShape& shape,
                                        std::span<const std::byte> values,
                                        const std::function<absl::Time()>& now) {
  std::vector<std::byte> encoded(codec.EncodedBytesMax(shape));
  std::vector<std::byte> decoded(values.size());
  std::vector<float> state(codec.StateElements(shape));
  absl::Duration fastest = absl::InfiniteDuration();
  CodecSpeed speed;
  for (int round = 0; round < kRounds; ++round) {
    EncodeTerms terms{.shape = shape, .seed = 1, .step = static_cast<std::uint64_t>(round)};
    terms.state = state;
    const absl::Time start = now();
    LEEWAY_ASSIGN_OR_RETURN(const std::size_t bytes, codec.Encode(values.data(), terms, encoded));
    LEEWAY_RETURN_IF_ERROR(codec.Decode(std::span(encoded).first(bytes), shape, decoded.data()));
    fastest = std::min(fastest, now() - start);
    speed.ratio = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(values.size()));
  }
  speed.code_seconds_per_byte = absl::ToDoubleSeconds(fastest) / static_cast<double>(values.size());
  return speed;
}

double NanosecondsPerByte(const CodecSpeed& speed, double link_bytes_per_s) {
  return kHandlingNanosecondsPerByte +
         1e9 * (speed.code_seconds_per_byte + speed.ratio / link_bytes_per_s);
}

std::uint32_t ChooseCodec(std::span<const double> costs, std::span<const bool> lossy,
                          std::uint32_t present) {
  std::uint32_t best[2] = {present, present};  // lossless, lossy
  bool found[2] = {false, false};
  for (std::uint32_t i = 0; i < costs.size(); ++i) {
    const int kind = lossy[i] ? 1 : 0;
    if (!found[kind] || costs[i] < costs[best[kind]]) best[kind] = i;
    found[kind] = true;
  }
  if (!found[0] || !found[1]) {  // all are lossless, or all lossy
    const std::uint32_t only = best[found[0] ? 0 : 1];
    return costs[only] * kLosslessGain < costs[present] ? only : present;
  }
  const double gain = costs[best[0]] / costs[best[1]];
  if (lossy[present]) {
    if (gain < kLossyKeepGain) return best[0];
    return costs[best[1]] * kLosslessGain < costs[present] ? best[1] : present;
  }
  if (gain > kLossyGain) return best[1];
  return costs[best[0]] * kLosslessGain < costs[present] ? best[0] : present;
}

}  // namespace leeway::compress
