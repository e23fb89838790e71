// ternary: −s, 0 or +s for each element of a group, drawn at random by magnitude.
//
//   C(v)ᵢ = s · sign(vᵢ) · bᵢ,  bᵢ = 1 with probability |vᵢ| / m, otherwise 0,  m = max |v|
//
// With `scale=max`, s = m: TernGrad, whose mean over the draws is v. Of normally distributed
// elements it drops 1.6 times the squares of its input, so that error feedback would grow without
// bound and is refused. With `scale=fit`, s = Σ |vᵢ| bᵢ / Σ bᵢ, the least squares fit of v by the
// drawn signs: the remainder is shorter than the input, so that error feedback works; without error
// feedback the decoded values are smaller than v on average.
//
// Wen et al., "TernGrad: ternary gradients to reduce communication in distributed deep learning",
// NeurIPS 2017, arXiv 1705.07878, equations 3 and 4. The larger the largest element is beside the
// others, the fewer of these are sent, hence clipping: with `clip` = c an element counts as no
// larger than c · σ, which makes s smaller and the codec biased (error feedback keeps the rest).
// σ is the root of the mean square of the group: the standard deviation with an assumed mean of 0,
// as gradients nearly have it, so that a group of equal elements is not clipped away.
//
// Message: that of dithering.h with 2 bits for each element and uniform levels: 0 for 0, 1 for +s,
// 3 for −s (and 2, which is not written, for −0). For a whole block of 131072 elements it has
// 3 + 256·4 + 32768 bytes.
//
// Options: scale (fit), fit or max, as above. clip (0), standard deviations to which elements are
// clipped, from 1 to 100; 0: no clipping; TernGrad uses 2.5. group (512), elements that share s: 0
// for the whole message, or a multiple of 8 up to 2^18. Separate rows share none: each has one, or
// one for each `group` of its elements.
//
// Limits: the larger a group, the larger m and the fewer elements are sent.
//
// NaN and infinity are refused.
#include <memory>

#include "absl/strings/str_cat.h"
#include "compress/codecs/builtin.h"
#include "compress/common/dithering.h"
#include "compress/common/groups.h"
#include "compress/common/options.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr absl::string_view kTernaryName = "ternary";

absl::StatusOr<std::unique_ptr<Codec>> MakeTernary(const CodecOptions& given) {
  CodecOptions options = given;
  LEEWAY_RETURN_IF_ERROR(NumberChoice(kTernaryName, "scale", {"fit", "max"}, &options));
  double clip = 0, group = 512, scale = 0;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(kTernaryName, options,
                                     {{.name = "clip", .value = &clip, .low = 0, .high = 100},
                                      GroupOption(&group),
                                      {.name = "scale", .value = &scale, .low = 0, .high = 1}}));
  LEEWAY_RETURN_IF_ERROR(CheckGroupOption(kTernaryName, group));
  if (clip > 0 && clip < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ternary: clip is ", clip, ", may be 0 or from 1 to 100"));
  }
  return std::make_unique<Dithering>(
      kTernaryName,
      DitheringOptions{
          .bits = 2, .group = static_cast<std::uint64_t>(group), .clip = clip, .fit = scale == 0});
}

}  // namespace

CodecList TernaryCodecs() { return {{"ternary", MakeTernary}}; }

}  // namespace leeway::compress
