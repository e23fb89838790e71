// True if `text` is valid UTF-8 without control characters. The empty text is clean.
#ifndef LEEWAY_RUNTIME_BASE_CLEAN_TEXT_H_
#define LEEWAY_RUNTIME_BASE_CLEAN_TEXT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

// Returns the length in bytes of the UTF-8 character that `text` (not empty) starts with; 0 if that
// is a control character or not valid UTF-8.
std::size_t CleanLength(absl::string_view text);

// UTF-8 without control characters.
bool IsCleanText(absl::string_view text);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_CLEAN_TEXT_H_
