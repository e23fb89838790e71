// The lists of the built-in codecs, one for each file that defines some.
#ifndef LEEWAY_COMPRESS_CODECS_BUILTIN_H_
#define LEEWAY_COMPRESS_CODECS_BUILTIN_H_

#include <string>
#include <utility>
#include <vector>

#include "leeway/codec.h"

namespace leeway::compress {

using CodecList = std::vector<std::pair<std::string, CodecFactory>>;

// The codecs of all files below.
CodecList BuiltinCodecs();

CodecList NoneCodecs();       // none
CodecList OneBitCodecs();     // onebit
CodecList TernaryCodecs();    // ternary
CodecList QsgdCodecs();       // qsgd
CodecList TopKCodecs();       // topk
CodecList RandomKCodecs();    // randomk
CodecList ThresholdCodecs();  // threshold
CodecList DgcCodecs();        // dgc
CodecList BloomCodecs();      // bloom
CodecList PowerSgdCodecs();   // powersgd
CodecList SketchCodecs();     // sketch
CodecList SparseCodecs();     // sparse
CodecList HalfCodecs();       // fp16, bf16
CodecList Fp8Codecs();        // fp8
CodecList Fp4Codecs();        // fp4
CodecList Int8Codecs();       // int8
CodecList ZstdCodecs();       // zstd

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODECS_BUILTIN_H_
