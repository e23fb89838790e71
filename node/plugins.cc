#include "node/plugins.h"

#include <dlfcn.h>

#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::node {
namespace {

constexpr char kRegister[] = "LeewayRegister";
constexpr char kRegisterCodecs[] = "LeewayRegisterCodecs";

absl::string_view LoaderError() {
  const char* reason = dlerror();
  return reason != nullptr ? reason : "the loader gives no reason";
}

// Whether the library has the function.
bool Call(void* library, const char* function) {
  void* const symbol = dlsym(library, function);
  if (symbol == nullptr) return false;
  reinterpret_cast<void (*)()>(symbol)();
  return true;
}

absl::Status Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("LEEWAY_PLUGINS: cannot load ", path, ": ", LoaderError()));
  }
  const bool codecs = Call(library, kRegisterCodecs);
  if (!Call(library, kRegister) && !codecs) {
    const std::string reason(LoaderError());
    dlclose(library);
    return absl::FailedPreconditionError(
        absl::StrCat("LEEWAY_PLUGINS: ", path, " has no function `extern \"C\" void ", kRegister,
                     "()` and no `", kRegisterCodecs, "()`: ", reason));
  }
  runtime::LogInfo("loaded plugin ", path);
  return absl::OkStatus();
}

void LoadCodecs(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    runtime::LogWarning(
        "LEEWAY_PLUGINS: ", path,
        " cannot be loaded by this worker, so that it has none of its codecs: ", LoaderError());
  } else if (Call(library, kRegisterCodecs)) {
    runtime::LogInfo("loaded the codecs of plugin ", path);
  } else {
    dlclose(library);
  }
}

}  // namespace

absl::Status LoadPlugins(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) LEEWAY_RETURN_IF_ERROR(Load(path));
  return absl::OkStatus();
}

void LoadCodecPlugins(const std::vector<std::string>& paths) {
  static std::mutex mutex;
  static std::set<std::string>& tried = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  for (const std::string& path : paths) {
    if (tried.insert(path).second) LoadCodecs(path);
  }
}

}  // namespace leeway::node
