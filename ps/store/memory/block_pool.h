// A pool of the memory of one data thread's blocks and slabs: what is not in use just now, kept to
// be used again.
//
// While a snapshot is read, all that is written has to be made anew. Memory that is fresh from the
// system is slow at its first touch, sometimes by far: the kernel finds and clears page after page,
// and a virtual machine may have to ask its host for each; the thread that serves workers would
// stand still meanwhile. So readers return memory to the pool, on any thread, and before a large
// snapshot a thread that nothing waits for makes more ready. No call waits for a lock.
#ifndef LEEWAY_PS_STORE_MEMORY_BLOCK_POOL_H_
#define LEEWAY_PS_STORE_MEMORY_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ps/store/memory/shared_bytes.h"

namespace leeway::ps {

class BlockPool {
 public:
  // Less than this comes from the heap and goes back to it.
  static constexpr std::size_t kBytesMin = 64 << 10;

  BlockPool();
  ~BlockPool();  // what is still in use then goes to the heap when it is let go of
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Uninitialised.
  SharedBytes New(std::size_t bytes);
  static SharedBytes New(BlockPool* pool, std::size_t bytes);  // null: from the heap

  // Snapshots of all there is come and go between these two: meanwhile whatever is let go of is
  // kept. Afterwards so much stays here as was in use at most, above what is now, since the next
  // ones will need as much again, and the system has had to do without it once anyway. What lies
  // here beyond that goes as TakeExcess says.
  void BeginCopies();
  void EndCopies();
  // Whether that has happened, so that the memory of copies is known.
  bool copies_known() const { return copies_known_; }
  // At least so much is to lie here from now on, of each size as its part of what is in use is, but
  // no more than that. Refill makes it ready.
  void Reserve(std::uint64_t bytes);

  // For another thread, which may outlive this object.
  class Refiller {
   public:
    // Makes ready what is missing, at most about `bytes_max`. Returns how much that was.
    std::uint64_t Refill(std::uint64_t bytes_max) const;

   private:
    friend class BlockPool;
    explicit Refiller(std::shared_ptr<BlockFreeList> free_list)
        : free_list_(std::move(free_list)) {}
    std::shared_ptr<BlockFreeList> free_list_;
  };
  Refiller refiller() const { return Refiller(free_list_); }

  // Memory that goes back to the system when this is destroyed, which takes its time.
  using Excess = std::vector<std::shared_ptr<void>>;
  Excess TakeExcess();

  std::uint64_t ready_bytes() const;   // that lie here
  std::uint64_t in_use_bytes() const;  // of the sizes that are kept here

 private:
  const std::shared_ptr<BlockFreeList> free_list_;
  bool copies_known_ = false;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_MEMORY_BLOCK_POOL_H_
