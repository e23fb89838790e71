// The input format of the fuzzer of differences: a block in three bytes, and behind them a message.
//
//     0, 1   elements of the block, modulo kDifferenceElementsMax + 1 (little-endian)
//     2      an element has 1 << (this modulo 4) bytes
#ifndef LEEWAY_COMPRESS_DIFFERENCES_FUZZ_DIFFERENCE_INPUT_H_
#define LEEWAY_COMPRESS_DIFFERENCES_FUZZ_DIFFERENCE_INPUT_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

inline constexpr std::size_t kDifferenceHeaderBytes = 3;
inline constexpr std::uint64_t kDifferenceElementsMax = 5000;

}  // namespace leeway::compress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#endif  // LEEWAY_COMPRESS_DIFFERENCES_FUZZ_DIFFERENCE_INPUT_H_
