// A Buffer is a view of bytes together with a share in the object that keeps them alive.
//
// Payloads travel through the process as Buffers and are not copied on the way: a Buffer may point
// into a user's array, a received message, a block of a table or memory of its own. Any thread may
// copy and drop Buffers of the same owner; one Buffer belongs to one thread at a time.
#ifndef LEEWAY_RUNTIME_MEMORY_BUFFER_H_
#define LEEWAY_RUNTIME_MEMORY_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

// A BufferOwner keeps bytes alive. It counts the Buffers that refer to it; OnUnused is called when
// the last one goes, on the thread that drops it (which may be a transport's I/O thread).
class BufferOwner {
 public:
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) OnUnused();
  }
  // True if another process could change the bytes meanwhile (shared memory): bytes that have been
  // checked must not be read a second time.
  virtual bool may_change() const { return false; }
  // True if another party waits for the bytes to be released, as for a user's array that was
  // exported. Code that keeps such a Buffer for longer than it handles the message takes a copy
  // (Buffer::EnsureOwned).
  virtual bool exported() const { return false; }
  // True if exactly one Buffer (or other holder of a reference) is left: then its bytes may be
  // changed in place.
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

 protected:
  explicit BufferOwner(int initial_refs = 1) : refs_(initial_refs) {}
  virtual ~BufferOwner() = default;
  virtual void OnUnused() { delete this; }

 private:
  std::atomic<int> refs_;
};

class Buffer {
 public:
  // Payloads of this size or more are never part of an envelope (van/session/envelope.h) or a batch
  // (proto/messages/limits.h); smaller ones may share their memory with other messages.
  static constexpr std::size_t kMayShareBytes = 4096;

  Buffer() = default;
  // Takes over one reference to `owner`. Null: the caller keeps the bytes alive for longer than the
  // Buffer and its copies.
  Buffer(const void* data, std::size_t size, BufferOwner* owner)
      : data_(static_cast<const std::byte*>(data)), size_(size), owner_(owner) {}

  static Buffer Unowned(const void* data, std::size_t size) { return {data, size, nullptr}; }
  static Buffer CopyOf(const void* data, std::size_t size);
  static Buffer CopyOf(absl::string_view text) { return CopyOf(text.data(), text.size()); }
  // `size` bytes, uninitialised, 64-byte aligned, writable through `*data` until first shared.
  // Throws std::bad_alloc.
  static Buffer Allocate(std::size_t size, std::byte** data);
  // As Allocate, for a size that comes from outside. `*data` is null if there is not so much
  // memory.
  static Buffer TryAllocate(std::size_t size, std::byte** data);

  Buffer(const Buffer& other) : data_(other.data_), size_(other.size_), owner_(other.owner_) {
    if (owner_ != nullptr) owner_->Ref();
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        owner_(std::exchange(other.owner_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Buffer() {
    if (owner_ != nullptr) owner_->Unref();
  }

  // A view of `size` bytes from `offset` on, with a reference of its own. The range lies within the
  // Buffer.
  Buffer Part(std::size_t offset, std::size_t size) const {
    if (owner_ != nullptr) owner_->Ref();
    return {data_ + offset, size, owner_};
  }

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  absl::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  bool may_change() const { return owner_ != nullptr && owner_->may_change(); }
  bool exported() const { return owner_ != nullptr && owner_->exported(); }
  // For bytes that are kept for longer than the message that they came in. Returns a copy if
  // another party waits for them (exported), or if they are fewer than kMayShareBytes and may thus
  // keep a whole envelope or batch alive; otherwise shares them.
  Buffer EnsureOwned() const {
    return exported() || size_ < kMayShareBytes ? CopyOf(data_, size_) : *this;
  }
  bool aligned_to(std::size_t alignment) const {
    return reinterpret_cast<std::uintptr_t>(data_) % alignment == 0;
  }

  // The bytes as an array of T. The caller has checked size and alignment (proto::Decode checks
  // both for every payload).
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  BufferOwner* owner_ = nullptr;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_BUFFER_H_
