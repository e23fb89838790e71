// TableWriter is the visitor that encodes: it writes a message as a table of FlatBuffers.
#ifndef LEEWAY_PROTO_ENCODING_WRITE_FIELDS_H_
#define LEEWAY_PROTO_ENCODING_WRITE_FIELDS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "flatbuffers/flatbuffers.h"
#include "proto/encoding/fixed.h"
#include "proto/messages/fields.h"
#include "proto/tables/text.h"

namespace leeway::proto {

// FlatBuffers' builder, with three abilities more.
struct Builder : flatbuffers::FlatBufferBuilder {
  Builder() : flatbuffers::FlatBufferBuilder(1024) {}
  // Begins a vector of so many bytes, whose first has that alignment. FlatBuffers' own function has
  // other parameters from version 23 on.
  void StartBytes(std::size_t bytes, std::size_t alignment) {
    NotNested();
    nested = true;
    PreAlign<flatbuffers::uoffset_t>(bytes);
    PreAlign(bytes, alignment);
  }
  // Bytes in front of what is written, to be filled.
  std::uint8_t* Space(std::size_t bytes) { return buf_.make_space(bytes); }
  // Texts that are too long are cut, and reasons cleaned. Otherwise a test wants to see them
  // refused.
  bool mend = true;
};
// Where a text, list or table has been written; null: there is none.
using Place = flatbuffers::Offset<flatbuffers::Table>;

// An empty text is left out; it is read as empty.
inline Place WriteText(Builder& out, absl::string_view text) {
  return text.empty() ? Place() : Place(out.CreateString(text.data(), text.size()).o);
}
Place WriteReason(Builder& out, absl::string_view reason, std::size_t bytes_max);

template <class M>
Place WriteTable(Builder& out, const M& m);

class TableWriter {
 public:
  explicit TableWriter(Builder& out) : out_(out) {}

  // The visitor. What lies outside the table (texts, lists, other tables) is written at once, and
  // the table itself at the end.
  [[gnu::always_inline]] bool At(int field) {
    next_ = field;
    return true;
  }
  [[gnu::always_inline]] bool InOrder() {
    in_order_ = true;
    return true;
  }
  template <Number T, class Check = Range>
  [[gnu::always_inline]] bool operator()(const char*, const T& value, const Check& check = {}) {
    using Wire = WireOf<T, Check>;
    const auto wire = static_cast<Wire>(value);
    return Put(std::countr_zero(sizeof(wire)), static_cast<std::uint64_t>(wire),
               wire != static_cast<Wire>(check.unsaid));
  }
  [[gnu::always_inline]] bool operator()(const char*, double value, const Fraction& check = {}) {
    const double sent = check.present ? value : check.unsaid;
    return Put(3, std::bit_cast<std::uint64_t>(sent), sent != check.unsaid);
  }
  bool operator()(const char*, const std::string& text, const Utf8& check) {
    return Put(WriteText(out_, check.cut && out_.mend ? Cut(text, check.max) : text));
  }
  bool operator()(const char*, const std::string& text, const Reason& check) {
    return Put(WriteReason(out_, text, check.max));
  }
  bool operator()(const absl::Status& status, const Result& check = {}) {
    return (*this)("code", static_cast<std::int32_t>(status.code())) &&
           Put(status.ok() ? Place() : WriteReason(out_, status.message(), check.reason_max));
  }
  bool operator()(const char*, const Consistency& consistency) {
    return Put(WriteText(out_, consistency.ToString()));
  }
  bool operator()(const char*, const std::map<std::string, double>& all, const Fraction& = {}) {
    std::vector<Place> places;
    for (const auto& [name, value] : all)
      places.push_back(WriteTable(out_, Parameter{name, value}));
    return Put(WriteList(places));
  }
  bool operator()(const char*, const std::vector<std::string>& all, const Count&, const Utf8& each);
  template <class T>
  requires std::is_arithmetic_v<T>
  bool operator()(const char*, const std::vector<T>& all, const Count&, const Fraction&) {
    return Put(Place(out_.CreateVector(all).o));
  }
  template <class M>
  bool operator()(const char*, const std::vector<M>& all, const Count& check) {
    if (all.empty() && check.left_out) return Put(Place());
    if constexpr (Fixed<M>) {
      return Put(WriteFixedList(all, check.by_size));
    } else {
      std::vector<Place> places;
      places.reserve(all.size());
      for (const M& m : all) places.push_back(WriteTable(out_, m));
      return Put(WriteList(places));
    }
  }
  template <Fixed M>
  bool operator()(const char*, const M& m) {
    static_assert(kFixedSize<M>.end <= kFixedBytesMax && kFixedSize<M>.alignment == 8);
    WriteFixed(m, image_);
    fixed_ = next_;
    fixed_bytes_ = kFixedSize<M>.end;
    return Put(2, 0, true);  // where code that FlatBuffers generate puts it
  }
  template <class M>
  bool operator()(const char*, const M& m, const Nested& check) {
    return Put(check.present ? WriteTable(out_, m) : Place());
  }

  bool Put(Place place) {
    places_ |= std::uint64_t{!place.IsNull()} << next_;
    return Put(2, place.o, !place.IsNull());
  }
  // Writes the table: the largest fields first, and of one size the last first, as the code does
  // that FlatBuffers generate; or in order.
  Place Finish();

 private:
  static constexpr int kFieldsMax = 64;
  static constexpr std::size_t kFixedBytesMax = 24;  // of a struct that is a field by itself

  // `size` is the number of bytes as a power of two.
  [[gnu::always_inline]] bool Put(int size, std::uint64_t bits, bool said) {
    if (said) {
      bits_[next_] = bits;
      of_size_[size] |= std::uint64_t{1} << next_;
    }
    ++next_;
    return true;
  }
  Place WriteList(const std::vector<Place>& places) {
    return Place(out_.CreateVector(places.data(), places.size()).o);
  }
  template <class M>
  Place WriteFixedList(const std::vector<M>& all, bool by_size) {
    constexpr std::size_t kSize = kFixedSize<M>.end, kAlignment = kFixedSize<M>.alignment;
    out_.StartBytes(all.size() * kSize, by_size ? kSize : kAlignment);
    std::uint8_t* to = out_.Space(all.size() * kSize);
    for (std::size_t i = 0; i < all.size(); ++i) WriteFixed(all[i], to + i * kSize);
    return Place(out_.EndVector(all.size()));
  }
  void Write(int size, int field);
  void WriteFromLast(int size);

  Builder& out_;
  int next_ = 0;
  bool in_order_ = false;
  std::uint64_t bits_[kFieldsMax];  // of the fields that are said
  std::uint64_t of_size_[4] = {};   // which fields of 1, 2, 4 and 8 bytes are said
  std::uint64_t places_ = 0;        // which of these are places
  int fixed_ = -1;                  // the struct, of `fixed_bytes_` bytes
  std::size_t fixed_bytes_ = 0;
  std::uint8_t image_[kFixedBytesMax] = {};
};

template <class M>
Place WriteTable(Builder& out, const M& m) {
  TableWriter writer(out);
  FieldsOf(writer, m);
  return writer.Finish();
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_WRITE_FIELDS_H_
