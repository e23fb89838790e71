// `leeway status`: asks a running scheduler for its status, and each server's threads for their
// counters, and shows them as tables or as JSON.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/tables/text.h"
#include "runtime/config/address.h"
#include "tools/admin/inquiry.h"
#include "tools/format/status_tables.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"

namespace leeway::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr absl::Duration kSchedulerPatience = absl::Seconds(10);
constexpr absl::Duration kServersPatience = absl::Seconds(5);
constexpr double kWatchMin = 0.1, kWatchMax = 86400;  // seconds

OrderedJson ThreadEntry(const std::string& endpoint, const absl::StatusOr<std::string>& answer) {
  if (!answer.ok()) {
    return {{"endpoint", endpoint}, {"error", std::string(answer.status().message())}};
  }
  OrderedJson entry = OrderedJson::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (entry.is_object()) return entry;
  return {{"endpoint", endpoint}, {"error", "it answers something that is not JSON"}};
}

// Adds the answers of its threads to each living server.
void AddThreads(const Config& config, OrderedJson* status) {
  std::vector<std::string> endpoints;
  std::vector<OrderedJson*> homes;
  for (OrderedJson& server : (*status)["servers"]) {
    if (server.value("state", "") != "alive" || !server.contains("endpoints")) continue;
    for (const OrderedJson& endpoint : server["endpoints"]) {
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

absl::StatusOr<std::string> StatusText(const std::string& address, const Config& config,
                                       bool json) {
  const absl::StatusOr<std::string> answer = AskForStatus(
      {address}, Role::kScheduler, std::min(kSchedulerPatience, config.connect_timeout), config)[0];
  if (!answer.ok()) return answer;
  try {
    OrderedJson status = OrderedJson::parse(*answer);
    AddThreads(config, &status);
    return json ? status.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n"
                : StatusTables(status);
  } catch (const OrderedJson::exception& wrong) {
    return absl::DataLossError(absl::StrCat("the scheduler at ", address,
                                            " (LEEWAY_SCHEDULER) answers what is no status: ",
                                            wrong.what(), "; is it of the same release?"));
  }
}

// Shows the status repeatedly until the process is interrupted: on a terminal in the same place,
// otherwise one below the other. A scheduler that is away may come back.
void Watch(const std::string& address, const Config& config, const StatusCommand& command) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  while (true) {
    const absl::StatusOr<std::string> text = StatusText(address, config, command.json);
    if (command.json) {
      // A program reads JSON from standard output, and nothing else may be there.
      if (text.ok()) std::fputs(text->c_str(), stdout);
      if (!text.ok()) Complain(text.status());
    } else {
      std::printf(
          "%s%s%s", terminal ? "\x1b[H\x1b[J" : "",
          text.ok()
              ? text->c_str()
              : absl::StrCat(proto::Cleaned(text.status().message(), proto::Lines::kMany), "\n")
                    .c_str(),
          terminal ? "" : "\n");
    }
    if (std::fflush(stdout) != 0) return;  // the reader has closed it
    absl::SleepFor(absl::Seconds(*command.watch_s));
  }
}

}  // namespace

int RunStatusCommand(const StatusCommand& command) {
  if (command.watch_s.has_value() &&
      !(*command.watch_s >= kWatchMin && *command.watch_s <= kWatchMax)) {
    return Complain(absl::InvalidArgumentError(absl::StrCat(
        "--watch ", *command.watch_s, ": seconds from ", kWatchMin, " to ", kWatchMax)));
  }
  const absl::StatusOr<Config> config = ConfigFor(Role::kTool, {.scheduler = command.scheduler});
  if (!config.ok()) return Complain(config.status());
  const absl::StatusOr<std::string> address = runtime::NormalizeAddress(config->scheduler);
  if (!address.ok()) return Complain(address.status());
  if (command.watch_s.has_value()) {
    Watch(*address, *config, command);
    return 0;
  }
  const absl::StatusOr<std::string> text = StatusText(*address, *config, command.json);
  if (!text.ok()) return Complain(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace leeway::tools
