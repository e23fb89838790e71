// Prints the lines of several processes so that one can tell whose they are.
#ifndef LEEWAY_TOOLS_LAUNCH_OUTPUT_H_
#define LEEWAY_TOOLS_LAUNCH_OUTPUT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/launch/supervisor.h"

namespace leeway::launch {

// "server 1 | line", the name in a colour of its own if asked for.
std::string Prefixed(absl::string_view name, std::size_t index, absl::string_view line,
                     bool coloured);

// Whether people look at it and have not asked for plain text (https://no-color.org).
bool WantsColour(int fd);

// Writes all of it; false if it cannot be written any more.
bool WriteAll(int fd, absl::string_view text);

// What most callers want as on_line: every line goes where it came from, prefixed.
bool PrintPrefixed(absl::string_view name, std::size_t index, Stream stream,
                   absl::string_view line);

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_OUTPUT_H_
