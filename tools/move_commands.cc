// `leeway drain` and `leeway rebalance`: move shards in a running cluster.
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tools/admin/admin_call.h"
#include "tools/format/move_progress.h"
#include "tools/format/progress_bar.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"

namespace leeway::tools {
namespace {

int Run(const std::string& scheduler, const std::string& command,
        const std::vector<std::string>& arguments, MoveProgress progress, const std::string& done) {
  RoleCommand role;
  role.scheduler = scheduler;
  const absl::StatusOr<Config> config = ConfigFor(Role::kTool, role);
  if (!config.ok()) return Complain(config.status());
  absl::StatusOr<std::string> answer;
  {
    ProgressBar bar(/*wanted=*/true);
    answer = AskScheduler(*config, command, arguments, [&](const std::string& status) {
      if (progress.Take(status)) bar.ShowText(progress.part(), progress.text());
    });
  }
  if (!answer.ok()) return Complain(answer.status());
  std::printf("%s\n", done.c_str());
  return 0;
}

}  // namespace

int RunDrainCommand(const DrainCommand& command) {
  absl::string_view text = command.server;
  (void)absl::ConsumePrefix(&text, "server:");
  std::uint32_t rank = 0;
  if (!absl::SimpleAtoi(text, &rank)) {
    return Complain(absl::InvalidArgumentError(
        absl::StrCat("cannot drain '", command.server, "': it must be server:RANK")));
  }
  std::vector<std::string> arguments = {absl::StrCat("server:", rank)};
  if (command.node.has_value()) arguments.push_back(absl::StrCat("node:", *command.node));
  return Run(command.scheduler, "drain", arguments, MoveProgress::OfDrain(rank),
             absl::StrCat("server ", rank, " is empty and has left"));
}

int RunRebalanceCommand(const RebalanceCommand& command) {
  return Run(command.scheduler, "rebalance", {command.by}, MoveProgress::OfRebalance(),
             absl::StrCat("the servers are even by ", command.by));
}

}  // namespace leeway::tools
