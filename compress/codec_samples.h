// The codecs that tests and fuzzers go through, with what is to be expected of each.
#ifndef LEEWAY_COMPRESS_CODEC_SAMPLES_H_
#define LEEWAY_COMPRESS_CODEC_SAMPLES_H_

#include <ostream>
#include <string>
#include <vector>

#include "compress/codecs/builtin.h"

namespace leeway::compress {

// What becomes of NaN and infinity among the values; never do they change other values.
enum class OnNonFinite {
  kPassed,      // they arrive
  kRefused,     // Encode refuses the message
  kNanRefused,  // NaN is refused, infinity becomes the largest value that the codec has
};

struct CodecSample {
  std::string text;
  OnNonFinite non_finite = OnNonFinite::kRefused;
  bool random = false;         // another seed gives other bytes
  bool keeps_its_own = false;  // what it did not send it keeps in its state, not with its caller
};

inline std::ostream& operator<<(std::ostream& out, const CodecSample& sample) {
  return out << sample.text;
}

inline std::vector<CodecSample> CodecSamples() {
  using enum OnNonFinite;
  return {
      {.text = "none", .non_finite = kPassed},
      {.text = "onebit"},
      {.text = "onebit:group=32"},
      {.text = "ternary", .random = true},
      {.text = "ternary:clip=2.5,group=0", .random = true},
      {.text = "qsgd", .random = true},
      {.text = "qsgd:bits=3,norm=l2,group=0", .random = true},
      {.text = "qsgd:bits=8,norm=l2,group=32", .random = true},
      {.text = "qsgd:levels=natural", .random = true},
      {.text = "qsgd:levels=natural,bits=8,norm=l2", .random = true},
  };
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODEC_SAMPLES_H_
