// ThreadObject gives each thread one object of a type, made at its first use and destroyed when the
// thread ends.
//
// Destructors of objects with static lifetime, and of other thread_local objects, may run after
// that: they get an object of their own for each use. (A plain thread_local object is gone then,
// and its use is undefined.) Uses of one type must not be nested.
#ifndef LEEWAY_RUNTIME_MEMORY_THREAD_OBJECT_H_
#define LEEWAY_RUNTIME_MEMORY_THREAD_OBJECT_H_

#include <memory>

namespace leeway::runtime {

template <class T>
class ThreadObject {
 public:
  ThreadObject() {
    if (kept_.over) {
      own_ = std::make_unique<T>();
    } else if (kept_.object == nullptr) {
      kept_.object = new T;
      thread_local AtThreadExit at_exit;
    }
  }
  ThreadObject(const ThreadObject&) = delete;
  ThreadObject& operator=(const ThreadObject&) = delete;

  T& operator*() const { return own_ == nullptr ? *kept_.object : *own_; }
  T* operator->() const { return &**this; }

 private:
  struct Kept {  // has no destructor
    T* object = nullptr;
    bool over = false;
  };
  struct AtThreadExit {
    ~AtThreadExit() {
      delete kept_.object;
      kept_ = {.object = nullptr, .over = true};
    }
  };

  static inline constinit thread_local Kept kept_;
  std::unique_ptr<T> own_;  // after the thread's
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_THREAD_OBJECT_H_
