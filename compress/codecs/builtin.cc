#include "compress/codecs/builtin.h"

namespace leeway::compress {

CodecList BuiltinCodecs() {
  CodecList all;
  for (const auto list : {NoneCodecs, OneBitCodecs, QsgdCodecs, TernaryCodecs}) {
    for (auto& codec : list()) all.push_back(std::move(codec));
  }
  return all;
}

}  // namespace leeway::compress
