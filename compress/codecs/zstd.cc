// zstd: elements of every type, split into planes of bytes of equal significance, each plane
// compressed with Zstandard (RFC 8878). Lossless.
//
// A float's sign and exponent repeat, its lower bytes hardly do: in planes of their own the former
// shrink, and the latter, which do not, cost only a copy.
//
// Message: blocks of 131072 elements, the last may be shorter; of each, for every byte of an
// element from the least significant one:
//     4 bytes     n, bytes of the plane in the message
//     n bytes     the plane: as it is where n is as many bytes as the block has elements; otherwise
//                 fewer, one Zstandard frame that declares that content size
// A plane of 131072 bytes is as much as Zstandard compresses at once with one set of codes.
//
// Options: level=1, Zstandard's, 1 to 19.
// NaN and infinity pass, bit by bit; error feedback has nothing to do.
// Limits: which bytes a message has depends on the version of the library that writes it; all
// versions read it. Each thread that encodes or decodes keeps Zstandard's working memory (some
// 100 KiB at level 1, some MiB at high ones).
#include <algorithm>
#include <cstring>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/options.h"
#include "compress/common/planes.h"
#include "compress/common/zstd_frames.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr std::uint64_t kBlockElements = 131072;
constexpr std::size_t kSizeBytes = sizeof(std::uint32_t);

std::size_t PlaneBytesMax(const CodecShape& shape) {
  return static_cast<std::size_t>(std::min(shape.elements, kBlockElements));
}

class Zstd final : public Codec {
 public:
  explicit Zstd(int level) : level_(level) {}

  bool Supports(DType) const override { return true; }
  bool lossless() const override { return true; }

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    const std::size_t width = SizeOf(shape.dtype);
    return NumGroups(shape.elements, kBlockElements) * width * kSizeBytes + shape.elements * width;
  }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    const CodecShape& shape = terms.shape;
    const std::size_t width = SizeOf(shape.dtype);
    const auto* from = static_cast<const std::byte*>(values);
    const auto split = std::make_unique_for_overwrite<std::byte[]>(PlaneBytesMax(shape) * width);
    ByteWriter writer(out);
    for (std::uint64_t i = 0; i < shape.elements; i += kBlockElements) {
      const auto size = static_cast<std::size_t>(std::min(kBlockElements, shape.elements - i));
      SplitPlanes(from + i * width, size, width, split.get());
      for (std::size_t p = 0; p < width; ++p) WritePlane(split.get() + p * size, size, &writer);
    }
    return writer.size();
  }

  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    LEEWAY_ASSIGN_OR_RETURN(const std::size_t bytes, Encode(carried, terms, out));
    std::fill_n(carried, terms.shape.elements, 0.0f);
    return bytes;
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return ReadBlocks(encoded, shape, [](std::uint64_t, std::size_t, const std::byte* const*) {});
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    const std::size_t width = SizeOf(shape.dtype);
    auto* const to = static_cast<std::byte*>(values);
    return ReadBlocks(encoded, shape,
                      [&](std::uint64_t begin, std::size_t size, const std::byte* const* planes) {
                        JoinPlanes(planes, size, width, to + begin * width);
                      });
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    return ReadBlocks(encoded, shape,
                      [&](std::uint64_t begin, std::size_t size, const std::byte* const* planes) {
                        ChosenKernels().shuffle.join_add(planes, size, factor, sum + begin);
                      });
  }

 private:
  void WritePlane(const std::byte* plane, std::size_t size, ByteWriter* writer) const {
    std::byte* const size_at = writer->Skip(kSizeBytes);
    std::byte* const to = writer->Skip(0);
    // With less room than the plane itself: one that does not shrink does not fit.
    const std::size_t bytes = WriteZstdFrame({plane, size}, level_, {to, size - 1});
    const auto written = static_cast<std::uint32_t>(bytes > 0 ? bytes : size);
    if (bytes == 0) std::memcpy(to, plane, size);
    std::memcpy(size_at, &written, kSizeBytes);
    writer->Skip(written);
  }

  // Calls use(begin, size, planes) for each block, once all of its planes are unpacked.
  template <class Use>
  static absl::Status ReadBlocks(std::span<const std::byte> encoded, const CodecShape& shape,
                                 Use use) {
    const std::size_t width = SizeOf(shape.dtype);
    std::unique_ptr<std::byte[]> unpacked;  // the compressed planes of a block
    ByteReader reader(encoded);
    for (std::uint64_t i = 0; i < shape.elements; i += kBlockElements) {
      const auto size = static_cast<std::size_t>(std::min(kBlockElements, shape.elements - i));
      const std::byte* planes[kPlanesMax] = {};
      for (std::size_t p = 0; p < width; ++p) {
        std::uint32_t bytes = 0;
        const std::byte* plane = nullptr;
        if (!reader.Take(&bytes) || (plane = reader.Skip(bytes)) == nullptr) {
          return Malformed("zstd", encoded.size(), " bytes are too few");
        }
        if (bytes == size) {
          planes[p] = plane;
          continue;
        }
        if (bytes > size) return Malformed("zstd", bytes, " bytes for ", size, " of them");
        if (unpacked == nullptr) {
          unpacked = std::make_unique_for_overwrite<std::byte[]>(PlaneBytesMax(shape) * width);
        }
        LEEWAY_RETURN_IF_ERROR(
            ReadZstdFrame("zstd", {plane, bytes}, {unpacked.get() + p * size, size}));
        planes[p] = unpacked.get() + p * size;
      }
      use(i, size, planes);
    }
    if (reader.left() > 0) return Malformed("zstd", reader.left(), " bytes too many");
    return absl::OkStatus();
  }

  int level_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeZstd(const CodecOptions& options) {
  double level = 1;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(
      "zstd", options, {{.name = "level", .value = &level, .low = 1, .high = 19, .whole = true}}));
  return std::make_unique<Zstd>(static_cast<int>(level));
}

}  // namespace

CodecList ZstdCodecs() { return {{"zstd", MakeZstd}}; }

}  // namespace leeway::compress
