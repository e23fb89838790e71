// FreeList is a per-thread cache of memory for small objects that are made and destroyed by the
// million, such as the record of one push.
//
// Each thread keeps the memory that it frees, to use it again. The system's allocator caches only a
// few pieces of each size for a thread; with more of them in use, each allocation takes its slow
// path, which costs several times as much.
#ifndef LEEWAY_RUNTIME_MEMORY_FREE_LIST_H_
#define LEEWAY_RUNTIME_MEMORY_FREE_LIST_H_

#include <cstddef>
#include <new>

#include "runtime/memory/sanitized.h"

namespace leeway::runtime {

// Pieces of kBytes each, aligned as by operator new. Any thread; a piece may be freed on another
// thread than it was taken on.
template <std::size_t kBytes>
class FreeList {
 public:
  static constexpr std::size_t kKeptMax = (128 << 10) / kBytes;  // pieces that a thread keeps

  static void* Take() {
    if (kept_.first == nullptr) return ::operator new(kBytes);
    Piece* const piece = kept_.first;
    kept_.first = piece->next;
    ++kept_.room;
    return piece;
  }

  static void Give(void* memory) {
    // Sanitizers detect use after free only for memory of the heap.
    if (kSanitized || (kept_.room == 0 && !Open())) return ::operator delete(memory);
    kept_.first = new (memory) Piece{kept_.first};
    --kept_.room;
  }

 private:
  struct Piece {
    Piece* next;
  };
  static_assert(kBytes >= sizeof(Piece));

  // Has no destructor, because objects that outlive the thread's own (thread_local) objects free
  // memory too.
  struct Kept {
    Piece* first = nullptr;
    std::size_t room = 0;
    bool opened = false;
  };

  struct AtThreadExit {
    ~AtThreadExit() {
      while (kept_.first != nullptr) ::operator delete(Take());
      kept_.room = 0;
    }
  };

  // Called for the first piece that the thread frees. False: the list is full, or the thread is
  // about to end.
  static bool Open() {
    if (kept_.opened) return false;
    kept_.opened = true;
    kept_.room = kKeptMax;
    thread_local AtThreadExit at_exit;
    return true;
  }

  static inline constinit thread_local Kept kept_;
};

// Recycled is an allocator over FreeList, for containers that allocate element by element and for
// std::allocate_shared.
template <class T>
struct Recycled {
  using value_type = T;
  // Types of about the same size share a list.
  using List = FreeList<(sizeof(T) + 63) / 64 * 64>;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  Recycled() = default;
  template <class U>
  Recycled(const Recycled<U>&) {}  // NOLINT: implicit, as allocators have to be

  T* allocate(std::size_t count) {
    return static_cast<T*>(count == 1 ? List::Take() : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) {
    count == 1 ? List::Give(memory) : ::operator delete(memory);
  }
  template <class U>
  bool operator==(const Recycled<U>&) const {
    return true;
  }
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_FREE_LIST_H_
