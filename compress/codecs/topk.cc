// topk: the elements of the largest magnitudes, exactly k of them, and zero for all others.
//
//   k = max(1, ceil(RATIO × n)) of the n elements of a message, or of each row where rows are
//   separate; of equal magnitudes those at the lower places. (Aji and Heafield 2017, arXiv
//   1704.05021, section 3, with a count instead of a sampled threshold; error feedback by Stich,
//   Cordonnier and Jaggi 2018, arXiv 1809.07599, definition 2.1 and algorithm 1.)
//
// Options: RATIO (default 0.01, above 0 and at most 1); values=fp32 or values=fp16 (default fp32),
// the format of sent values. fp16 rounds to nearest and clamps magnitudes to 65504; error feedback
// keeps the difference.
// Message: compress/sparse/sparse_message.h. At 1 % that is 1.07 bytes for a place and 4 for its
// value. NaN and infinity anywhere in the message are refused. Limits: 2^32 − 1 elements in a
// message. DecodeAdd leaves a −0 where nothing was sent.
#include <memory>
#include <vector>

#include "compress/codecs/builtin.h"
#include "compress/common/options.h"
#include "compress/sparse/largest.h"
#include "compress/sparse/sparse_message.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

class TopK final : public SparseCodec {
 public:
  TopK(double ratio, SparseValues format) : SparseCodec("topk"), ratio_(ratio), format_(format) {}

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return SparseMessageBytes(shape.elements, CountOfRatio(ratio_, shape), format_);
  }
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    std::vector<std::uint32_t> places;
    const float* const from = static_cast<const float*>(values);
    LEEWAY_RETURN_IF_ERROR(Find(from, terms.shape, &places));
    return WriteSparseMessage(places, from, terms.shape.elements, format_, out);
  }
  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    std::vector<std::uint32_t> places;
    LEEWAY_RETURN_IF_ERROR(Find(carried, terms.shape, &places));
    const std::size_t bytes =
        WriteSparseMessage(places, carried, terms.shape.elements, format_, out);
    SubtractSent(places, format_, carried);
    return bytes;
  }

 private:
  absl::Status Find(const float* values, const CodecShape& shape,
                    std::vector<std::uint32_t>* places) const {
    LEEWAY_RETURN_IF_ERROR(CheckElements(shape));
    if (FindLargest(values, shape, ratio_, places)) return absl::OkStatus();
    return NotFinite(name());
  }

  double ratio_;
  SparseValues format_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeTopK(const CodecOptions& options) {
  CodecOptions numbers = options;
  SparseValues format = SparseValues::kFloat32;
  LEEWAY_RETURN_IF_ERROR(TakeSparseValues("topk", &numbers, &format));
  double ratio = 0.01;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(
      "topk", numbers,
      {{.name = "", .what = "ratio", .value = &ratio, .low = 0, .high = 1, .low_open = true}}));
  return std::make_unique<TopK>(ratio, format);
}

}  // namespace

CodecList TopKCodecs() { return {{"topk", MakeTopK}}; }

}  // namespace leeway::compress
