// ByteWriter and ByteReader put numbers into a message's bytes and take them out, little-endian, at
// any alignment.
#ifndef LEEWAY_COMPRESS_COMMON_BYTE_IO_H_
#define LEEWAY_COMPRESS_COMMON_BYTE_IO_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace leeway::compress {

static_assert(std::endian::native == std::endian::little, "messages are written as they lie");

// Writes from the front of `out`, which has room for everything that the caller puts.
class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> out) : begin_(out.data()), at_(out.data()) {}

  template <class T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  // Skips `bytes` bytes, which the caller writes itself, and returns their address.
  std::byte* Skip(std::size_t bytes) {
    std::byte* const from = at_;
    at_ += bytes;
    return from;
  }
  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  std::byte* begin_;
  std::byte* at_;
};

// Reads from the front of bytes that may hold anything; Take returns false, and Skip null, if there
// are too few left.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  [[nodiscard]] bool Take(T* value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return true;
  }
  const std::byte* Skip(std::size_t bytes) {
    if (bytes_.size() < bytes) return nullptr;
    const std::byte* const from = bytes_.data();
    bytes_ = bytes_.subspan(bytes);
    return from;
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_BYTE_IO_H_
