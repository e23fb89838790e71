// An SArray is an array that shares its memory: copies, segments and casts point to the same
// elements, which live as long as one of them.
//
// It is made to grow like a vector, too. An array that grows beyond its capacity gets memory of its
// own; the others keep the old one. Threads may use different SArrays of the same memory.
#ifndef PS_SARRAY_H_
#define PS_SARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "ps/internal/utils.h"
#include "ps/range.h"

namespace ps {

template <typename V>
class SArray {
 public:
  SArray() = default;
  ~SArray() = default;

  explicit SArray(size_t size, V val = 0) { resize(size, val); }

  // The same memory, perhaps as elements of another type, whose size has to divide it.
  SArray(const SArray&) = default;
  SArray& operator=(const SArray&) = default;
  template <typename W>
  explicit SArray(const SArray<W>& other) {
    *this = other;
  }
  template <typename W>
  void operator=(const SArray<W>& other) {
    const size_t bytes = other.size() * sizeof(W);
    CHECK_EQ(bytes % sizeof(V), 0u)
        << "an array of " << bytes << " bytes is not one of elements of " << sizeof(V) << " bytes";
    size_ = bytes / sizeof(V);
    capacity_ = other.capacity() * sizeof(W) / sizeof(V);
    ptr_ = std::shared_ptr<V>(other.ptr(), reinterpret_cast<V*>(other.data()));
  }

  // The caller's memory, which is freed by `delete[]` at the end if `deletable`.
  SArray(V* data, size_t size, bool deletable = false) {
    if (deletable) {
      reset(data, size, std::default_delete<V[]>());
    } else {
      reset(data, size, [](V*) {});
    }
  }
  // The memory of a vector that is shared.
  explicit SArray(const std::shared_ptr<std::vector<V>>& vector)
      : size_(vector->size()), capacity_(size_), ptr_(vector, vector->data()) {}
  // Copies.
  explicit SArray(const std::vector<V>& vector) { CopyFrom(vector.data(), vector.size()); }
  template <typename W>
  SArray(const std::initializer_list<W>& list) {
    CopyFrom(list.begin(), list.end());
  }
  template <typename W>
  void operator=(const std::initializer_list<W>& list) {
    CopyFrom(list.begin(), list.end());
  }

  // Into the memory of this array, which others may share, if it has room; `data` may be in it.
  void CopyFrom(const V* data, size_t size) {
    const SArray<V> kept = *this;
    if (size > capacity_) Allocate(size);
    size_ = size;
    if (size > 0) std::memmove(static_cast<void*>(ptr_.get()), data, size * sizeof(V));
  }
  void CopyFrom(const SArray<V>& other) {
    if (this != &other) CopyFrom(other.data(), other.size());
  }
  // Into new memory.
  template <typename ForwardIt>
  void CopyFrom(const ForwardIt& first, const ForwardIt& last) {
    const SArray<V> kept = *this;
    Allocate(static_cast<size_t>(std::distance(first, last)));
    std::copy(first, last, ptr_.get());
  }

  // Takes memory, and what frees it.
  template <typename Deleter>
  void reset(V* data, size_t size, Deleter deleter) {
    size_ = size;
    capacity_ = size;
    ptr_.reset(data, deleter);
  }

  // New elements have the value `val`.
  void resize(size_t size, V val = 0) {
    const size_t before = size_;
    if (size > capacity_) Grow(size);
    size_ = size;
    if (size > before) std::fill(data() + before, data() + size, val);
  }
  void reserve(size_t size) {
    if (size > capacity_) Grow(size);
  }
  void clear() {
    reset(nullptr, 0, [](V*) {});
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

  V* data() const { return ptr_.get(); }
  V* begin() { return data(); }
  const V* begin() const { return data(); }
  V* end() { return data() + size_; }
  const V* end() const { return data() + size_; }
  std::shared_ptr<V>& ptr() { return ptr_; }
  const std::shared_ptr<V>& ptr() const { return ptr_; }

  V& operator[](size_t i) { return data()[i]; }
  const V& operator[](size_t i) const { return data()[i]; }
  V front() const {
    CHECK(!empty());
    return data()[0];
  }
  V back() const {
    CHECK(!empty());
    return data()[size_ - 1];
  }

  void push_back(const V& val) {
    const V kept = val;  // it may be an element of this array
    if (size_ == capacity_) Grow(2 * size_ + 8);
    data()[size_++] = kept;
  }
  void pop_back() {
    if (size_ > 0) --size_;
  }
  void append(const SArray<V>& other) {
    const SArray<V> kept = other;  // it may be this array
    const size_t before = size_;
    if (before + kept.size() > capacity_) Grow(before + kept.size());
    size_ = before + kept.size();
    if (!kept.empty()) std::copy(kept.begin(), kept.end(), data() + before);
  }

  // The elements [begin, end), in the same memory.
  SArray<V> segment(size_t begin, size_t end) const {
    CHECK_LE(begin, end);
    CHECK_LE(end, size_);
    SArray<V> part;
    part.ptr_ = std::shared_ptr<V>(ptr_, data() + begin);
    part.size_ = end - begin;
    part.capacity_ = end - begin;
    return part;
  }

 private:
  void Allocate(size_t size) {
    reset(size == 0 ? nullptr : new V[size], size, std::default_delete<V[]>());
  }
  // At least so many; the elements stay, in new memory.
  void Grow(size_t capacity) {
    SArray<V> larger;
    larger.Allocate(capacity);
    if (size_ > 0) std::copy(data(), data() + size_, larger.data());
    larger.size_ = size_;
    *this = larger;
  }

  size_t size_ = 0;
  size_t capacity_ = 0;
  std::shared_ptr<V> ptr_;
};

// The positions of the elements of a sorted array that are in [lower, upper).
template <typename V>
Range FindRange(const SArray<V>& sorted, V lower, V upper) {
  if (upper <= lower) return Range(0, 0);
  const V* const first = std::lower_bound(sorted.begin(), sorted.end(), lower);
  const V* const last = std::lower_bound(first, sorted.end(), upper);
  return Range(static_cast<uint64_t>(first - sorted.begin()),
               static_cast<uint64_t>(last - sorted.begin()));
}

// "[3]: 1 2 3", of a long array its first and last `shown` elements.
template <typename V>
inline std::string DebugStr(const V* data, int size, int shown = 5) {
  std::ostringstream text;
  text << "[" << size << "]: ";
  const bool all = size < 2 * shown;
  for (int i = 0; i < (all ? size : shown); ++i) text << data[i] << " ";
  if (!all) {
    text << "... ";
    for (int i = size - shown; i < size; ++i) text << data[i] << " ";
  }
  return text.str();
}

template <typename V>
std::ostream& operator<<(std::ostream& out, const SArray<V>& array) {
  return out << DebugStr(array.data(), static_cast<int>(array.size()));
}

}  // namespace ps

#endif  // PS_SARRAY_H_
