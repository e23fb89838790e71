#include "compress/sparse/coded_rows.h"

#include "absl/strings/str_cat.h"
#include "compress/common/byte_io.h"

namespace leeway::compress {

absl::StatusOr<CodedRows> ParseCodedRows(std::span<const std::byte> frame, std::uint64_t rows,
                                         std::uint64_t row_bytes) {
  ByteReader reader(frame);
  std::uint32_t plain = 0;
  if (!reader.Take(&plain) || plain > rows || reader.left() / row_bytes < plain) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", frame.size(), " bytes cannot hold ", rows, " encoded rows, ",
                     plain, " of them plain ones of ", row_bytes, " bytes"));
  }
  const std::size_t plain_bytes = plain * row_bytes;
  CodedRows parsed;
  parsed.encoded_rows = rows - plain;
  parsed.plain = frame.last(plain_bytes);
  parsed.encoded = frame.subspan(kCodedRowsPrefix, frame.size() - kCodedRowsPrefix - plain_bytes);
  return parsed;
}

}  // namespace leeway::compress
