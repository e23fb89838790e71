// The factories of the built-in updaters. The file of each says what it computes.
//
// Every hyper-parameter has a default. An unknown one is refused with INVALID_ARGUMENT that lists
// the known ones, and a value out of range with the range.
#ifndef LEEWAY_PS_UPDATERS_BUILTIN_H_
#define LEEWAY_PS_UPDATERS_BUILTIN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "leeway/updater.h"

namespace leeway::ps {

absl::StatusOr<std::unique_ptr<Updater>> MakeAssign(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeGradient(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeAdd(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeSgd(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeMomentum(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeNesterov(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeDelayedNesterov(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeAdagrad(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeRmsprop(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeAdam(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeAdamW(const UpdaterParameters& parameters);
absl::StatusOr<std::unique_ptr<Updater>> MakeFtrl(const UpdaterParameters& parameters);

// Whether an updater is the built-in `add`: for loops in which calling it takes longer than adding.
bool OnlyAdds(const Updater& updater);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_UPDATERS_BUILTIN_H_
