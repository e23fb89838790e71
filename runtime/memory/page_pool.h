// Memory for what is read all over, and for large blocks and what is pushed to them, in pages of
// 2 MiB where the system has them.
//
// To find where an address lies the processor has a small table of pages. Rows that lie all over
// gigabytes of pages of 4 KiB are never in it, and to look each one up takes longer than to read
// it. Blocks that are read from one end to the other gain a little as well: the processor fetches
// ahead no further than a page goes. The system is asked for large pages, and gives small ones
// instead where it has none, or is told not to (/sys/kernel/mm/transparent_hugepage/enabled).
//
// A large page is shared out from its beginning to its end. A piece that comes back is given again
// to the next who asks for that very size, since slabs come in few sizes; a page none of whose
// pieces is in use is shared out anew, or its memory given back to the system.
#ifndef LEEWAY_RUNTIME_MEMORY_PAGE_POOL_H_
#define LEEWAY_RUNTIME_MEMORY_PAGE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/config.h"

namespace leeway::runtime {

// Any thread.
class PagePool {
 public:
  static constexpr std::size_t kPageBytes = 2 << 20;
  static constexpr std::size_t kAlignment = 64;
  // Four fill a page, as blocks of dense tables do by default. Larger pieces would leave too much
  // of their pages unused, unless they are just half of one; smaller ones do not belong here.
  static constexpr std::size_t kPieceBytesMax = kPageBytes / 4;
  static constexpr std::size_t kHalfBytes = kPageBytes / 2;
  static constexpr std::size_t kPieceBytesMin = 1 << 10;

  // The process's, which is never destroyed.
  static PagePool& Shared();
  static bool Takes(std::size_t bytes) {
    return kEnabled &&
           ((bytes >= kPieceBytesMin && bytes <= kPieceBytesMax) || bytes == kHalfBytes);
  }

  PagePool();
  ~PagePool();  // with all that is still in use
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Of a size it takes; uninitialised. Throws std::bad_alloc where the system has no more.
  std::byte* Allocate(std::size_t bytes);
  // As Allocate was asked for; there need be no memory for it.
  void Free(std::byte* memory, std::size_t bytes);

  // A page's memory, for those who keep something about it, such as its registration with a device.
  // Its number is that of no other: a page whose memory was given back to the system in between has
  // another one.
  struct Memory {
    std::byte* page = nullptr;  // of kPageBytes
    std::uint64_t number = 0;
  };
  // That in which all of these bytes lie; nullopt: there is none. While a piece of it is in use it
  // stays the page's.
  std::optional<Memory> Find(const void* data, std::size_t bytes) const;
  // Whether it still is the page's.
  bool Has(const Memory& memory) const;

  std::size_t in_use_bytes() const;
  std::size_t held_bytes() const;  // of pages in use or kept at hand

 private:
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  static constexpr bool kEnabled = false;  // from the heap it is seen who reads beyond an end
#else
  static constexpr bool kEnabled = true;
#endif
  static constexpr std::size_t kOpenMax = 4;  // pages that are being shared out
  // Empty pages whose memory is kept: what pushes of one clock took is wanted again in the next.
  static constexpr std::size_t kAtHandMax = 64;
  static constexpr std::size_t kReserved = 16;  // pages whose addresses are taken at once

  using Piece = std::pair<std::size_t, std::byte*>;  // its size, and where it lies

  struct Page {
    std::size_t shared_out = 0;  // bytes from its beginning
    std::size_t pieces_in_use = 0;
    std::vector<Piece> pieces;  // in use or not
  };

  static std::byte* PageOf(std::byte* memory);
  std::byte* TakeFree(std::size_t bytes);
  std::byte* ShareOut(std::size_t bytes);
  std::byte* NewPage();
  void Reserve();
  std::byte* TakeBack(std::byte* memory, std::size_t bytes);

  mutable std::mutex mutex_;
  std::unordered_map<std::byte*, Page> pages_;             // in use, even in part
  std::set<Piece> free_;                                   // pieces of pages in use
  std::vector<std::byte*> open_;                           // pages that have room at their ends
  std::vector<std::byte*> at_hand_;                        // empty, with their memory
  std::vector<std::byte*> bare_;                           // empty, without
  std::unordered_map<std::byte*, std::uint64_t> numbers_;  // of all but the bare ones
  std::uint64_t last_number_ = 0;
  std::vector<std::pair<void*, std::size_t>> mapped_;
  std::size_t in_use_bytes_ = 0;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_PAGE_POOL_H_
