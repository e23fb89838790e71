#include "compress/common/options.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/messages/limits.h"
#include "proto/tables/text.h"

namespace leeway::compress {
namespace {

std::string NameOf(const NumberOption& option) {
  return std::string(option.name.empty() ? option.what : option.name);
}

std::string Known(std::initializer_list<NumberOption> known) {
  if (known.size() == 0) return "it has none";
  return absl::StrCat("it has ",
                      absl::StrJoin(known, ", ", [](std::string* out, const NumberOption& option) {
                        absl::StrAppend(out, NameOf(option));
                      }));
}

absl::Status ReadNumber(absl::string_view codec, const NumberOption& option,
                        absl::string_view text) {
  double value = 0;
  const bool number = absl::SimpleAtod(text, &value) && std::isfinite(value);
  const bool in_range = number && value >= option.low && value <= option.high &&
                        !(option.low_open && value == option.low) &&
                        !(option.whole && value != std::trunc(value));
  if (in_range) {
    *option.value = value;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec ", codec, ": ", NameOf(option), " is ", text, ", may be ",
                   option.whole ? "a whole number " : "", option.low_open ? "above " : "from ",
                   option.low, option.low_open ? " and at most " : " to ", option.high));
}

}  // namespace

absl::StatusOr<CodecText> ParseCodecText(absl::string_view text) {
  if (text.size() > proto::kNameBytesMax) {  // longer than a table's description can hold
    return absl::InvalidArgumentError(absl::StrCat("codec ", proto::Quoted(text.substr(0, 60)),
                                                   " is ", text.size(), " bytes long, may be ",
                                                   proto::kNameBytesMax));
  }
  if (!proto::IsClean(text, proto::Lines::kOne)) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", proto::Quoted(text), " has characters that cannot be printed"));
  }
  const std::size_t end = std::min(text.find_first_of(":,"), text.size());
  CodecText parsed{.name = std::string(text.substr(0, end)), .options = {}};
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec '", text, "' ", what..., "; it is NAME[:VALUE][,KEY=VALUE…]"));
  };
  if (parsed.name.empty()) return wrong("has no name");
  if (end == text.size()) return parsed;
  if (end + 1 == text.size()) return wrong("ends with '", text.substr(end), "'");
  bool first = text[end] == ':';
  for (const absl::string_view option : absl::StrSplit(text.substr(end + 1), ',')) {
    const auto equals = option.find('=');
    if (option.empty() || equals == 0) return wrong("has an empty option");
    if (equals == absl::string_view::npos && !first)
      return wrong("has '", option, "' without a key");
    const std::string key(equals == absl::string_view::npos ? "" : option.substr(0, equals));
    const std::string value(equals == absl::string_view::npos ? option : option.substr(equals + 1));
    if (!parsed.options.emplace(key, value).second) return wrong("has option '", key, "' twice");
    first = false;
  }
  return parsed;
}

absl::Status ReadOptions(absl::string_view codec, const CodecOptions& given,
                         std::initializer_list<NumberOption> known) {
  for (const auto& [name, text] : given) {
    const auto found = std::find_if(
        known.begin(), known.end(),
        [&wanted = name](const NumberOption& option) { return option.name == wanted; });
    if (found == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "codec ", codec, " has no option ",
          name.empty() ? absl::StrCat("without a key (", text, ")") : name, "; ", Known(known)));
    }
    if (absl::Status read = ReadNumber(codec, *found, text); !read.ok()) return read;
  }
  return absl::OkStatus();
}

absl::Status NumberChoice(absl::string_view codec, absl::string_view option,
                          std::initializer_list<absl::string_view> choices, CodecOptions* options) {
  const auto given = options->find(std::string(option));
  if (given == options->end()) return absl::OkStatus();
  const auto found = std::find(choices.begin(), choices.end(), given->second);
  if (found == choices.end()) {
    return absl::InvalidArgumentError(absl::StrCat("codec ", codec, ": ", option, " is ",
                                                   given->second, ", may be ",
                                                   absl::StrJoin(choices, " or ")));
  }
  given->second = absl::StrCat(std::distance(choices.begin(), found));
  return absl::OkStatus();
}

}  // namespace leeway::compress
