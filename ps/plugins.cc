#include "ps/plugins.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/log.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
namespace {

absl::string_view LoaderError() {
  const char* reason = dlerror();
  return reason != nullptr ? reason : "the loader gives no reason";
}

absl::Status Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("LEEWAY_PLUGINS: cannot load ", path, ": ", LoaderError()));
  }
  void* symbol = dlsym(library, "LeewayRegister");
  if (symbol == nullptr) {
    const std::string reason(LoaderError());
    dlclose(library);
    return absl::FailedPreconditionError(
        absl::StrCat("LEEWAY_PLUGINS: ", path,
                     " has no function `extern \"C\" void LeewayRegister()`: ", reason));
  }
  reinterpret_cast<void (*)()>(symbol)();
  runtime::LogInfo("loaded plugin ", path);
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadPlugins(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) LEEWAY_RETURN_IF_ERROR(Load(path));
  return absl::OkStatus();
}

}  // namespace leeway::ps
