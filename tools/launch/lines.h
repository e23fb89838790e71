// Lines cuts a stream of bytes into lines.
#ifndef LEEWAY_TOOLS_LAUNCH_LINES_H_
#define LEEWAY_TOOLS_LAUNCH_LINES_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace leeway::launch {

class Lines {
 public:
  // A longer line is passed on in parts of this size.
  static constexpr std::size_t kLineBytesMax = 64 << 10;

  explicit Lines(std::function<void(absl::string_view)> on_line) : on_line_(std::move(on_line)) {}

  void Add(absl::string_view bytes);
  // The stream has ended: the rest of a line counts as one.
  void End();

 private:
  std::function<void(absl::string_view)> on_line_;
  std::string pending_;
};

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_LINES_H_
