// Where a server's data threads listen, and by which address workers are told to find them.
#ifndef LEEWAY_PS_ENDPOINTS_H_
#define LEEWAY_PS_ENDPOINTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "leeway/config.h"

namespace leeway::ps {

// What to bind: the network card where one is named; this machine alone where the scheduler (or
// Config::host) is on the loopback; otherwise every address of the machine (empty).
std::string BindHost(const Config& config);

// The address to announce for a listening `endpoint`: with Config::host for its host, where that
// is set and the endpoint is tcp.
std::string AnnouncedEndpoint(const Config& config, absl::string_view endpoint);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_ENDPOINTS_H_
