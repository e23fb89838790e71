// OpenRegularFile opens regular files and nothing else: a pipe, a device or a socket at the path is
// an error that says so, and the call never waits for such a thing.
#ifndef LEEWAY_RUNTIME_FILES_REGULAR_FILE_H_
#define LEEWAY_RUNTIME_FILES_REGULAR_FILE_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

// A noun with its article for a mode that is not a regular file's: "a pipe".
absl::string_view KindName(mode_t mode);

// Opens `path` as open(2) does with `flags`. The caller closes the descriptor. `what` is the verb
// of an error's message: "open" gives "cannot open PATH". FAILED_PRECONDITION: not a regular file.
absl::StatusOr<int> OpenRegularFile(const std::string& path, int flags, absl::string_view what);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_FILES_REGULAR_FILE_H_
