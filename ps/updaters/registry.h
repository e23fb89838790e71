// The registry of updaters by name: the built-in ones, and those added with
// leeway::RegisterUpdater.
#ifndef LEEWAY_PS_UPDATERS_REGISTRY_H_
#define LEEWAY_PS_UPDATERS_REGISTRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/updater.h"

namespace leeway::ps {

// The factory of that name, or NOT_FOUND, listing the names there are. Any thread.
absl::StatusOr<UpdaterFactory> FindUpdater(absl::string_view name);

// Sorted. Any thread.
std::vector<std::string> UpdaterNames();

}  // namespace leeway::ps

#endif  // LEEWAY_PS_UPDATERS_REGISTRY_H_
