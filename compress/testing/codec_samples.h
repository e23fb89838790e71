// The codecs that tests and fuzzers go through, each with its expected properties.
#ifndef LEEWAY_COMPRESS_TESTING_CODEC_SAMPLES_H_
#define LEEWAY_COMPRESS_TESTING_CODEC_SAMPLES_H_

#include <ostream>
#include <string>
#include <vector>

#include "compress/codecs/builtin.h"

namespace leeway::compress {

// The effect of NaN and infinity among the values; they never change other values.
enum class OnNonFinite {
  kPassed,      // they arrive
  kRefused,     // Encode refuses the message
  kNanRefused,  // NaN is refused, infinity becomes the largest value that the codec has
};

struct CodecSample {
  std::string text;
  OnNonFinite non_finite = OnNonFinite::kRefused;
  bool random = false;         // another seed gives other bytes
  bool keeps_its_own = false;  // its state holds the residual, not the caller
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
      {.text = "onebit:group=8"},
      {.text = "ternary", .random = true},
      {.text = "ternary:clip=2.5,group=0", .random = true},
      {.text = "qsgd", .random = true},
      {.text = "qsgd:bits=3,norm=l2,group=0", .random = true},
      {.text = "qsgd:bits=8,norm=l2,group=32", .random = true},
      {.text = "qsgd:levels=natural", .random = true},
      {.text = "qsgd:levels=natural,bits=8,norm=l2", .random = true},
      {.text = "powersgd", .random = true},
      {.text = "powersgd:4", .random = true},
      {.text = "sketch"},
      {.text = "sketch:rows=3,ratio=0.25"},
      {.text = "topk"},
      {.text = "topk:0.3,values=fp16"},
      {.text = "topk:1"},
      {.text = "randomk:0.05", .random = true},
      {.text = "randomk:0.3,scale=1", .random = true},
      {.text = "threshold:1"},
      {.text = "threshold:0.5,relative=1"},
      {.text = "dgc:0.05", .keeps_its_own = true},
      {.text = "dgc:0.1,momentum=0,clip=3,warmup=10", .keeps_its_own = true},
      {.text = "bloom:0.05"},
      {.text = "bloom:0.2,fpr=0.3"},
      {.text = "fp16", .non_finite = kPassed},
      {.text = "bf16", .non_finite = kPassed},
      {.text = "fp8"},
      {.text = "fp8:e5m2,group=64"},
      {.text = "fp4"},
      {.text = "fp4:group=64"},
      {.text = "int8"},
      {.text = "int8:stochastic=1", .random = true},
      {.text = "sparse", .non_finite = kPassed},
      {.text = "zstd", .non_finite = kPassed},
  };
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_TESTING_CODEC_SAMPLES_H_
