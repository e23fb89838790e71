#include "van/van.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/descriptors.h"

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
  if (const std::optional<std::uint64_t> files = runtime::DescriptorsMax()) {
    const std::uint64_t vans = std::max<std::uint64_t>(config.server_threads, 1);
    const std::uint64_t most = std::max<std::uint64_t>(*files / 4 / vans, 4);
    limits.guests_max =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.guests_max, most));
  }
  limits.message_bytes_max = config.message_bytes_max;
  limits.send_window_bytes = config.send_window_bytes;
  if (config.checksum == "on") limits.checksums = Limits::Checksums::kAll;
  if (config.checksum == "off") limits.checksums = Limits::Checksums::kOff;
  return limits;
}

}  // namespace leeway::van
