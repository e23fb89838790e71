// PagePool allocates memory in pages of 2 MiB where the system has them: for rows that are read at
// random, for large blocks, and for pushes of such blocks.
//
// The processor's cache of page addresses (TLB) is small. Rows scattered over gigabytes of 4-KiB
// pages are never in it, and translating an address takes longer than reading the row. Blocks that
// are read from one end to the other gain a little too, because hardware prefetching stops at the
// end of a page. The pool asks the system for large pages; the system gives small ones instead
// where it has none or is configured so (/sys/kernel/mm/transparent_hugepage/enabled).
//
// A page is divided into pieces from its beginning to its end. A freed piece is given to the next
// caller that asks for exactly that size, since there are few sizes of slabs. When no piece of a
// page is in use, the page is divided anew, or its memory goes back to the system.
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
  // A quarter of a page, the default size of a dense table's block. Larger pieces would leave too
  // much of their pages unused, except halves; smaller ones than kPieceBytesMin are left to the
  // heap.
  static constexpr std::size_t kPieceBytesMax = kPageBytes / 4;
  static constexpr std::size_t kHalfBytes = kPageBytes / 2;
  static constexpr std::size_t kPieceBytesMin = 1 << 10;

  // The pool of this process, which is never destroyed.
  static PagePool& Shared();
  // Whether the pool serves that size; otherwise the caller uses the heap.
  static bool Takes(std::size_t bytes) {
    return kEnabled &&
           ((bytes >= kPieceBytesMin && bytes <= kPieceBytesMax) || bytes == kHalfBytes);
  }

  PagePool();
  ~PagePool();  // frees all pieces, also those in use
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Uninitialised memory of a size that Takes allows. Throws std::bad_alloc where the system has no
  // more.
  std::byte* Allocate(std::size_t bytes);
  // Frees a piece; `bytes` as in Allocate. Allocates no memory itself.
  void Free(std::byte* memory, std::size_t bytes);

  // Identifies the memory of a page, for code that keeps something about it, such as its
  // registration with a device. Numbers are never used twice: if a page's memory goes back to the
  // system and comes again, it has another number.
  struct Memory {
    std::byte* page = nullptr;  // kPageBytes long
    std::uint64_t number = 0;
  };
  // The page in which all of these bytes lie; nullopt: there is none. The answer stays right while
  // a piece of that page is in use.
  std::optional<Memory> Find(const void* data, std::size_t bytes) const;
  // Whether the page still has that memory.
  bool Has(const Memory& memory) const;

  std::size_t in_use_bytes() const;
  std::size_t held_bytes() const;  // of all pages with memory: in use or kept

 private:
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  static constexpr bool kEnabled = false;  // the sanitizer checks bounds in the heap only
#else
  static constexpr bool kEnabled = true;
#endif
  static constexpr std::size_t kOpenMax = 4;  // pages that are being divided
  // Empty pages that keep their memory: pushes of the next clock need as much as those of the last.
  static constexpr std::size_t kAtHandMax = 64;
  static constexpr std::size_t kReserved = 16;  // pages for which address space is reserved at once

  using Piece = std::pair<std::size_t, std::byte*>;  // size, address

  struct Page {
    std::size_t shared_out = 0;  // bytes from its beginning that were made into pieces
    std::size_t pieces_in_use = 0;
    std::vector<Piece> pieces;  // all pieces, in use or not
  };

  static std::byte* PageOf(std::byte* memory);
  std::byte* TakeFree(std::size_t bytes);
  std::byte* ShareOut(std::size_t bytes);
  std::byte* NewPage();
  void Reserve();
  std::byte* TakeBack(std::byte* memory, std::size_t bytes);

  mutable std::mutex mutex_;
  std::unordered_map<std::byte*, Page> pages_;             // with at least one piece in use
  std::set<Piece> free_;                                   // free pieces of pages in use
  std::vector<std::byte*> open_;                           // pages with room at their ends
  std::vector<std::byte*> at_hand_;                        // empty, with memory
  std::vector<std::byte*> bare_;                           // empty, without memory
  std::unordered_map<std::byte*, std::uint64_t> numbers_;  // of all pages not in bare_
  std::uint64_t last_number_ = 0;
  std::vector<std::pair<void*, std::size_t>> mapped_;
  std::size_t in_use_bytes_ = 0;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_PAGE_POOL_H_
