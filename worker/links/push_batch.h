// Small pushes to one data thread that leave in one message.
//
// What a small push costs is hardly its bytes: it is a message to be encoded, checked and answered.
// So those that are sent before the loop sleeps travel together, and are acknowledged together.
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
  // Whether such a request may travel with others.
  static bool Takes(const proto::Request& request, std::span<const runtime::Buffer> payload);
  // Whether there is room for it beside those that are here, with which it has to agree.
  bool Fits(const proto::Request& request, std::size_t bytes) const;
  // Copies the values. It is taken, and fits.
  void Add(const proto::Request& request, const runtime::Buffer& values);

  bool empty() const { return batch_.pushes.empty(); }
  void Clear();
  // One message for all; empty from here on. One push alone is a request as any other.
  struct Message {
    proto::AnyMessage header;
    runtime::Buffer values;
  };
  Message Take();

 private:
  proto::PushBatch batch_;  // its time is the shortest of those in it
  std::uint64_t longest_timeout_ms_ = 0;
  std::vector<std::byte> values_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_LINKS_PUSH_BATCH_H_
