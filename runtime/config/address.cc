#include "runtime/config/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace leeway::runtime {
namespace {

constexpr std::size_t kHostBytesMax = 253;     // a whole domain name (RFC 1035)
constexpr std::size_t kIpcPathBytesMax = 107;  // what fits into sockaddr_un
constexpr std::size_t kNameBytesMax = 255;
constexpr int kPortMax = 65535;

absl::Status MustBeAddress() {
  return absl::InvalidArgumentError(
      "it must be host:port, tcp://host:port, ipc://path, inproc://name or sim://host/name");
}

// True if `text` has no character that would break a line, end a word in a message, or have a
// meaning at the end of a URL.
bool IsPlain(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

bool IsHostName(absl::string_view text) {
  if (text.empty() || text.size() > kHostBytesMax || text[0] == '-' || text[0] == '.') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

bool IsIpv6(absl::string_view text) {
  // A link-local address carries its network card: fe80::1%eth0.
  const std::size_t percent = text.find('%');
  if (percent != absl::string_view::npos) {
    const absl::string_view card = text.substr(percent + 1);
    if (!IsHostName(card)) return false;
  }
  in6_addr parsed;
  return ::inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &parsed) == 1;
}

bool ParsePort(absl::string_view text, int* port) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, port) && *port <= kPortMax;
}

absl::StatusOr<std::string> NormalizeTcp(absl::string_view text) {
  const std::size_t colon = text.rfind(':');
  const bool port_missing = colon == absl::string_view::npos || absl::EndsWith(text, "]");
  if (port_missing) return absl::InvalidArgumentError("it must be host:port, and has no port");
  const absl::string_view host = text.substr(0, colon);
  if (host.find(':') != absl::string_view::npos && !absl::StartsWith(host, "[")) {
    return absl::InvalidArgumentError("an IPv6 address must stand in brackets, like [::1]:9000");
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::string normal_host, NormalizeHost(host));
  int port = 0;
  if (!ParsePort(text.substr(colon + 1), &port)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its port must be a whole number from 0 to ", kPortMax));
  }
  return absl::StrCat("tcp://", normal_host, ":", port);
}

}  // namespace

absl::StatusOr<std::string> NormalizeHost(absl::string_view text) {
  absl::string_view bare = text;
  if (absl::ConsumePrefix(&bare, "[")) {
    if (absl::ConsumeSuffix(&bare, "]") && IsIpv6(bare)) return std::string(text);
  } else if (IsIpv6(text)) {
    return absl::StrCat("[", text, "]");
  } else if (IsHostName(text)) {
    return std::string(text);
  }
  return absl::InvalidArgumentError("its host must be a host name, an IPv4 or an IPv6 address");
}

absl::StatusOr<std::string> NormalizeAddress(absl::string_view text) {
  if (text.empty() || !IsPlain(text)) return MustBeAddress();
  const std::size_t mark = text.find("://");
  if (mark == absl::string_view::npos) return NormalizeTcp(text);
  const absl::string_view scheme = text.substr(0, mark);
  const absl::string_view rest = text.substr(mark + 3);
  if (scheme == "tcp") return NormalizeTcp(rest);
  std::size_t bytes_max = kNameBytesMax;
  if (scheme == "ipc") {
    bytes_max = kIpcPathBytesMax;
  } else if (scheme == "sim") {
    const std::size_t slash = rest.find('/');
    if (slash == 0 || slash == absl::string_view::npos || slash + 1 == rest.size()) {
      return MustBeAddress();
    }
  } else if (scheme != "inproc") {
    return MustBeAddress();
  }
  if (rest.empty()) return MustBeAddress();
  if (rest.size() > bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("what follows ", scheme, ":// must not be longer than ", bytes_max, " bytes"));
  }
  return std::string(text);
}

int PortOf(absl::string_view address) {
  int port = -1;
  if (!absl::StartsWith(address, "tcp://")) return port;
  return ParsePort(address.substr(address.rfind(':') + 1), &port) ? port : -1;
}

}  // namespace leeway::runtime
