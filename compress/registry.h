// Codecs by name: the built-in ones, and those added with leeway::RegisterCodec.
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

// A codec's name in a message: a hash of its text in the table's description, options and all,
// never 0 (which says that values are as they are).
using CodecId = std::uint32_t;
inline constexpr CodecId kNoCodec = 0;
CodecId IdOf(absl::string_view text);

// A codec as a table names it.
struct NamedCodec {
  std::string name;  // without options
  std::shared_ptr<const Codec> codec;
  std::optional<Momentum> momentum = {};  // of what workers push, before this codec
};

// Makes the codec that a text like "topk:0.01,momentum=0.9" describes. NOT_FOUND lists the names
// there are, INVALID_ARGUMENT names the option. A codec that takes an option `momentum` itself
// keeps it: NamedCodec::momentum is of the others. Any thread.
absl::StatusOr<NamedCodec> MakeCodec(absl::string_view text);

// All that this process has, sorted by name. Any thread.
std::vector<std::string> CodecNames();
std::vector<proto::CodecVersion> CodecVersions();

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_REGISTRY_H_
