// The built-in codecs, a list for each file that defines some.
#ifndef LEEWAY_COMPRESS_CODECS_BUILTIN_H_
#define LEEWAY_COMPRESS_CODECS_BUILTIN_H_

#include <string>
#include <utility>
#include <vector>

#include "leeway/codec.h"

namespace leeway::compress {

using CodecList = std::vector<std::pair<std::string, CodecFactory>>;

// Of all files below.
CodecList BuiltinCodecs();

CodecList NoneCodecs();     // none
CodecList OneBitCodecs();   // onebit
CodecList QsgdCodecs();     // qsgd
CodecList TernaryCodecs();  // ternary

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODECS_BUILTIN_H_
