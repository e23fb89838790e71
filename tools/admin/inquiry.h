// Asking running nodes for what `leeway status` shows.
#ifndef LEEWAY_TOOLS_ADMIN_INQUIRY_H_
#define LEEWAY_TOOLS_ADMIN_INQUIRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "leeway/config.h"

namespace leeway::tools {

// The JSON that each of these addresses answers, all asked at once. Whoever has not answered
// within `patience`, or is not of that role, has an error that names it in its place.
std::vector<absl::StatusOr<std::string>> AskForStatus(const std::vector<std::string>& addresses,
                                                      Role role, absl::Duration patience,
                                                      const Config& config);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_ADMIN_INQUIRY_H_
