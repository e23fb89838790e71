#include "van/tcp/foreign_protocol.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace leeway::van {
namespace {

constexpr std::array<absl::string_view, 7> kHttpBegins = {
    "GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "CONNECT ", "PRI * HTTP/2"};
constexpr absl::string_view kTlsBegins("\x16\x03", 2);  // a TLS handshake record
constexpr absl::string_view kZmtpBegins("\xff", 1);

}  // namespace

absl::Status ForeignProtocol(std::span<const std::byte> first) {
  const absl::string_view bytes(reinterpret_cast<const char*>(first.data()), first.size());
  const auto begins = [bytes](absl::string_view start) { return absl::StartsWith(bytes, start); };
  if (std::any_of(kHttpBegins.begin(), kHttpBegins.end(), begins)) {
    return absl::FailedPreconditionError(
        "it speaks HTTP, as a web browser or a health check does; this port is for Leeway's nodes "
        "and tools (leeway status)");
  }
  if (begins(kTlsBegins)) {
    return absl::FailedPreconditionError(
        "it speaks TLS, which Leeway does not: is a proxy or a service mesh between the nodes?");
  }
  if (begins(kZmtpBegins)) {
    return absl::FailedPreconditionError(
        "it does not speak our protocol over TCP but, it seems, ZeroMQ's: both ends must have the "
        "same LEEWAY_VAN");
  }
  return absl::FailedPreconditionError(
      "it does not speak our protocol over TCP: both ends must have the same LEEWAY_VAN");
}

}  // namespace leeway::van
