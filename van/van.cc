#include "van/van.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace leeway::van {

std::uint64_t Message::TotalBytes() const {
  std::uint64_t bytes = header.size();
  for (const Buffer& frame : payload) bytes += frame.size();
  return bytes;
}

Limits LimitsFrom(const Config& config, std::shared_ptr<runtime::SharedByteBudget> send_queue) {
  Limits limits;
  limits.send_queue =
      send_queue != nullptr
          ? std::move(send_queue)
          : std::make_shared<runtime::SharedByteBudget>(config.send_queue_bytes_max);
  // Most descriptors are reserved for members. A server has a van for each data thread.
  if (rlimit files{}; ::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    const rlim_t vans = std::max<rlim_t>(config.server_threads, 1);
    const rlim_t most = std::max<rlim_t>(files.rlim_cur / 4 / vans, 4);
    limits.guests_max = static_cast<std::uint32_t>(std::min<rlim_t>(limits.guests_max, most));
  }
  limits.message_bytes_max = config.message_bytes_max;
  limits.send_window_bytes = config.send_window_bytes;
  if (config.checksum == "on") limits.checksums = Limits::Checksums::kAll;
  if (config.checksum == "off") limits.checksums = Limits::Checksums::kOff;
  return limits;
}

}  // namespace leeway::van
