// The request and the answer of a call of a server's handler, as frames of bytes that are not
// copied on their way (Worker::Call, RegisterAsyncHandler).
#ifndef LEEWAY_CALL_H_
#define LEEWAY_CALL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

// A frame: bytes, and the object that keeps them alive. A small value; copies share the bytes.
//
// A frame that was received begins at an address that any number may have. One that is `imported`
// lies in memory that the transport needs back (LEEWAY_SHM_BYTES): copy what is to stay for longer
// than the call is dealt with. A sender that breaks the rules could change such bytes while they
// are read, so they are numbers and nothing to be parsed; the first frame is never imported.
struct CallFrame {
  std::span<const std::byte> bytes;
  // Null: the sender keeps the bytes unchanged until the call has been answered.
  std::shared_ptr<const void> owner;
  // Of a frame that was received: it lies in memory that the transport needs back.
  bool imported = false;

  static CallFrame Of(std::string text) {
    auto owner = std::make_shared<const std::string>(std::move(text));
    return {std::as_bytes(std::span(owner->data(), owner->size())), owner, false};
  }
};

// 1 to 8 frames.
using CallFrames = std::vector<CallFrame>;
inline constexpr std::size_t kCallFramesMax = 8;

// Takes the answer of a call, once.
using CallDone = std::function<void(absl::StatusOr<CallFrames>)>;

}  // namespace leeway

#endif  // LEEWAY_CALL_H_
