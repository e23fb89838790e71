// Memory for small objects that come and go by the million, such as what stands for one push.
//
// Each thread keeps what it gives back, to use it again. The system's allocator does so for a
// handful of each size only; with more of them under way it takes the long way for each, several
// times as dear.
#ifndef LEEWAY_RUNTIME_MEMORY_FREE_LIST_H_
#define LEEWAY_RUNTIME_MEMORY_FREE_LIST_H_

#include <cstddef>
#include <new>

#include "runtime/memory/sanitized.h"

namespace leeway::runtime {

// Pieces of kBytes each, aligned as by operator new. Any thread; one may be given back by another
// than took it.
template <std::size_t kBytes>
class FreeList {
 public:
  static constexpr std::size_t kKeptMax = (128 << 10) / kBytes;  // by each thread

  static void* Take() {
    if (kept_.first == nullptr) return ::operator new(kBytes);
    Piece* const piece = kept_.first;
    kept_.first = piece->next;
    ++kept_.room;
    return piece;
  }

  static void Give(void* memory) {
    // From the heap a sanitizer sees who uses what has been given back.
    if (kSanitized || (kept_.room == 0 && !Open())) return ::operator delete(memory);
    kept_.first = new (memory) Piece{kept_.first};
    --kept_.room;
  }

 private:
  struct Piece {
    Piece* next;
  };
  static_assert(kBytes >= sizeof(Piece));

  // Has no destructor: objects of longer life than the thread's own are given back as well.
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

  // With the first piece to keep; false: there is no room, or the thread is about to end.
  static bool Open() {
    if (kept_.opened) return false;
    kept_.opened = true;
    kept_.room = kKeptMax;
    thread_local AtThreadExit at_exit;
    return true;
  }

  static inline constinit thread_local Kept kept_;
};

// For containers whose elements are allocated one by one, and for std::allocate_shared.
template <class T>
struct Recycled {
  using value_type = T;
  // Those of about the same size share a list.
  using List = FreeList<(sizeof(T) + 63) / 64 * 64>;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  Recycled() = default;
  template <class U>
  Recycled(const Recycled<U>&) {}  // NOLINT: as the standard wants it

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
