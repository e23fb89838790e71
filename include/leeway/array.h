// Memory for tensors that need not be copied on their way to a server of the same machine.
//
//     absl::StatusOr<Array> gradient = worker->Allocate(elements * sizeof(float));
//     Ticket ticket = table.Push(std::span<const float>(gradient->as<float>()));
//
// It is used like any other memory, wherever a span is asked for. What differs is how a dense push
// of it travels: over shared memory the server reads it where it lies. (A push to a BSP table, and
// one to a table with replicas, it copies before it answers, since it needs the values for longer.)
// Towards other machines, over tcp, and where the system has no memory that can be shared it is
// memory like any other, without an error.
//
// The rules are those of every push: alive and unchanged until the ticket has completed. Then no
// server reads it any more, or sees what is written to it: also when the ticket has failed because
// its server was stopped or is dead. Such a push may still be applied, as a whole, with the values
// that it had. (Should a connection break while it is being read, the array
// is separated from what others see, without a copy, and copied on its way from then on. Allocate
// it anew to have it shared again.)
#ifndef LEEWAY_ARRAY_H_
#define LEEWAY_ARRAY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace leeway {

// Owns its memory; freed when it goes, whatever becomes of the worker that allocated it. To free it
// before the tickets of its pushes have completed is against the rules, and harms only the values.
// Movable; one thread at a time, apart from the memory itself. A child that was forked shares the
// memory with its parent.
class Array {
 public:
  Array() = default;  // none
  // `memory` keeps `bytes` bytes alive.
  Array(std::shared_ptr<void> memory, std::uint64_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  Array(Array&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  void* data() const { return memory_.get(); }    // at the start of a page; null: none
  std::uint64_t bytes() const { return bytes_; }  // as asked for

  // As elements of T; bytes at the end that are no whole element are left out.
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
