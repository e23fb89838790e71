// The registry of codecs by name: the built-in ones, and those added with leeway::RegisterCodec.
#ifndef LEEWAY_COMPRESS_REGISTRY_H_
#define LEEWAY_COMPRESS_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compress/momentum.h"
#include "leeway/codec.h"
#include "proto/messages/messages.h"

namespace leeway::compress {

// The id of a codec in a message: a hash of its text in the table's description, with all options.
// Never 0, which stands for values as they are.
using CodecId = std::uint32_t;
inline constexpr CodecId kNoCodec = 0;
CodecId IdOf(absl::string_view text);

// A codec, and its name and momentum, from a text in a table's description.
struct NamedCodec {
  std::string name;  // without options
  std::shared_ptr<const Codec> codec;
  std::optional<Momentum> momentum = {};  // of workers' pushes, before this codec
};

// Makes the codec of a text like "topk:0.01,momentum=0.9". NOT_FOUND lists the known names,
// INVALID_ARGUMENT names the option. If a codec has an option `momentum` of its own, the codec gets
// it, and NamedCodec::momentum is empty. Any thread.
absl::StatusOr<NamedCodec> MakeCodec(absl::string_view text);

// The names of all codecs of this process, sorted. Any thread.
std::vector<std::string> CodecNames();
std::vector<proto::CodecVersion> CodecVersions();

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_REGISTRY_H_
