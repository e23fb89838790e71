#include "tools/launch/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace leeway::launch {

std::string Prefixed(absl::string_view name, std::size_t index, absl::string_view line,
                     bool coloured) {
  if (!coloured) return absl::StrCat(name, " | ", line, "\n");
  constexpr const char* kColours[] = {"36", "33", "32", "35", "34", "31",
                                      "96", "93", "92", "95", "94", "91"};
  return absl::StrCat("\033[", kColours[index % std::size(kColours)], "m", name, " |\033[0m ", line,
                      "\n");
}

bool WantsColour(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(fd) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote >= 0) {
      text.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno == EAGAIN) {
      pollfd ready = {fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool PrintPrefixed(absl::string_view name, std::size_t index, Stream stream,
                   absl::string_view line) {
  const int fd = stream == Stream::kOutput ? STDOUT_FILENO : STDERR_FILENO;
  return WriteAll(fd, Prefixed(name, index, line, WantsColour(fd)));
}

}  // namespace leeway::launch
