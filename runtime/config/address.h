// NormalizeAddress and NormalizeHost check the text of an address and give it its one spelling,
// before anything is resolved. Any thread.
#ifndef LEEWAY_RUNTIME_CONFIG_ADDRESS_H_
#define LEEWAY_RUNTIME_CONFIG_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

// "host:port" and "tcp://host:port" give "tcp://host:port"; an IPv6 host stands in brackets.
// "ipc://path", "inproc://name" and "sim://host/name" stay as they are. INVALID_ARGUMENT: the
// message says what the text must be ("it must be …"); the caller adds the setting that it came
// from.
absl::StatusOr<std::string> NormalizeAddress(absl::string_view text);

// Checks a host name, an IPv4 address or an IPv6 address; the latter gets brackets if it has none.
// INVALID_ARGUMENT as above.
absl::StatusOr<std::string> NormalizeHost(absl::string_view text);

// The port of a tcp:// address that NormalizeAddress returned; −1 for other kinds.
int PortOf(absl::string_view address);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_CONFIG_ADDRESS_H_
