// Dithering is the common part of the codecs ternary and qsgd: it rounds each element at random to
// one of the two levels of its group's scale around it, so that the mean over many seeds is the
// element.
//
// Message:
//
//   1 byte  bits of an element, 2 to 8; + 128: the levels are natural
//   then that of groups.h: the size of groups, their scales, and for each element the bits of its
//   level, 0 to s = 2^(bits−1) − 1, and above them its sign, 1 for negative. Uniform level k has
//   the value k / s · scale, natural level k > 0 the value 2^(k−s) · scale, and level 0 is 0.
//
// Every such message whose scales are finite and not negative is well-formed. The random number of
// an element depends on the seed, the step and the number of the element in the message.
// element comes from the seed, the step and the number of the element in the message.
#ifndef LEEWAY_COMPRESS_COMMON_DITHERING_H_
#define LEEWAY_COMPRESS_COMMON_DITHERING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compress/common/float_codec.h"
#include "compress/common/groups.h"
#include "compress/kernels/kernels.h"

namespace leeway::compress {

struct DitheringOptions {
  int bits = 2;
  bool natural = false;
  std::uint64_t group = 0;
  // The scale: the largest magnitude, or the Euclidean norm, but never more than the largest float.
  bool euclidean = false;
  // More than 0: the scale is at most `clip` times the root of the mean square, and larger elements
  // are sent as the scale.
  double clip = 0;
  // True: once the levels have been drawn, the scale sent is the one with the smallest remainder
  // (least squares), instead of the one that they were drawn with. The mean over many seeds is then
  // no longer the element. Levels are 0 and 1 only: `bits` is 2.
  bool fit = false;
};

class Dithering final : public FloatCodec {
 public:
  Dithering(absl::string_view name, const DitheringOptions& options)
      : name_(name), options_(options) {}

  // A fitted scale: always, since the decoded values are a projection. One level: not, since for
  // normally distributed elements in groups of 512 the variance is 1.6 times their squares. Under
  // the Euclidean norm: if the lowest level is below the norm over the root of the group (QSGD,
  // Lemma 3.1: the variance is at most √n/s of the square of the norm).
  bool contracts() const override;

  std::size_t EncodedBytesMax(const CodecShape& shape) const override;
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override;
  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override;
  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override;
  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override;
  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override;

 private:
  const LevelKernels& Kernel() const;
  absl::Status PutScale(const float* values, std::size_t g, GroupWriter* message) const;
  // Packs the group's codes, and replaces its scale if the scale is fitted.
  void PutGroup(const float* values, std::uint64_t key, std::size_t g, GroupWriter* message) const;
  // Calls piece(codes, first element, elements) for all pieces of a group that has been packed.
  template <class Piece>
  void WalkGroup(std::size_t g, const GroupWriter& message, const Piece& piece) const;
  // Calls piece(kernels, codes, first element, elements, scale, bits) for all pieces of a message.
  template <class Piece>
  absl::Status Walk(std::span<const std::byte> encoded, const CodecShape& shape,
                    const Piece& piece) const;

  absl::string_view name_;  // a literal
  DitheringOptions options_;
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_DITHERING_H_
