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

inline constexpr char kHeaderIdentifier[] = "LWY1";

// Never fails: reasons and names over their limits are cut.
runtime::Buffer Encode(const AnyMessage& message);
// For tests: nothing is cut, so that Decode refuses it.
runtime::Buffer EncodeAsIs(const AnyMessage& message);

// Checks, in this order: the header's length and identifier; field by field that it lies within the
// header (with FlatBuffers' verifier, on an aligned copy) and holds what its description allows
// (proto/messages/fields.h); what depends on several fields; then the payload frames.
// INVALID_ARGUMENT says which field was wrong, what it held and what it may hold.
absl::StatusOr<AnyMessage> Decode(const runtime::Buffer& header,
                                  std::span<runtime::Buffer> payload);

// The name of the message's type, for logs: "Request", "ClusterMap", …
absl::string_view NameOf(const AnyMessage& message);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_ENCODING_H_
