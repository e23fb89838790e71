// Memory for copies of pushes that a worker retains. What is let go of is used again, since an
// iteration's copies are of the same sizes as the last one's.
#ifndef LEEWAY_WORKER_REQUESTS_RETAINED_MEMORY_H_
#define LEEWAY_WORKER_REQUESTS_RETAINED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "runtime/memory/buffer.h"

namespace leeway::worker {

// Copies may be let go of on any thread, and after this object.
class RetainedMemory {
 public:
  RetainedMemory();
  ~RetainedMemory();
  RetainedMemory(const RetainedMemory&) = delete;
  RetainedMemory& operator=(const RetainedMemory&) = delete;

  runtime::Buffer CopyOf(const runtime::Buffer& frame);
  // Not in use at the moment. What is held in all never exceeds the most that was in use at once.
  std::size_t free_bytes() const;

 private:
  class Slab;
  class FreeList;
  const std::shared_ptr<FreeList> free_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_RETAINED_MEMORY_H_
