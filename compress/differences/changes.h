// Changes are the elements in which two versions of a block differ.
#ifndef LEEWAY_COMPRESS_DIFFERENCES_CHANGES_H_
#define LEEWAY_COMPRESS_DIFFERENCES_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace leeway::compress {

struct Changes {
  Changes(std::uint64_t elements, std::size_t element_bytes);
  std::span<const std::byte> bitmap() const {
    return {reinterpret_cast<const std::byte*>(words.get()), bitmap_bytes};
  }

  std::uint64_t bitmap_bytes;
  std::unique_ptr<std::uint64_t[]> words;  // a bit for each element
  std::unique_ptr<std::byte[]> gaps;       // places.h; cut off once they are as long as the bitmap
  std::uint64_t gap_bytes = 0;
  std::uint64_t next = 0;              // the first place behind the last gap's
  std::unique_ptr<std::byte[]> codes;  // ZigZag of each difference
  std::uint64_t count = 0;
};

// Of two arrays of elements of 1, 2, 4 or 8 bytes.
Changes FindChanges(const std::byte* before, const std::byte* after, std::uint64_t elements,
                    std::size_t element_bytes);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_DIFFERENCES_CHANGES_H_
