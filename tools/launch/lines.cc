#include "tools/launch/lines.h"

#include <algorithm>

namespace leeway::launch {

void Lines::Add(absl::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t room = kLineBytesMax - pending_.size();
    const std::size_t size = std::min({end, bytes.size(), room});
    pending_.append(bytes.data(), size);
    bytes.remove_prefix(size);
    const bool ended = !bytes.empty() && bytes.front() == '\n';
    if (ended) bytes.remove_prefix(1);
    if (ended || pending_.size() == kLineBytesMax) {
      on_line_(pending_);
      pending_.clear();
    }
  }
}

void Lines::End() {
  if (!pending_.empty()) on_line_(pending_);
  pending_.clear();
}

}  // namespace leeway::launch
