#include "ps/control/own_host.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ps/control/endpoints.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "van/address/tcp_address.h"

namespace leeway::ps {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause(250);
constexpr std::chrono::seconds kSayFirst(2), kSayAgain(10);
constexpr char kAllIpv6[] = "::";

absl::StatusOr<OwnHost> Announced(const Config& config) {
  LEEWAY_RETURN_IF_ERROR(van::CheckAnnouncedHost(config.host));
  OwnHost own{config.host, config.interface, "LEEWAY_HOST"};
  std::string bare = config.host;
  if (bare.front() == '[') bare = bare.substr(1, bare.size() - 2);
  LEEWAY_ASSIGN_OR_RETURN(const van::ResolvedHost resolved, van::ResolveToConnect(bare));
  if (resolved.v6 && BindHost(config).empty()) own.interface = kAllIpv6;
  return own;
}

std::string Seconds(Clock::duration duration) {
  return runtime::FormatDuration(absl::FromChrono(duration));
}

}  // namespace

absl::StatusOr<OwnHost> FindOwnHost(const Config& config) {
  if (!config.host.empty()) return Announced(config);
  if (!config.interface.empty()) {
    return OwnHost{"", config.interface, absl::StrCat("LEEWAY_INTERFACE, ", config.interface)};
  }
  if (!BindHost(config).empty()) {
    return OwnHost{"", "", "LEEWAY_SCHEDULER, which is on the loopback"};
  }
  if (config.scheduler.empty()) return OwnHost{"", "", "the first network card that is up"};
  const SchedulerAddress scheduler = SchedulerAddressOf(config.scheduler);
  LEEWAY_ASSIGN_OR_RETURN(const van::Route route, van::RouteTo(scheduler.host, scheduler.port));
  return OwnHost{route.source, route.v6 ? kAllIpv6 : "",
                 absl::StrCat("the route to the scheduler at ", route.to,
                              route.card.empty() ? "" : ", over ", route.card)};
}

absl::Status AwaitOwnHost(Config* config) {
  const Clock::time_point started = Clock::now();
  const auto patience = absl::ToChronoMilliseconds(config->connect_timeout);
  Clock::time_point say = started + kSayFirst;
  while (true) {
    const absl::StatusOr<OwnHost> own = FindOwnHost(*config);
    if (own.ok()) {
      config->interface = own->interface;
      if (own->host != config->host) {
        runtime::LogInfo("others are told to find this server at ", own->host, " (", own->from,
                         "); LEEWAY_HOST or LEEWAY_INTERFACE would say otherwise");
        config->host = own->host;
      }
      return absl::OkStatus();
    }
    // A setting is used, or is an error.
    if (!config->host.empty()) return own.status();
    const std::string reason = van::ReasonOf(own.status());
    const Clock::time_point now = Clock::now();
    if (now - started >= patience) {
      return absl::DeadlineExceededError(absl::StrCat(
          "no way to the scheduler at ", config->scheduler, " (LEEWAY_SCHEDULER) within ",
          runtime::FormatDuration(config->connect_timeout),
          " (LEEWAY_CONNECT_TIMEOUT_MS): ", own.status().message()));
    }
    if (now >= say) {
      say = now + kSayAgain;
      runtime::LogInfo("waiting for a way to the scheduler at ", config->scheduler,
                       " (LEEWAY_SCHEDULER) for ", Seconds(now - started), ": ", reason,
                       "; giving up after ", runtime::FormatDuration(config->connect_timeout),
                       " (LEEWAY_CONNECT_TIMEOUT_MS)");
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace leeway::ps
