// What `leeway train` was told, checked.
#ifndef LEEWAY_TOOLS_TRAIN_TRAIN_SETTINGS_H_
#define LEEWAY_TOOLS_TRAIN_TRAIN_SETTINGS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "examples/fashion_mnist/settings.h"
#include "tools/options/commands.h"

namespace leeway::tools {

// INVALID_ARGUMENT names the option, what it holds and what it may hold.
absl::StatusOr<fashion_mnist::Settings> SettingsFrom(const TrainCommand& command);

// Whether the updater knows its parameters, as far as this process has it: one that a plugin brings
// is for the servers to judge.
absl::Status CheckUpdater(const fashion_mnist::Settings& settings);

// As --error-feedback says it.
absl::string_view Name(ErrorFeedback feedback);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_TRAIN_SETTINGS_H_
