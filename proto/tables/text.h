// CheckText checks texts from elsewhere: names, reasons, addresses. They are shown to people and
// written to logs, so they have to be short, and UTF-8 without control characters.
#ifndef LEEWAY_PROTO_TABLES_TEXT_H_
#define LEEWAY_PROTO_TABLES_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway::proto {

// kMany allows line ends and tabs: a user's own error may have several lines.
enum class Lines { kOne, kMany };

// True for valid UTF-8 without control characters.
bool IsClean(absl::string_view text, Lines lines);

// INVALID_ARGUMENT unless clean and of `min` to `max` bytes: "name is 300 bytes long, may be …".
absl::Status CheckText(absl::string_view field, absl::string_view text, std::size_t min,
                       std::size_t max, Lines lines = Lines::kOne);

// At most the first `max` bytes, cut at the end of a character.
absl::string_view Cut(absl::string_view text, std::size_t max);

// The text with '?' in place of every byte that makes it unclean.
std::string Cleaned(absl::string_view text, Lines lines);

// The text in quotes, on one line, with escapes.
std::string Quoted(absl::string_view text);

// Likewise; of a long text the beginning and its length. For messages about a user's input.
std::string QuotedBriefly(absl::string_view text);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_TABLES_TEXT_H_
