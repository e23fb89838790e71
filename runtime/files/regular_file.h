// Opening files, and nothing else: whatever stands in a file's place (a pipe that nobody writes to,
// a device, a socket) is an error that says so, and never waited for.
#ifndef LEEWAY_RUNTIME_FILES_REGULAR_FILE_H_
#define LEEWAY_RUNTIME_FILES_REGULAR_FILE_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

// "a pipe", for a mode that is no regular file's.
absl::string_view KindName(mode_t mode);

// The descriptor, which is the caller's to close. `what` is what cannot be done if there is an
// error: "open". FAILED_PRECONDITION: it is no file.
absl::StatusOr<int> OpenRegularFile(const std::string& path, int flags, absl::string_view what);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_FILES_REGULAR_FILE_H_
