// qsgd: each element rounded at random to one of a few levels of its group's norm, so that the mean
// is the element.
//
//   C(v)ᵢ = ‖v‖ · sign(vᵢ) · ξᵢ,  ξᵢ one of the two levels around |vᵢ| / ‖v‖, E ξᵢ = |vᵢ| / ‖v‖
//
// Uniform levels are 0, 1/s, 2/s, … 1 (Alistarh et al., "QSGD: communication-efficient SGD via
// gradient quantization and encoding", NeurIPS 2017, arXiv 1610.02132, section 3.1, ξᵢ(v, s)).
// Natural levels are 0 and the powers of two 2^(1−s), … 1/4, 1/2, 1 (natural dithering, Horváth et
// al., "Natural compression for distributed deep learning", arXiv 1905.10988): small elements are
// then more exact, large ones less. s = 2^(bits−1) − 1. Elements are packed at a fixed number of
// bits; there is no entropy coding as in QSGD's section 3.2.
//
// Message: that of dithering.h. For a whole block of 131072 elements, with 4 bits in groups of 512,
// it has 3 + 256·4 + 65536 bytes.
//
// Options:
//   bits (4)          of an element, its sign among them, 2 to 8
//   group (512)       elements that share a norm: 0 for the whole message, or a multiple of 8 up to
//                     2^18. Separate rows share none: each has one, or one for each `group` of
//                     its elements.
//   norm (max)        max: the largest magnitude; l2: the Euclidean norm, as in QSGD
//   levels (uniform)  uniform or natural
//
// Limits: with norm=l2 the error is larger than the values if s (of natural levels 2^(s−1)) is well
// below √group. Under error feedback the residual then grows without bound, as with 4 bits in
// groups of 512; 5 bits, or 4 with natural levels, are enough there. With norm=max it stays
// bounded.
//
// NaN and infinity are refused. A Euclidean norm beyond the largest float becomes the largest
// float.
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/dithering.h"
#include "compress/common/groups.h"
#include "compress/common/options.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr absl::string_view kQsgdName = "qsgd";

absl::StatusOr<std::unique_ptr<Codec>> MakeQsgd(const CodecOptions& given) {
  CodecOptions options = given;
  LEEWAY_RETURN_IF_ERROR(NumberChoice(kQsgdName, "norm", {"max", "l2"}, &options));
  LEEWAY_RETURN_IF_ERROR(NumberChoice(kQsgdName, "levels", {"uniform", "natural"}, &options));
  double bits = 4, group = 512, norm = 0, levels = 0;
  LEEWAY_RETURN_IF_ERROR(
      ReadOptions(kQsgdName, options,
                  {{.name = "bits", .value = &bits, .low = 2, .high = 8, .whole = true},
                   GroupOption(&group),
                   {.name = "norm", .value = &norm, .low = 0, .high = 1},
                   {.name = "levels", .value = &levels, .low = 0, .high = 1}}));
  LEEWAY_RETURN_IF_ERROR(CheckGroupOption(kQsgdName, group));
  return std::make_unique<Dithering>(kQsgdName,
                                     DitheringOptions{.bits = static_cast<int>(bits),
                                                      .natural = levels != 0,
                                                      .group = static_cast<std::uint64_t>(group),
                                                      .euclidean = norm != 0});
}

}  // namespace

CodecList QsgdCodecs() { return {{"qsgd", MakeQsgd}}; }

}  // namespace leeway::compress
