// Whether bytes are a header at all: everything about its structure, nothing about its meaning.
#ifndef LEEWAY_PROTO_ENCODING_VERIFY_H_
#define LEEWAY_PROTO_ENCODING_VERIFY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace leeway::proto {

// Whether a header may be that long. Before anything is done with it, a copy included.
absl::Status CheckHeaderLength(std::size_t size);

// `data` is aligned to 8 bytes, `size` has been checked. After OK every offset in it leads to where
// it should.
absl::Status VerifyHeader(const std::uint8_t* data, std::size_t size);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_VERIFY_H_
