// The fields of a table's description as text, for messages.
#ifndef LEEWAY_PROTO_TABLES_TABLE_TEXTS_H_
#define LEEWAY_PROTO_TABLES_TABLE_TEXTS_H_

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "leeway/table_spec.h"
#include "proto/tables/text.h"

namespace leeway::proto {

// An enum's text, or its number if it has none: a description from elsewhere must be printable
// before it has been checked.
template <std::size_t n>
std::string Text(const absl::string_view (&texts)[n], unsigned value) {
  return value < n ? std::string(texts[value]) : absl::StrCat("unknown (", value, ")");
}

inline constexpr absl::string_view kKinds[] = {"dense", "sparse", "ragged"};
inline constexpr absl::string_view kAggregates[] = {"sum", "mean"};
inline constexpr absl::string_view kNonFinites[] = {"count", "refuse"};
inline constexpr absl::string_view kErrorFeedbacks[] = {"auto", "off", "worker", "server", "both"};

// The number whose text that is, of an enum with those texts; nullopt: it is none of them.
template <class Enum, std::size_t n>
std::optional<Enum> EnumOf(const absl::string_view (&texts)[n], absl::string_view text) {
  const auto* const found = std::find(std::begin(texts), std::end(texts), text);
  if (found == std::end(texts)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(texts));
}

// The shortest text that reads back as the same number.
inline std::string Exact(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

inline std::string InitializerText(const Initializer& init) {
  switch (init.kind) {
    case Initializer::Kind::kZeros:
      return "zeros";
    case Initializer::Kind::kPushed:
      return "pushed";
    case Initializer::Kind::kConstant:
      return absl::StrCat("constant(", Exact(init.a), ")");
    case Initializer::Kind::kUniform:
      return absl::StrCat("uniform(", Exact(init.a), ", ", Exact(init.b), ", seed ", init.seed,
                          ")");
    case Initializer::Kind::kNormal:
      return absl::StrCat("normal(", Exact(init.a), ", ", Exact(init.b), ", seed ", init.seed, ")");
  }
  return absl::StrCat("unknown (", static_cast<unsigned>(init.kind), ")");
}

inline std::string UpdaterText(const UpdaterSpec& updater) {
  const std::string parameters = absl::StrJoin(
      updater.parameters, ", ", [](std::string* out, const std::pair<std::string, double>& entry) {
        absl::StrAppend(out, Quoted(entry.first), ": ", Exact(entry.second));
      });
  return absl::StrCat(Quoted(updater.name), " {", parameters, "}");
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TABLES_TABLE_TEXTS_H_
