// Text that can be shown to people and told to other processes.
#ifndef LEEWAY_RUNTIME_BASE_CLEAN_TEXT_H_
#define LEEWAY_RUNTIME_BASE_CLEAN_TEXT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

// The bytes of the character that `text` (not empty) starts with; 0 if that is a control character
// or no UTF-8.
std::size_t CleanLength(absl::string_view text);

// UTF-8 without control characters.
bool IsCleanText(absl::string_view text);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_CLEAN_TEXT_H_
