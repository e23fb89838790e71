// The words in which messages describe their fields. A message has a function `Fields(v, m)`, which
// calls the visitor `v` with the name of each field on the wire, the member of `m` that holds it,
// and what it may hold. Encoding, decoding, checks, the schema in docs/wire-format.md and tests are
// visitors (proto/encoding/, proto/testing/).
//
// The order of the calls numbers the fields: a new one comes last. Where another order is needed,
// v.At(n) says the number of the next one. A type with FixedFields in place of Fields is a struct
// of FlatBuffers: always whole, and never changed. What depends on several fields is checked in
// proto/encoding/check_meaning.cc.
#ifndef LEEWAY_PROTO_MESSAGES_FIELDS_H_
#define LEEWAY_PROTO_MESSAGES_FIELDS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "leeway/config.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "proto/messages/limits.h"

namespace leeway::proto {

inline constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// The name of a type without its namespace, as a message is called in logs and errors.
template <class T>
constexpr absl::string_view TypeName() {
  absl::string_view text = __PRETTY_FUNCTION__;  // "… [with T = leeway::proto::Hello; …]"
  text.remove_prefix(text.find("T = ") + 4);
  text.remove_suffix(text.size() - text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

template <class T>
concept Number = std::integral<T> || std::is_enum_v<T>;

// A type that is a struct of FlatBuffers.
template <class T>
concept Fixed = requires(T& m) {
  {std::remove_cvref_t<T>::FixedFields(m, m)};
};

// What a number without a sign, an enum or a flag may be: from `min` to `max`.
struct Range {
  std::uint64_t min = 0, max = kAny;
  const char* words = "";   // "min to max" in words, if they depend on other fields
  bool applies = true;      // otherwise the field must be 0
  const char* when = "";    // "only …"
  std::int64_t unsaid = 0;  // what a field that is left out holds
  bool lenient = false;     // what is outside is read as 0

  constexpr Range When(bool condition, const char* only) const {
    return {min, max, words, condition, only, unsaid, lenient};
  }
  constexpr Range Unsaid(std::int64_t value) const {
    return {min, max, words, applies, when, value, lenient};
  }
  constexpr std::uint64_t least() const { return applies ? min : 0; }
  constexpr std::uint64_t most() const { return applies ? max : 0; }
};
// A number that has 32 bits here and 16 on the wire.
struct Range16 : Range {};

constexpr Range AtLeast(std::uint64_t min, const char* words = "") {
  return {.min = min, .words = words};
}
constexpr Range UpTo(std::uint64_t max, const char* words = "") {
  return {.max = max, .words = words};
}
constexpr Range Below(std::uint64_t end, const char* words = "") { return UpTo(end - 1, words); }
template <class Enum>
constexpr Range FromTo(Enum first, Enum last) {
  return {.min = static_cast<std::uint64_t>(first), .max = static_cast<std::uint64_t>(last)};
}

inline constexpr Range kTableKinds = FromTo(TableKind::kDense, TableKind::kRagged);
inline constexpr Range kDTypes = FromTo(DType::kFloat32, DType::kInt64);
inline constexpr Range kGroups = FromTo(Group::kWorkers, Group::kAll);
inline constexpr Range kRoles = FromTo(Role::kScheduler, Role::kReader);
inline constexpr Range kNonFinitePolicies = FromTo(NonFinite::kCount, NonFinite::kRefuse);
inline constexpr Range kCombines = FromTo(Updater::Combine::kSum, Updater::Combine::kLast);
inline constexpr Range kWorkerRank = Below(kWorkersMax);
inline constexpr Range kServerRank = Below(kServersMax);
inline constexpr Range kShard = Below(kShardsMax);

// What a fraction may be.
struct Fraction {
  enum class Kind : std::uint8_t { kAnything, kFinite, kNotNegative, kPositive };
  Kind kind = Kind::kAnything;
  bool applies = true;  // otherwise it holds `unsaid`
  bool present = true;  // otherwise it is neither sent nor read
  const char* when = "";
  double unsaid = 0;
};
inline constexpr Fraction kFinite{.kind = Fraction::Kind::kFinite};
inline constexpr Fraction kPositive{.kind = Fraction::Kind::kPositive};

// How many bytes a text may have. It is UTF-8 without control characters.
struct Utf8 {
  std::size_t min = 0, max = 0;
  bool cut = false;  // by the sender, if it is longer
};
inline constexpr Utf8 kName{1, kNameBytesMax, true};
inline constexpr Utf8 kNameOrNone{0, kNameBytesMax, true};
inline constexpr Utf8 kAddress{1, kAddressBytesMax, true};
// Half of one means something else: these are never cut.
inline constexpr Utf8 kCommand{1, kNameBytesMax};
inline constexpr Utf8 kPath{1, kPathBytesMax};
// A text for people, perhaps of several lines. Its sender cuts and cleans it.
struct Reason {
  std::size_t max = kReasonBytesMax;
};

// What an absl::Status may be, which is two fields on the wire: `code` and `reason`.
struct Result {
  bool error = false;  // it is never OK
  std::size_t reason_max = kReasonBytesMax;
};
inline constexpr Result kError{.error = true};

// How many entries a list may have.
struct Count {
  std::uint64_t min = 0, max = kAny;
  const char* words = "";  // as in Range
  bool applies = true;     // otherwise it must be empty
  const char* when = "";
  bool left_out = false;  // if it is empty
  bool by_size = false;   // its entries are aligned to their size (CreateUninitializedVector)

  constexpr Count When(bool condition, const char* only) const {
    return {min, max, words, condition, only, left_out, by_size};
  }
  constexpr Range range() const { return {.min = min, .max = max, .applies = applies}; }
};

// Whether a table within a table is there: it must be, or must not.
struct Nested {
  bool present = true;
  const char* when = "";
};

// How many entries may be in a batch, and settings in a map.
inline constexpr Count kBatchCount{.min = 1, .max = kPushesPerBatchMax, .by_size = true};
inline constexpr Count kTableSettingsCount{0, (kTableSettingsToldMax + 1) * kTablesMax};

// The fields of a learning rate, which is sent and read only if one of them says so.
bool RateFields(auto& v, auto& m, int rate, int has_rate, Range may_have = {}) {
  return v.At(has_rate) && v("has_learning_rate", m.has_learning_rate, may_have) && v.At(rate) &&
         v("learning_rate", m.learning_rate,
           Fraction{.kind = Fraction::Kind::kFinite,
                    .present = m.has_learning_rate,
                    .when = "if `has_learning_rate`"});
}

// A hyper-parameter of an updater, as an entry of a list on the wire. Here they are a std::map.
struct Parameter {
  std::string name;
  double value = 0;
  static bool Fields(auto& v, auto& m) { return v("name", m.name, kName) && v("value", m.value); }
};

template <class M>
bool FieldsOf(auto& v, M& m) {
  return std::remove_const_t<M>::Fields(v, m);
}

// The fields of a table's description, in the order in which they have always been written.
template <class M>
requires std::same_as<std::remove_const_t<M>, TableSpec>
bool FieldsOf(auto& v, M& m) {
  return v.InOrder() && v.At(6) && v("parameters", m.updater.parameters) && v.At(0) &&
         v("name", m.name, kName) && v("kind", m.kind) && v("dtype", m.dtype) &&
         v("shape", m.shape, Count{0, kDimensionsMax}, Fraction{}) && v("row_width", m.row_width) &&
         v("updater", m.updater.name, kName) && v.At(7) && v("init_kind", m.initializer.kind) &&
         v("init_a", m.initializer.a) && v("init_b", m.initializer.b) &&
         v("init_seed", m.initializer.seed) && v.At(14) && v("codec", m.codec, kName) &&
         v("error_feedback", m.error_feedback) &&
         v("codecs", m.codecs, Count{0, kTableCodecsMax}, kName) && v.At(11) &&
         v("consistency", m.consistency) && v("aggregate", m.aggregate) &&
         v("nonfinite", m.nonfinite);
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_FIELDS_H_
