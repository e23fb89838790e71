// `leeway codec TABLE CODEC`: switches a table to another of its codecs during training.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/admin/admin_call.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"

namespace leeway::tools {

int RunCodecCommand(const CodecCommand& command) {
  RoleCommand role;
  role.scheduler = command.scheduler;
  const absl::StatusOr<Config> config = ConfigFor(Role::kTool, role);
  if (!config.ok()) return Complain(config.status());
  const absl::StatusOr<std::string> answer =
      AskScheduler(*config, "codec", {command.table, command.codec}, [](const std::string&) {});
  if (!answer.ok()) return Complain(answer.status());
  const auto json = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  const bool says = json.is_object() && json.contains("clock") && json["clock"].is_number();
  std::printf("table '%s' has codec %s from clock %s on\n", command.table.c_str(),
              command.codec.c_str(), says ? json["clock"].dump().c_str() : "?");
  return 0;
}

}  // namespace leeway::tools
