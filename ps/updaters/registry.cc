#include "ps/updaters/registry.h"

#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/updaters/builtin.h"

namespace leeway {

// Only the overloads of supported dtypes are called, so an updater leaves out the others.
void Updater::Update(const UpdateRun<float>&) const {}
void Updater::Update(const UpdateRun<double>&) const {}
void Updater::Update(const UpdateRun<std::int32_t>&) const {}
void Updater::Update(const UpdateRun<std::int64_t>&) const {}

namespace ps {
namespace {

constexpr std::size_t kNameBytesMax = 255;  // what fits a table's description

class Registry {
 public:
  // Never destroyed: a server may still create tables while the process ends.
  static Registry& Get() {
    static Registry* const registry = new Registry;
    return *registry;
  }

  absl::Status Add(absl::string_view name, UpdaterFactory factory) {
    const std::lock_guard lock(mutex_);
    if (!factories_.emplace(std::string(name), std::move(factory)).second) {
      return absl::AlreadyExistsError(
          absl::StrCat("an updater named '", name, "' is registered already"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<UpdaterFactory> Find(absl::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = factories_.find(std::string(name));
    if (found != factories_.end()) return found->second;
    return absl::NotFoundError(absl::StrCat("there is no updater named '", name, "'; there are ",
                                            absl::StrJoin(NamesLocked(), ", "),
                                            "; LEEWAY_PLUGINS names libraries with more"));
  }

  std::vector<std::string> Names() const {
    const std::lock_guard lock(mutex_);
    return NamesLocked();
  }

 private:
  Registry()
      : factories_{{"assign", MakeAssign},     {"gradient", MakeGradient},
                   {"add", MakeAdd},           {"sgd", MakeSgd},
                   {"momentum", MakeMomentum}, {"nesterov", MakeNesterov},
                   {"adagrad", MakeAdagrad},   {"rmsprop", MakeRmsprop},
                   {"adam", MakeAdam},         {"adamw", MakeAdamW},
                   {"ftrl", MakeFtrl},         {"delayed_nesterov", MakeDelayedNesterov}} {}

  std::vector<std::string> NamesLocked() const {
    std::vector<std::string> names;
    for (const auto& [name, factory] : factories_) names.push_back(name);
    return names;
  }

  mutable std::mutex mutex_;  // over all below
  std::map<std::string, UpdaterFactory> factories_;
};

}  // namespace

absl::StatusOr<UpdaterFactory> FindUpdater(absl::string_view name) {
  return Registry::Get().Find(name);
}

std::vector<std::string> UpdaterNames() { return Registry::Get().Names(); }

}  // namespace ps

absl::Status RegisterUpdater(absl::string_view name, UpdaterFactory factory) {
  if (name.empty() || name.size() > ps::kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("an updater's name has 1 to ", ps::kNameBytesMax,
                                                   " bytes, not ", name.size()));
  }
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("updater '", name, "' has no factory"));
  }
  return ps::Registry::Get().Add(name, std::move(factory));
}

}  // namespace leeway
