#include "runtime/c/c_interface.h"

#include <map>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/config/config_names.h"

namespace leeway::c {

absl::StatusOr<Config> ConfigOf(const leeway_setting* settings, std::size_t count) {
  LEEWAY_RETURN_IF_ERROR(CheckSettings(settings, count));
  std::map<std::string, std::string> given;
  for (std::size_t i = 0; i < count; ++i) {
    given[settings[i].name] = settings[i].value;
    const std::vector<std::string> unknown = runtime::UnknownSettings({settings[i].name});
    if (!unknown.empty()) return absl::InvalidArgumentError(unknown[0]);
  }
  return Config::From([&given](const std::string& name) -> std::optional<std::string> {
    if (const auto found = given.find(name); found != given.end()) return found->second;
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace leeway::c

extern "C" {

leeway_error* leeway_error_new(leeway_code code, const char* message) {
  if (code == LEEWAY_OK) return nullptr;
  return new leeway_error{code, leeway::c::TextOrNone(message)};
}
leeway_code leeway_error_code(const leeway_error* error) {
  return error == nullptr ? LEEWAY_OK : error->code;
}
const char* leeway_error_message(const leeway_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
void leeway_error_free(leeway_error* error) { delete error; }
void leeway_free(void* text) { std::free(text); }

}  // extern "C"
