// CodedRows is the values frame of a push of encoded rows, taken apart:
//
//     u32 plain    the number of plain rows, which are the last ones
//     bytes        the codec's message for the rows before them
//     values       the plain rows, of the table's dtype
//
// A worker makes plain rows when the memory for its residuals is full: of residuals of keys that it
// has not pushed for long.
#ifndef LEEWAY_COMPRESS_SPARSE_CODED_ROWS_H_
#define LEEWAY_COMPRESS_SPARSE_CODED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/status/statusor.h"

namespace leeway::compress {

inline constexpr std::size_t kCodedRowsPrefix = sizeof(std::uint32_t);

struct CodedRows {
  std::uint64_t encoded_rows = 0;
  std::span<const std::byte> encoded;
  std::span<const std::byte> plain;  // whole rows
};

// INVALID_ARGUMENT if the frame cannot be one of `rows` rows of `row_bytes` bytes.
absl::StatusOr<CodedRows> ParseCodedRows(std::span<const std::byte> frame, std::uint64_t rows,
                                         std::uint64_t row_bytes);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_SPARSE_CODED_ROWS_H_
