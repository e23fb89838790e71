#include "runtime/sim/sim_shared_folder.h"

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace leeway::runtime {

SimFileSystem* SimSharedFolder::At(const std::string& path) const {
  const bool shared = path == folder_ || absl::StartsWith(path, folder_ + "/");
  return (shared ? server_ : disk_).get();
}

absl::Status SimSharedFolder::Rename(const std::string& from, const std::string& to) {
  if (At(from) == At(to)) return At(from)->Rename(from, to);
  return absl::ErrnoToStatus(EXDEV, absl::StrCat("cannot rename ", from, " to ", to));
}

}  // namespace leeway::runtime
