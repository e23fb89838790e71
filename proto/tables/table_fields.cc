#include "proto/tables/table_fields.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/tables/table_texts.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto {
namespace {

absl::Status NotOf(absl::string_view field, absl::string_view text, absl::string_view forms) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", QuotedBriefly(text), ": it is ", forms));
}

std::optional<double> FiniteNumber(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

template <class Enum, std::size_t n>
absl::Status SetEnum(Enum* value, absl::string_view field, absl::string_view text,
                     const absl::string_view (&texts)[n]) {
  const std::optional<Enum> known = EnumOf<Enum>(texts, text);
  if (!known.has_value()) {
    return NotOf(field, text, absl::StrCat("one of ", absl::StrJoin(texts, ", ")));
  }
  *value = *known;
  return absl::OkStatus();
}

constexpr absl::string_view kInitializers =
    "zeros, constant:VALUE, uniform:LOW,HIGH[,seed=N], normal:MEAN,STDDEV[,seed=N] or pushed";

}  // namespace

absl::StatusOr<UpdaterSpec> ParseUpdater(absl::string_view text) {
  constexpr absl::string_view kForms = "NAME or NAME:PARAMETER=NUMBER,…";
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  UpdaterSpec spec;
  spec.name = std::string(halves.first);
  if (halves.first.size() == text.size()) return spec;
  for (const absl::string_view one : absl::StrSplit(halves.second, ',')) {
    const std::pair<absl::string_view, absl::string_view> parameter =
        absl::StrSplit(one, absl::MaxSplits('=', 1));
    const std::optional<double> value = FiniteNumber(parameter.second);
    if (!value.has_value() || parameter.first.empty()) {
      return NotOf("updater", text,
                   absl::StrCat(kForms, ", and ", QuotedBriefly(one), " is no PARAMETER=NUMBER"));
    }
    if (!spec.parameters.emplace(std::string(parameter.first), *value).second) {
      return NotOf("updater", text,
                   absl::StrCat(kForms, ", and has ", QuotedBriefly(parameter.first), " twice"));
    }
  }
  return spec;
}

absl::StatusOr<Initializer> ParseInitializer(absl::string_view text) {
  // Texts of their own: absl splits a view of no text at all into no parts.
  const std::pair<std::string, std::string> halves = absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (text == "zeros") return Initializer::Zeros();
  if (text == "pushed") return Initializer::Pushed();
  std::vector<absl::string_view> parts = absl::StrSplit(halves.second, ',');
  std::uint64_t seed = 0;
  absl::string_view seed_text = parts.back();
  const bool random = halves.first == "uniform" || halves.first == "normal";
  if (random && parts.size() == 3 && absl::ConsumePrefix(&seed_text, "seed=") &&
      absl::SimpleAtoi(seed_text, &seed)) {
    parts.pop_back();
  }
  const std::optional<double> a = FiniteNumber(parts.front());
  const std::optional<double> b = FiniteNumber(parts.back());
  if (!a.has_value() || !b.has_value() || parts.size() != (random ? 2 : 1)) {
    return NotOf("initializer", text, kInitializers);
  }
  if (halves.first == "constant") return Initializer::Constant(*a);
  if (halves.first == "uniform") return Initializer::Uniform(*a, *b, seed);
  if (halves.first == "normal") return Initializer::Normal(*a, *b, seed);
  return NotOf("initializer", text, kInitializers);
}

absl::Status SetField(TableSpec* spec, absl::string_view field, absl::string_view text) {
  if (field == "updater") {
    LEEWAY_ASSIGN_OR_RETURN(spec->updater, ParseUpdater(text));
  } else if (field == "initializer") {
    LEEWAY_ASSIGN_OR_RETURN(spec->initializer, ParseInitializer(text));
  } else if (field == "consistency") {
    LEEWAY_ASSIGN_OR_RETURN(spec->consistency, Consistency::Parse(text));
  } else if (field == "aggregate") {
    return SetEnum(&spec->aggregate, field, text, kAggregates);
  } else if (field == "nonfinite") {
    return SetEnum(&spec->nonfinite, field, text, kNonFinites);
  } else if (field == "error_feedback") {
    return SetEnum(&spec->error_feedback, field, text, kErrorFeedbacks);
  } else if (field == "codec") {
    spec->codec = std::string(text);
  } else if (field == "codecs") {
    spec->codecs = absl::StrSplit(text, ' ', absl::SkipEmpty());
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("a table has no field ", QuotedBriefly(field),
                     ": there are updater, initializer, consistency, aggregate, nonfinite, codec, "
                     "codecs and error_feedback"));
  }
  return absl::OkStatus();
}

absl::Status AddChange(TableChange* change, absl::string_view name, absl::string_view text) {
  if (name == "consistency") {
    LEEWAY_ASSIGN_OR_RETURN(change->consistency, Consistency::Parse(text));
    return absl::OkStatus();
  }
  if (name == "nonfinite") {
    return SetEnum(&change->nonfinite.emplace(), name, text, kNonFinites);
  }
  const std::optional<double> value = FiniteNumber(text);
  if (!value.has_value() && !text.empty()) {
    return NotOf(name, text, "a number, or empty for the default");
  }
  change->parameters[std::string(name)] = value;
  return absl::OkStatus();
}

}  // namespace leeway::proto
