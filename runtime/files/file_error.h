// FileError makes the status of a failed system call about a file; real and simulated files use the
// same text.
#ifndef LEEWAY_RUNTIME_FILES_FILE_ERROR_H_
#define LEEWAY_RUNTIME_FILES_FILE_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

// `error` is an errno; `what` is the verb of what failed: "open" gives "cannot open PATH".
inline absl::Status FileError(int error, absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_FILES_FILE_ERROR_H_
