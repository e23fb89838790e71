// A message of several small pushes to one data thread.
//
// The cost of a small push is not in its bytes but in a message that is encoded, checked and
// answered. Therefore the small pushes that are sent before the loop sleeps share one message and
// one acknowledgement. One for each Link, filled by Servers.
#ifndef LEEWAY_WORKER_LINKS_PUSH_BATCH_H_
#define LEEWAY_WORKER_LINKS_PUSH_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"

namespace leeway::worker {

class PushBatch {
 public:
  // Whether such a request may share a message.
  static bool Takes(const proto::Request& request, std::span<const runtime::Buffer> payload);
  // Whether there is room for the request, and it agrees with those that are here (epoch, clock,
  // dtype, priority, learning rate, about the same timeout).
  bool Fits(const proto::Request& request, std::size_t bytes) const;
  // Adds a request that Takes and Fits accept; copies its values.
  void Add(const proto::Request& request, const runtime::Buffer& values);

  bool empty() const { return batch_.pushes.empty(); }
  void Clear();
  // Takes the message; the batch is empty from here on. A single push becomes an ordinary request.
  struct Message {
    proto::AnyMessage header;
    runtime::Buffer values;
  };
  Message Take();

 private:
  proto::PushBatch batch_;  // its timeout is the shortest of its pushes
  std::uint64_t longest_timeout_ms_ = 0;
  std::vector<std::byte> values_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_LINKS_PUSH_BATCH_H_
