// CheckHeaderLength and VerifyHeader check the structure of a header (that its bytes are a
// FlatBuffer of this schema), and nothing of its meaning. Any thread.
#ifndef LEEWAY_PROTO_ENCODING_VERIFY_HEADER_H_
#define LEEWAY_PROTO_ENCODING_VERIFY_HEADER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace leeway::proto {

// OK if a header may have this length. Called before anything else, a copy included.
absl::Status CheckHeaderLength(std::size_t size);

// `data` is aligned to 8 bytes, and `size` has been checked. After OK every offset in the header
// points to an object of the right type within it.
absl::Status VerifyHeader(const std::uint8_t* data, std::size_t size);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_VERIFY_HEADER_H_
