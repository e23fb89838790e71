// The values frame of a push of rows that are encoded:
//
//     u32 plain    how many of the rows, the last ones, are as they are
//     bytes        the message of the codec about the rows before them
//     values       the plain rows, of the table's dtype
//
// Plain rows are what a worker's residuals of keys that were not pushed for long become when their
// memory is full.
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

// INVALID_ARGUMENT where the frame cannot be one of `rows` rows of `row_bytes` bytes.
absl::StatusOr<CodedRows> ParseCodedRows(std::span<const std::byte> frame, std::uint64_t rows,
                                         std::uint64_t row_bytes);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_SPARSE_CODED_ROWS_H_
