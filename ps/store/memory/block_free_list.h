// The free lists of a block pool (block_pool.h): one stack for each size, which any thread may put
// a block on, and one thread takes from.
#ifndef LEEWAY_PS_STORE_MEMORY_BLOCK_FREE_LIST_H_
#define LEEWAY_PS_STORE_MEMORY_BLOCK_FREE_LIST_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ps/store/memory/shared_bytes.h"

namespace leeway::ps {

class BlockFreeList : public std::enable_shared_from_this<BlockFreeList> {
 public:
  using Memory = SharedBytes::Memory;
  // Blocks and slabs come in few sizes: those of full ones, and of each table's last.
  static constexpr std::size_t kSizesMax = 16;
  // Of a size that nobody has reserved, for replies that are still being sent.
  static constexpr std::uint64_t kKeptBytes = 4 << 20;

  struct Size {
    std::atomic<std::size_t> bytes{0};  // 0: of no use yet
    std::atomic<std::int64_t> made{0};  // in use and here
    std::atomic<std::int64_t> here{0};
    std::atomic<std::int64_t> wanted{0};  // here
    std::atomic<Memory*> returned{nullptr};
    // The owner's.
    Memory* ready = nullptr;  // what it has taken from `returned`
    std::int64_t most_in_use = 0;

    std::int64_t in_use() const { return std::max<std::int64_t>(0, made - here); }

    std::int64_t kept() const {
      const auto few = static_cast<std::int64_t>(kKeptBytes / bytes.load());
      return std::max(few, wanted.load());
    }
  };

  ~BlockFreeList();

  // The owner's.
  Size* Find(std::size_t bytes);  // null: there are too many sizes
  Memory* Take(Size* size);       // from what is here, or from the heap
  Memory* Pop(Size* size);        // null: there is none here

  // Any thread's.
  void Put(Memory* memory);  // which nobody uses any more
  void Add(Size* size);      // one more, touched
  static void Delete(Size* size, Memory* memory);

  std::array<Size, kSizesMax> sizes;
  std::atomic<bool> keep_all{false};
  std::atomic<bool> closed{false};

 private:
  static void Push(Size* size, Memory* memory);
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_MEMORY_BLOCK_FREE_LIST_H_
