// The memory for copies of pushes that a worker retains: a free list of blocks by size.
//
// Freed blocks are used again, because the copies of one iteration have the same sizes as those of
// the previous one. Copies may be freed on any thread, and after this object.
#ifndef LEEWAY_WORKER_REQUESTS_RETAINED_MEMORY_H_
#define LEEWAY_WORKER_REQUESTS_RETAINED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "runtime/memory/buffer.h"

namespace leeway::worker {

class RetainedMemory {
 public:
  RetainedMemory();
  ~RetainedMemory();
  RetainedMemory(const RetainedMemory&) = delete;
  RetainedMemory& operator=(const RetainedMemory&) = delete;

  runtime::Buffer CopyOf(const runtime::Buffer& frame);
  // The size of the blocks on the free list. Used and free blocks together never exceed the most
  // that was in use at once.
  std::size_t free_bytes() const;

 private:
  class Slab;
  class FreeList;
  const std::shared_ptr<FreeList> free_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_RETAINED_MEMORY_H_
