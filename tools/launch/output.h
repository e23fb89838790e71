// PrintPrefixed prints the lines of several processes, each with the name of its process.
#ifndef LEEWAY_TOOLS_LAUNCH_OUTPUT_H_
#define LEEWAY_TOOLS_LAUNCH_OUTPUT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/launch/supervisor.h"

namespace leeway::launch {

// "server 1 | line"; `colour`: each name in a colour of its own.
std::string Prefixed(absl::string_view name, std::size_t index, absl::string_view line,
                     bool coloured);

// True if the output is a terminal and plain text is not asked for (https://no-color.org).
bool WantsColour(int fd);

// Writes all of the text; false if it cannot be written any more.
bool WriteAll(int fd, absl::string_view text);

// The usual on_line: prints each line, prefixed, to the stream that it came from.
bool PrintPrefixed(absl::string_view name, std::size_t index, Stream stream,
                   absl::string_view line);

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_OUTPUT_H_
