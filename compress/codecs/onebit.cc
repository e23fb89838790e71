// onebit: the sign of each element, and one scale for a group of elements, their mean magnitude.
//
//   C(v) = (‖v‖₁ / d) · sign(v),  d elements in v
//
// Karimireddy et al., "Error feedback fixes SignSGD and other gradient compression schemes", arXiv
// 1901.09847, algorithm 1 (EF-signSGD); Zheng et al., "Communication-efficient distributed
// blockwise momentum SGD with error feedback", NeurIPS 2019, algorithm 3, whose blocks are groups
// here. The codec is biased: without error feedback training may stop far from a minimum.
//
// Message: that of groups.h with 1 bit for each element, its sign bit: 1 gives −scale, 0 gives
// +scale. An element of 0 becomes ±scale by its sign, so that only a group of zeros stays 0. For a
// whole block of 131072 elements it has 6 + 16384 bytes.
//
// Options: group (0), elements that share a scale: 0 for the whole message, or a multiple of 8 up
// to 2^18. Separate rows share none: each has one, or one for each `group` of its elements.
//
// NaN and infinity are refused. The scale is summed up as ReduceKernels::sum_abs does it, divided
// in double and rounded to float. If that overflows though all values are finite, the sum is made
// in double, one element after the other.
#include <algorithm>
#include <cmath>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/groups.h"
#include "compress/common/one_pass_feedback.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr absl::string_view kOnebitName = "onebit";
constexpr int kBits = 1;
// Values that are read twice are read in pieces that stay in the first-level cache. A piece is
// a multiple of the stretch that sum_abs sums up in float, so that the sum is the same.
constexpr std::size_t kSignsAtOnce = 4096;

