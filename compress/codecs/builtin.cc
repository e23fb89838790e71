#include "compress/codecs/builtin.h"

namespace leeway::compress {

CodecList BuiltinCodecs() {
  CodecList all;
  for (const auto list :
       {NoneCodecs, HalfCodecs, Fp8Codecs, Fp4Codecs, Int8Codecs, OneBitCodecs, TernaryCodecs,
        QsgdCodecs, TopKCodecs, RandomKCodecs, ThresholdCodecs, DgcCodecs, BloomCodecs,
        PowerSgdCodecs, SketchCodecs, ZstdCodecs, SparseCodecs}) {
    for (auto& codec : list()) all.push_back(std::move(codec));
  }
  return all;
}

}  // namespace leeway::compress
