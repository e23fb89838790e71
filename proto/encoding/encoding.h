// Encode turns messages into headers, and Decode turns headers back and checks every byte. Data
// from the wire is used only after Decode. Any thread.
#ifndef LEEWAY_PROTO_ENCODING_ENCODING_H_
#define LEEWAY_PROTO_ENCODING_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"

namespace leeway::proto {

// Never fails: reasons and names over their limits are cut.
runtime::Buffer Encode(const AnyMessage& message);

// Checks, in this order: the header's length, identifier and structure (FlatBuffers' verifier on
// an aligned copy, with low depth and table limits); then the meaning: enums in range, names and
// counts within proto/messages/limits.h, tables' descriptions valid, ranks below their maxima; then
// the payload frames: as many as the message has, each of exactly the size that the counts say, and
// aligned for its elements (a frame that is not is replaced by an aligned copy).
// INVALID_ARGUMENT says which field was wrong, what it held and what it may hold.
absl::StatusOr<AnyMessage> Decode(const runtime::Buffer& header,
                                  std::span<runtime::Buffer> payload);

// The name of the message's type, for logs: "Request", "ClusterMap", …
absl::string_view NameOf(const AnyMessage& message);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_ENCODING_H_
