// A difference is a message that turns one version of a block of elements into another, bit by bit.
// docs/compression.md describes its bytes ("Differences between versions").
//
// Elements of 1, 2, 4 or 8 bytes are taken as unsigned integers, whatever their type: what changed
// is sent as the integers' difference, modulo 2^bits. One step of a float's last bit is a
// difference of ±1 on both sides of zero, NaN and −0 are bits as any others, and the differences of
// several steps add up. (An order of floats that has no gap between −0 and +0 would make the
// differences of those that cross zero smaller. Those few are so much smaller than the rest of a
// model's weights that they change by thousands of last bits in any case.)
//
// Preconditions: `element_bytes` is 1, 2, 4 or 8, blocks are whole elements of it, at any
// alignment. Any thread. Messages may hold anything: what they take in memory and time is bounded
// by the block, nothing is read beyond them, and INVALID_ARGUMENT says what is wrong with them.
#ifndef LEEWAY_COMPRESS_DIFFERENCES_DIFFERENCE_H_
#define LEEWAY_COMPRESS_DIFFERENCES_DIFFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway::compress {

// Appends the difference that makes `after` of `before`, two blocks of one size. False: it would be
// no shorter than the block, which had better be sent itself; nothing is appended. Where nothing
// has changed, the difference is one byte, and the result true, even for a block of no elements.
[[nodiscard]] bool EncodeDifference(std::span<const std::byte> before,
                                    std::span<const std::byte> after, std::size_t element_bytes,
                                    std::vector<std::byte>* message);

// Whether the message is a difference of blocks of so many elements.
absl::Status CheckDifference(std::span<const std::byte> message, std::size_t element_bytes,
                             std::uint64_t elements);

// Changes `values`, the version before, into the version after; changes nothing if it fails. That
// `values` is the version that the difference was made of is for the caller to know (digest.h).
absl::Status ApplyDifference(std::span<const std::byte> message, std::size_t element_bytes,
                             std::span<std::byte> values);

// Appends to `merged` the difference that does what `messages` do one after the other, without the
// elements that have come back to their old value. False as in EncodeDifference. An error names the
// message, counted from 0; nothing is appended.
absl::StatusOr<bool> MergeDifferences(std::span<const std::span<const std::byte>> messages,
                                      std::size_t element_bytes, std::uint64_t elements,
                                      std::vector<std::byte>* merged);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_DIFFERENCES_DIFFERENCE_H_
