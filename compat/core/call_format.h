// The first frame of calls of the handler "ps-lite", and of their answers: which request of which
// application it is. The frames after it are keys, values and lens (or the body of a SimpleApp).
#ifndef LEEWAY_COMPAT_CORE_CALL_FORMAT_H_
#define LEEWAY_COMPAT_CORE_CALL_FORMAT_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "leeway/call.h"

namespace leeway::compat {

inline constexpr char kHandler[] = "ps-lite";

enum class CallKind : std::uint32_t {
  kKeyValues = 1,
  kSimple = 2,
  kWhichHandler = 3,  // answered once the application's handler is set
};

// In the byte order of all machines that Leeway runs on.
struct CallHead {
  CallKind kind = CallKind::kKeyValues;
  std::int32_t app_id = 0;
  std::int32_t customer_id = 0;
  std::int32_t timestamp = 0;
  std::int32_t cmd = 0;  // or the head of a SimpleApp's request
  std::uint8_t push = 0;
  std::uint8_t pull = 0;
  std::uint8_t has_lens = 0;
  std::uint8_t unused = 0;
  std::int32_t table = -1;  // of the answer to kWhichHandler: ps::internal::ValueType
  std::int32_t sender = 0;  // the worker's node
};
static_assert(sizeof(CallHead) == 32 && std::is_trivially_copyable_v<CallHead>);

inline CallFrame FrameOf(const CallHead& head) {
  auto owner = std::make_shared<const CallHead>(head);
  return {std::as_bytes(std::span(owner.get(), 1)), owner, false};
}
// nullopt: it is none.
inline std::optional<CallHead> HeadOf(const CallFrames& frames) {
  if (frames.empty() || frames[0].bytes.size() != sizeof(CallHead)) return std::nullopt;
  CallHead head;
  std::memcpy(&head, frames[0].bytes.data(), sizeof(head));
  return head;
}

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_CALL_FORMAT_H_
