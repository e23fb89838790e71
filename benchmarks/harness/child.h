// A Child is a process that the benchmark forks and that does not outlive it.
#ifndef LEEWAY_BENCHMARKS_HARNESS_CHILD_H_
#define LEEWAY_BENCHMARKS_HARNESS_CHILD_H_

#include <sys/types.h>

#include <functional>
#include <utility>

namespace leeway::bench {

class Child {
 public:
  Child() = default;
  // Runs `work` in a process of its own, which exits with the result of `work`. Call it before this
  // process has threads.
  static Child Fork(const std::function<int()>& work);
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Child();  // Kill, if it has not been waited for

  pid_t pid() const { return pid_; }
  // Its exit status, once it has ended.
  int Wait();
  void Kill();

 private:
  pid_t pid_ = -1;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_HARNESS_CHILD_H_
