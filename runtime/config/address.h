// How addresses are written: one spelling for each, checked before anything is looked up.
#ifndef LEEWAY_RUNTIME_CONFIG_ADDRESS_H_
#define LEEWAY_RUNTIME_CONFIG_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

// "host:port" and "tcp://host:port" give "tcp://host:port"; an IPv6 host stands in brackets.
// "ipc://path", "inproc://name" and "sim://host/name" stay as they are. The error says what the
// text must be, without naming where it came from: "it must be …".
absl::StatusOr<std::string> NormalizeAddress(absl::string_view text);

// A host name, an IPv4 address or an IPv6 address, which gets its brackets if it has none.
absl::StatusOr<std::string> NormalizeHost(absl::string_view text);

// The port of a tcp:// address that NormalizeAddress gave; −1 for other kinds.
int PortOf(absl::string_view address);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_CONFIG_ADDRESS_H_
