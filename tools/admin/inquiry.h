// AskForStatus asks running nodes for their status, for `leeway status`. Blocks.
#ifndef LEEWAY_TOOLS_ADMIN_INQUIRY_H_
#define LEEWAY_TOOLS_ADMIN_INQUIRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "leeway/config.h"

namespace leeway::tools {

// Returns the JSON of each address, in their order; all are asked at once. A node that has not
// answered within `patience`, or does not have that role, has an error in its place, which names
// it.
std::vector<absl::StatusOr<std::string>> AskForStatus(const std::vector<std::string>& addresses,
                                                      Role role, absl::Duration patience,
                                                      const Config& config);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_ADMIN_INQUIRY_H_
