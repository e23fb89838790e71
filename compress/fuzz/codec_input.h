// The input format of the codec fuzzer, also for the program that writes its seeds: a shape in five
// bytes, and behind them a message.
//
//     0, 1   elements, modulo kElementsMax + 1 (little-endian)
//     2      columns
//     3      bit 0: separate rows; bit 1: DecodeAdd's factor is −1; bits 2, 3: the bytes between an
//            aligned address and the message
//     4      index into CodecSamples(), unless LEEWAY_FUZZ_CODEC names the codec
#ifndef LEEWAY_COMPRESS_FUZZ_CODEC_INPUT_H_
#define LEEWAY_COMPRESS_FUZZ_CODEC_INPUT_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

inline constexpr std::size_t kInputHeaderBytes = 5;
inline constexpr std::uint64_t kElementsMax = 600;
inline constexpr std::uint8_t kInputSeparateRows = 1, kInputSubtract = 2;
inline constexpr int kInputOffsetShift = 2, kInputOffsetMask = 3;

// The environment variable that holds a codec's text.
inline constexpr char kFuzzCodecVariable[] = "LEEWAY_FUZZ_CODEC";

}  // namespace leeway::compress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#endif  // LEEWAY_COMPRESS_FUZZ_CODEC_INPUT_H_
