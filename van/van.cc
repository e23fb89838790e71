#include "van/van.h"

namespace leeway::van {

std::uint64_t Message::TotalBytes() const {
  std::uint64_t bytes = header.size();
  for (const Buffer& frame : payload) bytes += frame.size();
  return bytes;
}

Limits LimitsFrom(const Config& config) {
  Limits limits;
  limits.message_bytes_max = config.message_bytes_max;
  limits.send_window_bytes = config.send_window_bytes;
  if (config.checksum == "on") limits.checksums = Limits::Checksums::kAll;
  if (config.checksum == "off") limits.checksums = Limits::Checksums::kOff;
  return limits;
}

}  // namespace leeway::van