class OneBit final : public FloatCodec, public OnePassFeedback {
 public:
  explicit OneBit(std::uint64_t group) : group_(group) {}

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return Groups(shape, group_, kBits).MessageBytes();
  }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    if (terms.shape.elements == 0) return 0;
    ByteWriter writer(out);
    GroupWriter message(terms.shape, group_, kBits, &writer);
    LEEWAY_RETURN_IF_ERROR(Write(static_cast<const float*>(values), &message));
    return writer.size();
  }

  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    if (terms.shape.elements == 0) return 0;
    ByteWriter writer(out);
    GroupWriter message(terms.shape, group_, kBits, &writer);
    LEEWAY_RETURN_IF_ERROR(Write(carried, &message));
    const SignKernels& sign = ChosenKernels().sign;
    const Groups& groups = message.groups();
    for (std::size_t g = 0; g < groups.count(); ++g) {
      sign.shrink(carried + groups.First(g), groups.Elements(g), message.Scale(g));
    }
    return writer.size();
  }

  absl::StatusOr<std::size_t> CarryAndEncode(const Terms& carry, const EncodeTerms& terms,
                                             std::span<std::byte> out) const override {
    if (terms.shape.elements == 0) return 0;
    ByteWriter writer(out);
    GroupWriter message(terms.shape, group_, kBits, &writer);
    const std::size_t count = message.groups().count();
    if (carry.sent.empty()) {
      for (std::size_t g = 0; g < count; ++g) {
        LEEWAY_RETURN_IF_ERROR(CarryGroup(carry, g, ChosenKernels().reduce.carry, &message));
      }
      return writer.size();
    }
    ByteReader reader(carry.sent);
    LEEWAY_ASSIGN_OR_RETURN(const GroupReader sent,
                            GroupReader::Of(kOnebitName, terms.shape, kBits, &reader));
    if (sent.groups().count() != count) return Malformed(kOnebitName, "other groups than before");
    for (std::size_t g = 0; g < count; ++g) {
      const auto shrink_and_carry = [scale = sent.Scale(g)](const float* values, const float* kept,
                                                            std::size_t size, float factor,
                                                            float* to) {
        return ChosenKernels().sign.carry(values, kept, size, scale, factor, to);
      };
      LEEWAY_RETURN_IF_ERROR(CarryGroup(carry, g, shrink_and_carry, &message));
    }
    return writer.size();
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return Walk(encoded, shape, [](const std::uint8_t*, std::size_t, std::size_t, float) {});
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    float* const to = static_cast<float*>(values);
    return Walk(encoded, shape,
                [to, spread = ChosenKernels().sign.spread](
                    const std::uint8_t* bits, std::size_t first, std::size_t size, float scale) {
                  spread(bits, size, scale, to + first);
                });
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    return Walk(encoded, shape,
                [sum, factor, add = ChosenKernels().sign.add](
                    const std::uint8_t* bits, std::size_t first, std::size_t size, float scale) {
                  add(bits, size, factor * scale, sum + first);
                });
  }

 private:
  static absl::Status Write(const float* values, GroupWriter* message) {
    const Groups& groups = message->groups();
    for (std::size_t g = 0; g < groups.count(); ++g) {
      const float* const from = values + groups.First(g);
      const std::size_t size = groups.Elements(g);
      double sum = SumAndSigns(from, size, message->Codes(g));
      if (!std::isfinite(sum)) {
        if (!std::isfinite(ChosenKernels().reduce.max_abs(from, size)))
          return NotFinite(kOnebitName);
        sum = SumInDouble(from, size);
      }
      message->PutScale(g, static_cast<float>(sum / static_cast<double>(size)));
    }
    return absl::OkStatus();
  }

  // A group of CarryAndEncode: sums up the carried values of each piece and takes their signs while
  // the piece is in the first-level cache. A group whose sum overflows is left to Write.
  template <class CarryPiece>
  static absl::Status CarryGroup(const Terms& carry, std::size_t g, const CarryPiece& carry_piece,
                                 GroupWriter* message) {
    const std::size_t first = message->groups().First(g), size = message->groups().Elements(g);
    double sum = 0;
    for (std::size_t i = 0; i < size; i += kSignsAtOnce) {
      const std::size_t piece = std::min(kSignsAtOnce, size - i), at = first + i;
      float* const to = carry.carried + at;
      const float largest =
          carry_piece(carry.values + at, carry.kept + at, piece, carry.factor, to);
      if (!std::isfinite(largest)) return NotFinite(kOnebitName);
      sum += SumAndSigns(to, piece, message->Codes(g) + i / 8);
    }
    if (!std::isfinite(sum)) return NotFinite(kOnebitName);
    message->PutScale(g, static_cast<float>(sum / static_cast<double>(size)));
    return absl::OkStatus();
  }

  static double SumAndSigns(const float* values, std::size_t size, std::uint8_t* bits) {
    const Kernels& kernels = ChosenKernels();
    double sum = 0;
    for (std::size_t i = 0; i < size; i += kSignsAtOnce) {
      const std::size_t piece = std::min(kSignsAtOnce, size - i);
      sum += kernels.reduce.sum_abs(values + i, piece);
      kernels.sign.take(values + i, piece, bits + i / 8);
    }
    return sum;
  }

  static double SumInDouble(const float* values, std::size_t size) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += std::abs(static_cast<double>(values[i]));
    return sum;
  }

  // Calls group(bits, first element, elements, scale) for each group.
  template <class Group>
  static absl::Status Walk(std::span<const std::byte> encoded, const CodecShape& shape,
                           const Group& group) {
    if (shape.elements == 0) return CheckNothing(kOnebitName, encoded);
    ByteReader reader(encoded);
    LEEWAY_ASSIGN_OR_RETURN(const GroupReader message,
                            GroupReader::Of(kOnebitName, shape, kBits, &reader));
    const Groups& groups = message.groups();
    for (std::size_t g = 0; g < groups.count(); ++g) {
      group(message.Codes(g), groups.First(g), groups.Elements(g), message.Scale(g));
    }
    return absl::OkStatus();
  }

  std::uint64_t group_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeOneBit(const CodecOptions& options) {
  double group = 0;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(kOnebitName, options, {GroupOption(&group)}));
  LEEWAY_RETURN_IF_ERROR(CheckGroupOption(kOnebitName, group));
  return std::make_unique<OneBit>(static_cast<std::uint64_t>(group));
}

}  // namespace

CodecList OneBitCodecs() { return {{"onebit", MakeOneBit}}; }

}  // namespace leeway::compress
