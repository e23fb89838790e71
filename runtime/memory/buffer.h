// A view of bytes together with a share in whatever keeps them alive.
//
// Payloads travel through the house as Buffers and are never copied on the way: a Buffer may point
// into a user's array, a received message, a block of a table or memory of its own.
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

// What keeps bytes alive. Counts its Buffers; when the last one goes it is told so, on whatever
// thread that happens (a transport's I/O thread included).
class BufferOwner {
 public:
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) OnUnused();
  }
  // Whether somebody else could change the bytes meanwhile (memory shared with another process):
  // what has been checked in them must not be read again.
  virtual bool may_change() const { return false; }
  // Whether somebody waits for them to be given back, as for a user's array that was exported: who
  // keeps them for longer than the message is being dealt with takes a copy (Buffer::EnsureOwned).
  virtual bool exported() const { return false; }
  // Whether exactly one Buffer (or holder) is left: then its bytes may be changed in place.
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
  // Nothing as large is in an envelope (van/session/envelope.h) or a batch
  // (proto/messages/limits.h).
  static constexpr std::size_t kMayShareBytes = 4096;

  Buffer() = default;
  // Takes over one reference to `owner` (null: the bytes outlive the Buffer by other means).
  Buffer(const void* data, std::size_t size, BufferOwner* owner)
      : data_(static_cast<const std::byte*>(data)), size_(size), owner_(owner) {}

  static Buffer Unowned(const void* data, std::size_t size) { return {data, size, nullptr}; }
  static Buffer CopyOf(const void* data, std::size_t size);
  static Buffer CopyOf(absl::string_view text) { return CopyOf(text.data(), text.size()); }
  // `size` bytes, uninitialised, 64-byte aligned, writable through `*data` until first shared.
  static Buffer Allocate(std::size_t size, std::byte** data);
  // The same for a size that somebody else names. Null `*data`: so much is not to be had.
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

  // A view of some of its bytes, with a share of its own in what keeps them alive. They are there.
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
  // For what is kept longer than the message it came in: the same bytes, in memory of our own if
  // somebody waits for these, or if there are so few of them that they may be a part of much else
  // that came with them (an envelope, a batch) and would stay as well.
  Buffer EnsureOwned() const {
    return exported() || size_ < kMayShareBytes ? CopyOf(data_, size_) : *this;
  }
  bool aligned_to(std::size_t alignment) const {
    return reinterpret_cast<std::uintptr_t>(data_) % alignment == 0;
  }

  // The bytes as an array of T. The caller has checked size and alignment
  // (proto::Decode does both for every payload it lets through).
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
