// SettingsFrom checks the options of `leeway train`.
#ifndef LEEWAY_TOOLS_TRAIN_TRAIN_SETTINGS_H_
#define LEEWAY_TOOLS_TRAIN_TRAIN_SETTINGS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "examples/fashion_mnist/settings.h"
#include "tools/options/commands.h"

namespace leeway::tools {

// INVALID_ARGUMENT names the option, its value, and the values that it may have.
absl::StatusOr<fashion_mnist::Settings> SettingsFrom(const TrainCommand& command);

// OK if the updater knows its parameters, or is none of this process: the servers check an updater
// from a plugin.
absl::Status CheckUpdater(const fashion_mnist::Settings& settings);

// The value of --error-feedback.
absl::string_view Name(ErrorFeedback feedback);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_TRAIN_SETTINGS_H_
