// dgc: Deep Gradient Compression: momentum and accumulation before the sparsification, with state
// of its own.
//
//   Lin, Han, Mao, Wang and Dally 2018, arXiv 1712.01887, algorithm 4 (with equations 4 and 5).
//   With the gradient g, clipped to the L2 norm `clip`:
//     u = m u + g        momentum correction
//     v = v + u          local accumulation
//     the k largest magnitudes of v are sent; there u = 0 and v = 0 (momentum factor masking)
//   k = max(1, ceil(r × n)) of the n elements of a message. r is RATIO, but in the first `warmup`
//   messages it falls exponentially from 0.25: 0.25 (RATIO / 0.25)^(step / warmup), if RATIO is
//   less than 0.25. The algorithm's Nesterov form is left out. u and v are clamped to the largest
//   finite number.
//
// The codec itself keeps what it does not send, in EncodeTerms::state: u, then v, n floats each.
// Encode gets the gradient, and EncodeAndSubtract leaves zeros in `carried`: the caller has nothing
// to carry. So the messages do not add up to the gradients but, with momentum, to about 1 / (1 − m)
// times as much, as with plain momentum SGD: the table's updater should have no momentum.
//
// Options: RATIO (default 0.01, above 0 and at most 1); momentum = m (default 0.9, from 0 to below
// 1); clip (default 0: off; up to 1e30), the largest L2 norm of a message's gradient: for N workers
// give the paper's N^(-1/2) times the threshold; warmup (default 0, whole, up to 1e9), in messages.
// Message: compress/sparse/sparse_message.h.
// NaN and infinity are refused, and the state is unchanged. A state that holds either, which no
// call here can have left, is refused too. Limits: 2^32 − 1 elements in a message; no separate
// rows, since it has state. DecodeAdd leaves a −0 where nothing was sent.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "compress/codecs/builtin.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "compress/sparse/largest.h"
#include "compress/sparse/rms.h"
#include "compress/sparse/sparse_message.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr double kWarmupRatio = 0.25;

// base^exponent for an exponent in [0, 1], by square roots, which every machine rounds alike.
double PowerByRoots(double base, double exponent) {
  double power = 1;
  for (int bit = 0; bit < 40 && exponent > 0; ++bit) {
    if (exponent >= 1) {
      power *= base;
      exponent -= 1;
    }
    base = std::sqrt(base);
    exponent *= 2;
  }
  return power;
}

struct DgcOptions {
  double ratio = 0.01;
  double momentum = 0.9;
  double clip = 0;
  double warmup = 0;
};

class Dgc final : public SparseCodec {
 public:
  explicit Dgc(const DgcOptions& options) : SparseCodec("dgc"), options_(options) {}

  bool keeps_residual() const override { return true; }
  std::size_t StateElements(const CodecShape& shape) const override { return 2 * shape.elements; }
  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    // The first message is the longest, since the ratio never rises.
    return SparseMessageBytes(shape.elements, CountOfRatio(RatioAt(0), shape.elements), kFormat);
  }
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    LEEWAY_RETURN_IF_ERROR(CheckTerms(terms));
    const std::uint64_t size = terms.shape.elements;
    if (size == 0) return 0;
    const float* const gradient = static_cast<const float*>(values);
    const Kernels& kernels = ChosenKernels();
    if (!std::isfinite(kernels.reduce.max_abs(gradient, size))) return NotFinite(name());
    const float factor = ClipFactor(gradient, size);
    float* const velocity = terms.state.data();
    float* const sum = velocity + size;
    kernels.sparse.accumulate(gradient, size, factor, static_cast<float>(options_.momentum),
                              velocity, sum);
    std::vector<std::uint32_t> places;
    if (!FindLargest(sum, {.elements = size}, RatioAt(terms.step), &places)) {
      return absl::InvalidArgumentError("codec dgc: its state holds NaN or infinity");
    }
    const std::size_t bytes = WriteSparseMessage(places, sum, size, kFormat, out);
    for (const std::uint32_t place : places) velocity[place] = sum[place] = 0;
    return bytes;
  }
  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    LEEWAY_ASSIGN_OR_RETURN(const std::size_t bytes, Encode(carried, terms, out));
    std::fill_n(carried, terms.shape.elements, 0.0f);
    return bytes;
  }
  // v = v + message − g; u = u − mᵏ g where nothing was sent. Where it was sent, u is lost: it was
  // masked.
  void TakeBack(const float* sent, const float* values, std::uint64_t later,
                const EncodeTerms& terms) const override {
    const std::uint64_t size = terms.shape.elements;
    if (terms.state.size() != StateElements(terms.shape)) return;
    float* const velocity = terms.state.data();
    const float factor = values == nullptr ? 0 : ClipFactor(values, size);
    const auto left = static_cast<float>(std::pow(options_.momentum, static_cast<double>(later)));
    for (std::uint64_t i = 0; i < size; ++i) {
      const float gradient = values == nullptr ? 0 : factor * values[i];
      const float sum = velocity[size + i] + (sent[i] - gradient);
      if (std::isfinite(sum)) velocity[size + i] = sum;
      if (sent[i] == 0) velocity[i] -= left * gradient;
    }
  }

 private:
  static constexpr SparseValues kFormat = SparseValues::kFloat32;

  float ClipFactor(const float* gradient, std::uint64_t size) const {
    if (options_.clip == 0) return 1;
    const double norm = std::sqrt(SumOfSquares(gradient, size));
    return norm > options_.clip ? static_cast<float>(options_.clip / norm) : 1;
  }
  double RatioAt(std::uint64_t step) const {
    const auto messages = static_cast<double>(step);
    if (messages >= options_.warmup || options_.ratio >= kWarmupRatio) return options_.ratio;
    return kWarmupRatio * PowerByRoots(options_.ratio / kWarmupRatio, messages / options_.warmup);
  }

  absl::Status CheckTerms(const EncodeTerms& terms) const {
    LEEWAY_RETURN_IF_ERROR(CheckElements(terms.shape));
    if (terms.shape.separate_rows) {
      return absl::InvalidArgumentError(
          "codec dgc has a state, and rows of sparse tables have none");
    }
    if (terms.state.size() == StateElements(terms.shape)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("codec dgc: a state of ", terms.state.size(),
                                                   " floats instead of ",
                                                   StateElements(terms.shape)));
  }

  DgcOptions options_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeDgc(const CodecOptions& options) {
  DgcOptions read;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(
      "dgc", options,
      {{.name = "", .what = "ratio", .value = &read.ratio, .low = 0, .high = 1, .low_open = true},
       {.name = "momentum", .value = &read.momentum, .low = 0, .high = 0x1.fffffep-1},
       {.name = "clip", .value = &read.clip, .low = 0, .high = 1e30},
       {.name = "warmup", .value = &read.warmup, .low = 0, .high = 1e9, .whole = true}}));
  return std::make_unique<Dgc>(read);
}

}  // namespace

CodecList DgcCodecs() { return {{"dgc", MakeDgc}}; }

}  // namespace leeway::compress
