// What it costs to send a table with one codec or another, and which of them is worth it.
//
// The cost is time: a byte of values is encoded, sent and decoded, one after the other. So a link
// that is faster than a codec is left to values as they are. Measured by workers, decided by the
// scheduler (TableSpec::codec "auto").
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
  double ratio = 1;                  // bytes of a message for one of values
};

// Encodes and decodes `values`, [shape.elements] of shape.dtype, some times, and takes the fastest.
// `now` is a clock. INVALID_ARGUMENT: the codec cannot carry such values (NaN, infinity).
absl::StatusOr<CodecSpeed> MeasureCodec(const Codec& codec, const CodecShape& shape,
                                        std::span<const std::byte> values,
                                        const std::function<absl::Time()>& now);

// What a byte of values costs whatever the codec: it is read, added and written at both ends. A
// link that takes less time than that is no reason to lose anything.
inline constexpr double kHandlingNanosecondsPerByte = 1;

// Nanoseconds for a byte of values over a link of that speed.
double NanosecondsPerByte(const CodecSpeed& speed, double link_bytes_per_s);

// A lossy codec costs accuracy, or at least trust, so it has to save more than half of the time;
// and what is chosen is kept until something else is clearly better.
inline constexpr double kLossyGain = 3;        // against the best lossless one, to be chosen
inline constexpr double kLossyKeepGain = 2;    // to be kept
inline constexpr double kLosslessGain = 1.25;  // against the present one, to be chosen instead

// One of the codecs, given what each costs: the present one unless another is clearly better.
std::uint32_t ChooseCodec(std::span<const double> costs, std::span<const bool> lossy,
                          std::uint32_t present);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODEC_COST_H_
