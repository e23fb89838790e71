// `leeway status`: asks a running scheduler what it knows, and each server's threads what they
// have counted.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/address.h"
#include "tools/commands.h"
#include "tools/inquiry.h"
#include "tools/role_config.h"

namespace leeway::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kSchedulerPatience = absl::Seconds(10);
constexpr absl::Duration kServersPatience = absl::Seconds(5);

Json ThreadEntry(const std::string& endpoint, const absl::StatusOr<std::string>& answer) {
  if (!answer.ok()) {
    return {{"endpoint", endpoint}, {"error", std::string(answer.status().message())}};
  }
  Json entry = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (entry.is_object()) return entry;
  return {{"endpoint", endpoint}, {"error", "it answers something that is not JSON"}};
}

// Under each living server, what its threads answer.
void AddThreads(const Config& config, Json* status) {
  std::vector<std::string> endpoints;
  std::vector<Json*> homes;
  for (Json& server : (*status)["servers"]) {
    if (server.value("state", "") != "alive" || !server.contains("endpoints")) continue;
    for (const Json& endpoint : server["endpoints"]) {
      endpoints.push_back(endpoint.get<std::string>());
      homes.push_back(&server);
    }
  }
  if (endpoints.empty()) return;
  const auto answers = AskForStatus(endpoints, Role::kServer,
                                    std::min(kServersPatience, config.connect_timeout), config);
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    (*homes[i])["threads"].push_back(ThreadEntry(endpoints[i], answers[i]));
  }
}

absl::StatusOr<std::string> StatusText(const std::string& address, const Config& config) {
  const absl::StatusOr<std::string> answer = AskForStatus(
      {address}, Role::kScheduler, std::min(kSchedulerPatience, config.connect_timeout), config)[0];
  if (!answer.ok()) return answer;
  try {
    Json status = Json::parse(*answer);
    AddThreads(config, &status);
    return status.dump(2, ' ', false, Json::error_handler_t::replace);
  } catch (const Json::exception& wrong) {
    return absl::DataLossError(absl::StrCat("the scheduler at ", address,
                                            " (LEEWAY_SCHEDULER) answers what is no status: ",
                                            wrong.what(), "; is it of the same release?"));
  }
}

}  // namespace

int RunStatusCommand(const RoleCommand& command) {
  const absl::StatusOr<Config> config = ConfigFor(Role::kTool, command);
  if (!config.ok()) return Complain(config.status());
  const absl::StatusOr<std::string> address = runtime::NormalizeAddress(config->scheduler);
  if (!address.ok()) return Complain(address.status());
  const absl::StatusOr<std::string> text = StatusText(*address, *config);
  if (!text.ok()) return Complain(text.status());
  std::printf("%s\n", text->c_str());
  return 0;
}

}  // namespace leeway::tools
