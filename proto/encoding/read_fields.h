// TableReader is the visitor that decodes: it reads a table of FlatBuffers into a message, and
// believes nothing. Before a field is read, FlatBuffers' verifier says that it lies within the
// header, and what it holds is checked against its description.
#ifndef LEEWAY_PROTO_ENCODING_READ_FIELDS_H_
#define LEEWAY_PROTO_ENCODING_READ_FIELDS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "flatbuffers/flatbuffers.h"
#include "proto/encoding/fixed.h"
#include "proto/messages/fields.h"
#include "proto/tables/text.h"
#include "runtime/memory/buffer.h"

namespace leeway::proto {

// A header while it is decoded, and what is wrong with it.
class Input {
 public:
  // As many as there are in the largest honest message, a map of the largest cluster.
  static constexpr flatbuffers::uoffset_t kTablesMax =
      kServersMax + kWorkersMax + kParametersMax + 8;

  Input(const std::uint8_t* header, std::size_t size);

  flatbuffers::Verifier verifier;
  // A bound on the texts still to be read. FlatBuffers let many offsets share one text, so that a
  // small header could unfold into gigabytes. An honest header shares nothing: its texts together
  // are no longer than itself.
  std::size_t text_bytes_left;

  // What is wrong: all of these return false. The first one said stays.
  bool Broken();  // its structure
  bool Refuse(absl::string_view lead, absl::string_view field, absl::string_view rest);
  bool RefuseRange(absl::string_view lead, const char* field, std::uint64_t value,
                   const Range& may_be);
  // `field` is one of a table `name`, or of the entry `index` of a list `name`.
  bool Within(const char* name, std::size_t index);
  static constexpr std::size_t kNoIndex = ~std::size_t{0};
  // The error of the message of that type.
  absl::Status Error(absl::string_view type) const;

 private:
  bool broken_ = false;
  std::string lead_, field_, rest_;
};

// " is 70000, may be 0 to 65535".
std::string OutOfRange(std::uint64_t value, std::uint64_t min, std::uint64_t max);

[[gnu::always_inline]] inline bool CheckNumber(Input& in, const char* name, std::uint64_t value,
                                               const Range& may_be, const char* lead = "") {
  if (value >= may_be.least() && value <= may_be.most()) [[likely]]
    return true;
  return in.RefuseRange(lead, name, value, may_be);
}
bool CheckFraction(Input& in, const char* name, double value, const Fraction& may_be);

// A list as it lies in the header.
struct RawList {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  // The text or table that its entry `i` leads to.
  const std::uint8_t* Target(std::size_t i) const {
    const std::uint8_t* const at = data + i * sizeof(flatbuffers::uoffset_t);
    return at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at);
  }
};

// The visitor for a struct.
class FixedReader {
 public:
  FixedReader(Input& in, const std::uint8_t* from) : in_(in), from_(from) {}

  template <class T, class Check = Range>
  [[gnu::always_inline]] bool operator()(const char* name, T& to, const Check& check = {}) {
    using Wire = WireOf<T, Check>;
    at_ = (at_ + sizeof(Wire) - 1) / sizeof(Wire) * sizeof(Wire);
    const Wire value = flatbuffers::ReadScalar<Wire>(from_ + at_);
    at_ += sizeof(Wire);
    to = static_cast<T>(value);
    return CheckNumber(in_, name, static_cast<std::uint64_t>(value), check);
  }

 private:
  Input& in_;
  const std::uint8_t* from_;
  std::size_t at_ = 0;
};

template <class M>
bool ReadTable(Input& in, const std::uint8_t* table, M* to);

class TableReader {
 public:
  TableReader(Input& in, const std::uint8_t* table) : in_(in), table_(table) {}

  // False if there is no table at that place. To be called before all else.
  bool Begin() {
    if (!in_.verifier.VerifyTableStart(table_)) return in_.Broken();
    fields_ = table_ - flatbuffers::ReadScalar<flatbuffers::soffset_t>(table_);
    fields_end_ = flatbuffers::ReadScalar<flatbuffers::voffset_t>(fields_);
    return true;
  }

