// The cost of sending a table with each of its codecs, and the choice of a codec by it.
//
// The cost is time: to encode, send and decode a byte of values, one after the other. A link that
// is faster than every codec therefore carries values as they are. Workers measure the cost, and
// the scheduler decides (TableSpec::codec "auto").
#ifndef LEEWAY_COMPRESS_CODEC_COST_H_
#define LEEWAY_COMPRESS_CODEC_COST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compress/table_codec.h"

namespace leeway::compress {

struct CodecSpeed {
  double code_seconds_per_byte = 0;  // to encode and decode, for a byte of values
  double ratio = 1;                  // bytes of a message for each byte of values
};

// Encodes and decodes `values`, [shape.elements] of shape.dtype, several times, and returns the
// fastest. `now` returns the time. INVALID_ARGUMENT: the codec cannot carry such values (NaN,
// infinity).
absl::StatusOr<CodecSpeed> MeasureCodec(const Codec& codec, const CodecShape& shape,
                                        std::span<const std::byte> values,
                                        const std::function<absl::Time()>& now);

// The cost of a byte of values under any codec: both ends read, add and write it. A link that takes
// less time than that is no reason to lose accuracy.
inline constexpr double kHandlingNanosecondsPerByte = 1;

// Nanoseconds for a byte of values over a link of that speed.
double NanosecondsPerByte(const CodecSpeed& speed, double link_bytes_per_s);

// A lossy codec costs accuracy, so it is chosen only if it saves more than half of the time; the
// present codec stays until another one is clearly better.
inline constexpr double kLossyGain = 3;        // against the best lossless one, to be chosen
inline constexpr double kLossyKeepGain = 2;    // to be kept
inline constexpr double kLosslessGain = 1.25;  // against the present one, to be chosen instead

// Returns one of the codecs, by their costs: the present one unless another is clearly better.
std::uint32_t ChooseCodec(std::span<const double> costs, std::span<const bool> lossy,
                          std::uint32_t present);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODEC_COST_H_
