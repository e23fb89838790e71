// An Array is memory for tensors that a server of the same machine reads without a copy.
//
//     absl::StatusOr<Array> gradient = worker->Allocate(elements * sizeof(float));
//     Ticket ticket = table.Push(std::span<const float>(gradient->as<float>()));
//
// It is used like any other memory, wherever a call takes a span. The difference is how a dense
// push of it travels: over shared memory the server reads it where it lies. (A server copies a push
// to a BSP table, or to a table with replicas, before it answers, since it needs the values for
// longer.) To other machines, over tcp, and where the system has no memory that can be shared, an
// Array is memory like any other; that is no error.
//
// The rules are those of every push: the array stays alive and unchanged until the ticket has
// completed. From then on no server reads it or sees later writes to it, also when the ticket has
// failed because its server was stopped or is dead. Such a push may still be applied, as a whole,
// with the values that the array had at the push. (If a connection breaks while the server reads
// the array, the library detaches the array: it puts private pages in place of the shared ones,
// without a copy. From then on pushes of this array are copied on their way; allocate a new one to
// share again.)
#ifndef LEEWAY_ARRAY_H_
#define LEEWAY_ARRAY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace leeway {

// Owns its memory and frees it when it is destroyed; it may outlive the worker that allocated it.
// To free it before the tickets of its pushes have completed is against the rules, and harms only
// the values. Movable. Used by one thread at a time, apart from the memory itself. A forked child
// shares the memory with its parent.
class Array {
 public:
  Array() = default;  // none
  // `memory` keeps `bytes` bytes alive; it points to the first of them.
  Array(std::shared_ptr<void> memory, std::uint64_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  Array(Array&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  void* data() const { return memory_.get(); }    // the start of a page; null: no memory
  std::uint64_t bytes() const { return bytes_; }  // the size that Worker::Allocate was called with

  // The memory as elements of T. Bytes at the end that make no whole element are left out.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(memory_.get()), static_cast<std::size_t>(bytes_ / sizeof(T))};
  }

 private:
  std::shared_ptr<void> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace leeway

#endif  // LEEWAY_ARRAY_H_
