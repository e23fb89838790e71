// The layout of the types with FixedFields: as FlatBuffers lays out a struct of these fields.
#ifndef LEEWAY_PROTO_ENCODING_FIXED_H_
#define LEEWAY_PROTO_ENCODING_FIXED_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flatbuffers/flatbuffers.h"
#include "proto/messages/fields.h"

namespace leeway::proto {

// What a member of type T is on the wire, if `Check` is what it may hold.
template <class T, class Check = Range>
using WireOf = std::conditional_t<
    std::is_same_v<Check, Range16>, std::uint16_t,
    std::conditional_t<std::is_same_v<T, bool> || std::is_enum_v<T>, std::uint8_t, T>>;

// Counts the bytes of a struct: a field lies at a multiple of its size, and the struct ends at a
// multiple of its largest field's.
struct FixedSize {
  std::size_t end = 0, alignment = 1;
  template <class T, class Check = Range>
  constexpr bool operator()(const char*, T&, Check = {}) {
    constexpr std::size_t kBytes = sizeof(WireOf<std::remove_const_t<T>, Check>);
    alignment = std::max(alignment, kBytes);
    end = (end + kBytes - 1) / kBytes * kBytes + kBytes;
    return true;
  }
};
template <class M>
constexpr FixedSize SizeOfFixed() {
  FixedSize size;
  M m;
  M::FixedFields(size, m);
  size.end = (size.end + size.alignment - 1) / size.alignment * size.alignment;
  return size;
}
template <class M>
inline constexpr FixedSize kFixedSize = SizeOfFixed<M>();

// Writes a struct, with zeros between its fields and behind them.
class FixedWriter {
 public:
  explicit FixedWriter(std::uint8_t* to) : to_(to) {}

  template <class T, class Check = Range>
  [[gnu::always_inline]] bool operator()(const char*, const T& value, const Check& = {}) {
    using Wire = WireOf<T, Check>;
    FillTo((at_ + sizeof(Wire) - 1) / sizeof(Wire) * sizeof(Wire));
    flatbuffers::WriteScalar(to_ + at_, static_cast<Wire>(value));
    at_ += sizeof(Wire);
    return true;
  }
  [[gnu::always_inline]] void FillTo(std::size_t end) {
    while (at_ < end) to_[at_++] = 0;
  }

 private:
  std::uint8_t* to_;
  std::size_t at_ = 0;
};
template <class M>
void WriteFixed(const M& m, std::uint8_t* to) {
  FixedWriter writer(to);
  M::FixedFields(writer, m);
  writer.FillTo(kFixedSize<M>.end);
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_FIXED_H_
