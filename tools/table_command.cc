// `leeway table NAME`: shows a table's description, and changes settings that do not shape its data
// while it is used.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/admin/admin_call.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"

namespace leeway::tools {

int RunTableCommand(const TableCommand& command) {
  RoleCommand role;
  role.scheduler = command.scheduler;
  const absl::StatusOr<Config> config = ConfigFor(Role::kTool, role);
  if (!config.ok()) return Complain(config.status());
  std::vector<std::string> arguments = {command.table};
  arguments.insert(arguments.end(), command.changes.begin(), command.changes.end());
  const absl::StatusOr<std::string> answer =
      AskScheduler(*config, "table", arguments, [](const std::string&) {});
  if (!answer.ok()) return Complain(answer.status());
  const auto json = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("spec") || !json["spec"].is_string()) {
    return Complain(absl::InternalError("the scheduler's answer cannot be parsed"));
  }
  std::printf("%s\n", json["spec"].get<std::string>().c_str());
  if (command.changes.empty() || !json.contains("clock")) return 0;
  std::printf("from clock %s on\n", json["clock"].dump().c_str());
  return 0;
}

}  // namespace leeway::tools