  // The visitor.
  [[gnu::always_inline]] bool At(int field) {
    next_ = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(field));
    return true;
  }
  [[gnu::always_inline]] bool InOrder() { return true; }

  template <Number T, class Check = Range>
  [[gnu::always_inline]] bool operator()(const char* name, T& to, const Check& check = {}) {
    using Wire = WireOf<T, Check>;
    Wire value = static_cast<Wire>(check.unsaid);
    if (!Take(&value)) return false;
    if (check.lenient && static_cast<std::uint64_t>(value) > check.max) value = 0;
    if constexpr (std::is_same_v<T, bool>) value = value != 0;
    to = static_cast<T>(value);
    return std::is_signed_v<Wire> ||
           CheckNumber(in_, name, static_cast<std::uint64_t>(value), check);
  }
  [[gnu::always_inline]] bool operator()(const char* name, double& to, const Fraction& check = {}) {
    double value = check.unsaid;
    if (!Take(&value)) return false;
    to = check.present ? value : check.unsaid;
    return (check.applies && check.kind == Fraction::Kind::kAnything) || !check.present ||
           CheckFraction(in_, name, value, check);
  }
  bool operator()(const char* name, std::string& to, const Utf8& check) {
    return TakeText(name, check, Lines::kOne, &to);
  }
  bool operator()(const char* name, std::string& to, const Reason& check) {
    return TakeText(name, {0, check.max}, Lines::kMany, &to);
  }
  bool operator()(absl::Status& to, const Result& check = {});
  bool operator()(const char* name, Consistency& to);
  bool operator()(const char* name, std::map<std::string, double>& to, const Fraction& each = {});
  bool operator()(const char* name, std::vector<std::string>& to, const Count& check,
                  const Utf8& each);
  template <class T>
  requires std::is_arithmetic_v<T>
  bool operator()(const char* name, std::vector<T>& to, const Count& check, const Fraction& each) {
    RawList list;
    if (!TakeList(name, sizeof(T), sizeof(T), check, &list)) return false;
    to.resize(list.size);
    for (std::size_t i = 0; i < list.size; ++i) {
      to[i] = flatbuffers::ReadScalar<T>(list.data + i * sizeof(T));
      if (each.kind == Fraction::Kind::kAnything) continue;
      if (!CheckFraction(in_, "", static_cast<double>(to[i]), each)) return in_.Within(name, i);
    }
    return true;
  }
  template <class M>
  bool operator()(const char* name, std::vector<M>& to, const Count& check) {
    RawList list;
    if constexpr (Fixed<M>) {
      constexpr FixedSize kSize = kFixedSize<M>;
      if (!TakeList(name, kSize.end, kSize.alignment, check, &list)) return false;
      to.resize(list.size);
      for (std::size_t i = 0; i < list.size; ++i) {
        FixedReader reader(in_, list.data + i * kSize.end);
        if (!M::FixedFields(reader, to[i])) return in_.Within(name, i);
      }
    } else {
      if (!TakePlaces(name, check, &list)) return false;
      to.resize(list.size);
      for (std::size_t i = 0; i < list.size; ++i) {
        if (!ReadTable(in_, list.Target(i), &to[i])) return in_.Within(name, i);
      }
    }
    return true;
  }
  template <Fixed M>
  [[gnu::always_inline]] bool operator()(const char* name, M& to) {
    const flatbuffers::voffset_t at = Next();
    if (at == 0) return in_.Refuse("", name, " is missing");
    if (!in_.verifier.VerifyFieldStruct(table_, at, kFixedSize<M>.end, kFixedSize<M>.alignment)) {
      return in_.Broken();
    }
    FixedReader reader(in_, table_ + at);
    return M::FixedFields(reader, to) || in_.Within(name, Input::kNoIndex);
  }
  template <class M>
  bool operator()(const char* name, M& to, const Nested& check) {
    const std::uint8_t* place = nullptr;
    if (!TakePlace(&place)) return false;
    if (check.present != (place != nullptr)) {
      return in_.Refuse("", name, check.present ? " is missing" : " is there, may be missing");
    }
    if (!check.present) return true;
    return ReadTable(in_, place, &to) || in_.Within(name, Input::kNoIndex);
  }

  // The next field's number, or the place that it leads to; null if it is not there.
  template <class Wire>
  [[gnu::always_inline]] bool Take(Wire* to) {
    const flatbuffers::voffset_t at = Next();
    if (at == 0) return true;
    if (!in_.verifier.VerifyField<Wire>(table_, at, sizeof(Wire))) [[unlikely]]
      return in_.Broken();
    *to = flatbuffers::ReadScalar<Wire>(table_ + at);
    return true;
  }
  bool TakePlace(const std::uint8_t** to);

 private:
  // Where the next field lies in the table; 0 if it is not there.
  [[gnu::always_inline]] flatbuffers::voffset_t Next() {
    const flatbuffers::voffset_t field = next_;
    next_ += sizeof(field);
    return field < fields_end_ ? flatbuffers::ReadScalar<flatbuffers::voffset_t>(fields_ + field)
                               : flatbuffers::voffset_t{0};
  }
  bool TakeText(const char* name, const Utf8& check, Lines lines, std::string* to);
  bool ReadText(const char* name, const std::uint8_t* place, const Utf8& check, Lines lines,
                std::string* to);
  bool TakeList(const char* name, std::size_t entry_bytes, std::size_t alignment,
                const Count& check, RawList* to);
  // A list of texts or tables.
  bool TakePlaces(const char* name, const Count& check, RawList* to) {
    if (!TakeList(name, sizeof(flatbuffers::uoffset_t), 1, check, to)) return false;
    return to->size <= Input::kTablesMax || in_.Broken();
  }

  Input& in_;
  const std::uint8_t* table_;
  const std::uint8_t* fields_ = nullptr;  // where each field lies in the table
  flatbuffers::voffset_t fields_end_ = 0, next_ = flatbuffers::FieldIndexToOffset(0);
};

template <class M>
bool ReadTable(Input& in, const std::uint8_t* table, M* to) {
  TableReader reader(in, table);
  return reader.Begin() && FieldsOf(reader, *to);
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_READ_FIELDS_H_
