// threshold: the elements whose magnitude reaches a threshold, as they are, and zero for all
// others.
//
//   Strom 2015 ("Scalable distributed DNN training using commodity GPU cloud computing",
//   Interspeech), section 3: |v| >= T is sent and the rest is carried. There each sent value
//   becomes ±T; here it is the value itself. A zero is never sent.
//
// Options: T (default 0.001, above 0 and at most 1e30); relative=1: T times the root mean square of
// the message, or of each row where rows are separate, is the threshold (default 0: T itself).
// Message: compress/sparse/sparse_message.h; with many sent elements it is a bitmap or all the
// values, so that it is at most a byte longer than the values. NaN and infinity are refused.
// Limits: 2^32 − 1 elements in a message. DecodeAdd leaves a −0 where nothing was sent.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "compress/codecs/builtin.h"
#include "compress/common/options.h"
#include "compress/sparse/largest.h"
#include "compress/sparse/rms.h"
#include "compress/sparse/sparse_message.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

// The bits of the least magnitude that reaches the threshold; at least those of the smallest number
// above zero.
std::uint32_t LeastMagnitude(double threshold) {
  if (threshold > static_cast<double>(std::numeric_limits<float>::max())) return kInfiniteMagnitude;
  const auto nearest = static_cast<float>(threshold);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  return std::max<std::uint32_t>(1, static_cast<double>(nearest) < threshold ? bits + 1 : bits);
}

class Threshold final : public SparseCodec {
 public:
  Threshold(double threshold, bool relative)
      : SparseCodec("threshold"), threshold_(threshold), relative_(relative) {}

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return SparseMessageBytesMax(shape.elements, SparseValues::kFloat32);
  }
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    std::vector<std::uint32_t> places;
    const float* const from = static_cast<const float*>(values);
    LEEWAY_RETURN_IF_ERROR(Find(from, terms.shape, &places));
    return WriteSparseMessage(places, from, terms.shape.elements, SparseValues::kFloat32, out);
  }
  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    std::vector<std::uint32_t> places;
    LEEWAY_RETURN_IF_ERROR(Find(carried, terms.shape, &places));
    const std::size_t bytes =
        WriteSparseMessage(places, carried, terms.shape.elements, SparseValues::kFloat32, out);
    SubtractSent(places, SparseValues::kFloat32, carried);
    return bytes;
  }

 private:
  absl::Status Find(const float* values, const CodecShape& shape,
                    std::vector<std::uint32_t>* places) const {
    LEEWAY_RETURN_IF_ERROR(CheckElements(shape));
    PlaceFinder finder;
    const std::uint64_t group = relative_ ? GroupElements(shape, 0) : shape.elements;
    for (std::uint64_t begin = 0; begin < shape.elements; begin += group) {
      const std::uint64_t size = std::min(group, shape.elements - begin);
      double threshold = threshold_;
      if (relative_) {
        const double squares = SumOfSquares(values + begin, size);
        if (!std::isfinite(squares)) return NotFinite(name());
        threshold *= std::sqrt(squares / static_cast<double>(size));
      }
      if (!finder.AppendAtLeast(values + begin, size, LeastMagnitude(threshold),
                                static_cast<std::uint32_t>(begin), places)) {
        return NotFinite(name());
      }
    }
    return absl::OkStatus();
  }

  double threshold_;
  bool relative_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeThreshold(const CodecOptions& options) {
  double threshold = 1e-3, relative = 0;
  LEEWAY_RETURN_IF_ERROR(
      ReadOptions("threshold", options,
                  {{.name = "",
                    .what = "threshold",
                    .value = &threshold,
                    .low = 0,
                    .high = 1e30,
                    .low_open = true},
                   {.name = "relative", .value = &relative, .low = 0, .high = 1, .whole = true}}));
  return std::make_unique<Threshold>(threshold, relative != 0);
}

}  // namespace

CodecList ThresholdCodecs() { return {{"threshold", MakeThreshold}}; }

}  // namespace leeway::compress
