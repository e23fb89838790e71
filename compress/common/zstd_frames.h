// Single Zstandard frames (RFC 8878) that declare the size of their content. Each thread that
// writes or reads them keeps the library's working memory, some 100 KiB at level 1, some MiB at
// high ones.
#ifndef LEEWAY_COMPRESS_COMMON_ZSTD_FRAMES_H_
#define LEEWAY_COMPRESS_COMMON_ZSTD_FRAMES_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway::compress {

// Writes the content as a frame into `to`, and returns the frame's bytes; 0 if they do not fit, and
// then what `to` holds is of no use. `level` is Zstandard's, 1 to 19.
std::size_t WriteZstdFrame(std::span<const std::byte> content, int level, std::span<std::byte> to);

// As WriteZstdFrame, almost without a search for stretches that repeat: for bytes of which some are
// more frequent than others, in no order. Their places cost more than the bytes themselves do.
std::size_t WriteHuffmanFrame(std::span<const std::byte> content, std::span<std::byte> to);

// Fills `to` with the content of the frame. INVALID_ARGUMENT, which names the kind of message:
// `frame` is not exactly one frame of that size.
absl::Status ReadZstdFrame(absl::string_view message, std::span<const std::byte> frame,
                           std::span<std::byte> to);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_ZSTD_FRAMES_H_
