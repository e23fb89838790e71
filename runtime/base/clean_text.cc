#include "runtime/base/clean_text.h"

#include <cstdint>

namespace leeway::runtime {

std::size_t CleanLength(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
  if (length == 0 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  // 0x80–0x9f are control characters.
  constexpr std::uint32_t kSmallest[] = {0, 0, 0xa0, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10ffff) return 0;
  return code >= 0xd800 && code <= 0xdfff ? 0 : length;  // surrogates are not characters
}

bool IsCleanText(absl::string_view text) {
  while (!text.empty()) {
    const std::size_t length = CleanLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace leeway::runtime
