// Adding up messages of codec sketch without decoding them.
#ifndef LEEWAY_COMPRESS_CODECS_SKETCH_H_
#define LEEWAY_COMPRESS_CODECS_SKETCH_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "leeway/codec.h"

namespace leeway::compress {

// Adds one message of codec sketch into another of the same shape: `sum` is then, up to rounding,
// the message of the sum of both arrays. INVALID_ARGUMENT: one of them is malformed, their rows,
// ratio or seed differ, or the sum is more than a float can hold; `sum` is then as it was.
absl::Status AddSketch(std::span<const std::byte> encoded, const CodecShape& shape,
                       std::span<std::byte> sum);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODECS_SKETCH_H_
