// ScaledBytes is a codec that writes each element as one byte, times a scale that its group shares;
// a Format (fp8, int8) decides what a byte means.
//
// Message: the format's tag; 2 bytes, elements in a group less one; every group's scale; every
// element's byte. Where rows are separate, each row is a group and the number in front is ignored.
#ifndef LEEWAY_COMPRESS_COMMON_SCALED_BYTES_H_
#define LEEWAY_COMPRESS_COMMON_SCALED_BYTES_H_

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {

inline constexpr std::uint64_t kScaledGroupMin = 16;
inline constexpr std::uint64_t kScaledGroupMax = 65536;

inline NumberOption ScaledGroupOption(double* group) {
  return {.name = "group",
          .value = group,
          .low = kScaledGroupMin,
          .high = kScaledGroupMax,
          .whole = true};
}

// The members of a Format:
//   kName, kTagBytes; Stored, a scale in the message
//   void PutTag(ByteWriter*) const       and   static bool TakeTag(ByteReader*, Format*)
//   Stored Choose(float largest) const   the scale for finite values of that largest magnitude
//   bool IsScale(Stored) const           and   float ScaleOf(Stored) const
//   bool AreCodes(codes, size) const     true if all of them may occur in a message
//   Encode(values, size, scale, key, to), EncodeAndSubtract(carried, size, scale, key, to),
//   Decode(codes, size, scale, values), DecodeAdd(codes, size, scale, factor, sum), all const.
// `key` is random, and different for each group.
template <class Format>
class ScaledBytes final : public FloatCodec {
 public:
  ScaledBytes(Format format, std::uint64_t group) : format_(format), group_(group) {}

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    const std::uint64_t groups = NumGroups(shape.elements, GroupElements(shape, group_));
    return Format::kTagBytes + sizeof(std::uint16_t) + groups * sizeof(Stored) + shape.elements;
  }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    const auto* const from = static_cast<const float*>(values);
    return Write(from, terms, out,
                 [&](std::uint64_t begin, std::uint64_t size, float scale, std::uint64_t key,
                     std::byte* to) { format_.Encode(from + begin, size, scale, key, to); });
  }

  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    return Write(
        carried, terms, out,
        [&](std::uint64_t begin, std::uint64_t size, float scale, std::uint64_t key,
            std::byte* to) { format_.EncodeAndSubtract(carried + begin, size, scale, key, to); });
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return Read(encoded, shape).status();
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Message message, Read(encoded, shape));
    auto* const to = static_cast<float*>(values);
    for (std::uint64_t g = 0, i = 0; i < shape.elements; ++g, i += message.group) {
      message.format.Decode(message.codes + i, std::min(message.group, shape.elements - i),
                            message.format.ScaleOf(StoredAt(message.scales, g)), to + i);
    }
    return absl::OkStatus();
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Message message, Read(encoded, shape));
    for (std::uint64_t g = 0, i = 0; i < shape.elements; ++g, i += message.group) {
      message.format.DecodeAdd(message.codes + i, std::min(message.group, shape.elements - i),
                               message.format.ScaleOf(StoredAt(message.scales, g)), factor,
                               sum + i);
    }
    return absl::OkStatus();
  }

 private:
  using Stored = typename Format::Stored;

  struct Message {
    Format format;
    std::uint64_t group = 0;
    const std::byte* scales = nullptr;
    const std::byte* codes = nullptr;
  };

  static Stored StoredAt(const std::byte* scales, std::uint64_t g) {
    Stored stored;
    std::memcpy(&stored, scales + g * sizeof(Stored), sizeof(stored));
    return stored;
  }

  // Chooses all scales first: values that cannot be carried are found before any value changes.
  template <class EncodeGroup>
  absl::StatusOr<std::size_t> Write(const float* values, const EncodeTerms& terms,
                                    std::span<std::byte> out, EncodeGroup encode_group) const {
    const std::uint64_t elements = terms.shape.elements;
    const std::uint64_t group = GroupElements(terms.shape, group_);
    ByteWriter writer(out);
    format_.PutTag(&writer);
    writer.Put(static_cast<std::uint16_t>(group_ - 1));
    const std::byte* const scales = writer.Skip(0);
    for (std::uint64_t i = 0; i < elements; i += group) {
      const std::uint64_t size = std::min(group, elements - i);
      const float largest = ChosenKernels().reduce.max_abs(values + i, size);
      if (!std::isfinite(largest)) return NotFinite(Format::kName);
      writer.Put(format_.Choose(largest));
    }
    for (std::uint64_t g = 0, i = 0; i < elements; ++g, i += group) {
      const std::uint64_t size = std::min(group, elements - i);
      encode_group(i, size, format_.ScaleOf(StoredAt(scales, g)),
                   runtime::RandomAt(terms.seed, /*stream=*/0, g), writer.Skip(size));
    }
    return writer.size();
  }

  static absl::StatusOr<Message> Read(std::span<const std::byte> encoded, const CodecShape& shape) {
    ByteReader reader(encoded);
    Message message;
    std::uint16_t group_less_one = 0;
    if (!Format::TakeTag(&reader, &message.format) || !reader.Take(&group_less_one)) {
      return Malformed(Format::kName, "it begins with no known format and group");
    }
    const std::uint64_t group = std::uint64_t{group_less_one} + 1;
    if (group < kScaledGroupMin) return Malformed(Format::kName, "groups of ", group, " elements");
    message.group = GroupElements(shape, group);
    const std::uint64_t groups = NumGroups(shape.elements, message.group);
    if (reader.left() != groups * sizeof(Stored) + shape.elements) {
      return Malformed(Format::kName, encoded.size(), " bytes are not ", shape.elements,
                       " elements in ", groups, " groups");
    }
    message.scales = reader.Skip(groups * sizeof(Stored));
    message.codes = reader.Skip(shape.elements);
    for (std::uint64_t g = 0; g < groups; ++g) {
      if (!message.format.IsScale(StoredAt(message.scales, g))) {
        return Malformed(Format::kName, "the scale of group ", g, " is out of range");
      }
    }
    if (!message.format.AreCodes(message.codes, shape.elements)) {
      return Malformed(Format::kName, "a byte is no finite number");
    }
    return message;
  }

  Format format_;
  std::uint64_t group_;
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_SCALED_BYTES_H_
