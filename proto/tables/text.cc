#include "proto/tables/text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/clean_text.h"

namespace leeway::proto {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The bytes of the clean character that `text` (not empty) starts with; 0 if there is none.
std::size_t CleanLength(absl::string_view text, Lines lines) {
  if (lines == Lines::kMany && (text[0] == '\n' || text[0] == '\t')) return 1;
  return runtime::CleanLength(text);
}

}  // namespace

bool IsClean(absl::string_view text, Lines lines) {
  while (!text.empty()) {
    const std::size_t length = CleanLength(text, lines);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

absl::Status CheckText(absl::string_view field, absl::string_view text, std::size_t min,
                       std::size_t max, Lines lines) {
  if (text.size() < min || text.size() > max) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", text.size(), " bytes long, may be ", min, " to ", max));
  }
  if (!IsClean(text, lines)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is ", Quoted(Cut(text, 64)),
                                                   ", may be UTF-8 without control characters"));
  }
  return absl::OkStatus();
}

absl::string_view Cut(absl::string_view text, std::size_t max) {
  if (text.size() <= max) return text;
  std::size_t end = max;
  // Three bytes back at most: text that is not UTF-8 is cut anywhere.
  while (end > 0 && max - end < 3 && IsContinuation(text[end])) --end;
  return text.substr(0, IsContinuation(text[end]) ? max : end);
}

std::string Cleaned(absl::string_view text, Lines lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = CleanLength(text, lines);
    if (length == 0) {
      result.push_back('?');
      text.remove_prefix(1);
    } else {
      result.append(text.data(), length);
      text.remove_prefix(length);
    }
  }
  return result;
}

std::string Quoted(absl::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = CleanLength(text, Lines::kOne);
    if (length == 0 || text[0] == '"' || text[0] == '\\') {
      result += absl::CEscape(text.substr(0, 1));
      text.remove_prefix(1);
    } else {
      result.append(text.data(), length);
      text.remove_prefix(length);
    }
  }
  result.push_back('"');
  return result;
}

std::string QuotedBriefly(absl::string_view text) {
  constexpr std::size_t kShownMax = 64;
  if (text.size() <= kShownMax) return Quoted(text);
  return absl::StrCat(Quoted(Cut(text, kShownMax)), "… (", text.size(), " bytes)");
}

}  // namespace leeway::proto
