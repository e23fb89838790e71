// Decode under a coverage-guided fuzzer. The input is a header and up to seven payload frames:
// one byte with their number and misalignment, then each frame's length in two bytes, the frames,
// and the header.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "proto/encoding/encoding.h"

namespace {

using leeway::runtime::Buffer;

// Takes bytes from the front of the input; fewer if fewer are left.
class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t left() const { return size_; }
  std::size_t TakeNumber(std::size_t bytes) {
    std::size_t number = 0;
    for (; bytes > 0 && size_ > 0; --bytes, ++data_, --size_) number = number << 8 | *data_;
    return number;
  }
  // A copy that lies `offset` bytes beyond an aligned address and ends where its memory does.
  Buffer Take(std::size_t size, std::size_t offset) {
    size = size < size_ ? size : size_;
    std::byte* bytes = nullptr;
    keep_.push_back(Buffer::Allocate(offset + size, &bytes));
    if (size > 0) std::memcpy(bytes + offset, data_, size);
    data_ += size;
    size_ -= size;
    return Buffer::Unowned(bytes + offset, size);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::vector<Buffer> keep_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Source source(data, size);
  const std::size_t first = source.TakeNumber(1);
  const std::size_t offset = first >> 3 & 7;
  std::size_t lengths[7] = {};
  const std::size_t frames = first & 7;
  for (std::size_t i = 0; i < frames; ++i) lengths[i] = source.TakeNumber(2);
  std::vector<Buffer> payload;
  for (std::size_t i = 0; i < frames; ++i) payload.push_back(source.Take(lengths[i], offset));
  const Buffer header = source.Take(source.left(), offset);

  const auto message = leeway::proto::Decode(header, payload);
  if (!message.ok()) return 0;
  // An accepted message is accepted again, as the same message.
  const Buffer encoded = leeway::proto::Encode(*message);
  const auto again = leeway::proto::Decode(encoded, payload);
  if (!again.ok() || leeway::proto::Encode(*again).text() != encoded.text()) std::abort();
  return 0;
}
