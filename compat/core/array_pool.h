// An ArrayPool has memory for copies of arrays, and keeps what is given back: the next copy of
// about the same size goes where the caches have it already, and faults no pages in. Any thread.
#ifndef LEEWAY_COMPAT_CORE_ARRAY_POOL_H_
#define LEEWAY_COMPAT_CORE_ARRAY_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace leeway::compat {

class ArrayPool : public std::enable_shared_from_this<ArrayPool> {
 public:
  // Of what is kept.
  static constexpr std::size_t kArraysMax = 16;
  static constexpr std::uint64_t kBytesMax = 128 << 20;

  // At least `size` bytes, uninitialised and aligned for any number.
  std::shared_ptr<std::byte> Take(std::size_t size) {
    Array array = Find(size);
    std::byte* const data = array.data.release();
    return {data, [pool = shared_from_this(), room = array.size](std::byte* memory) {
              pool->Keep({std::unique_ptr<std::byte[]>(memory), room});
            }};
  }

 private:
  struct Array {
    std::unique_ptr<std::byte[]> data;
    std::size_t size = 0;
  };

  // The newest one that fits and is no more than twice as large.
  Array Find(std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = kept_.size(); i-- > 0;) {
        if (kept_[i].size < size || kept_[i].size / 2 > size) continue;
        Array array = std::move(kept_[i]);
        kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
        bytes_ -= array.size;
        return array;
      }
    }
    return {std::unique_ptr<std::byte[]>(new std::byte[size]), size};
  }
  void Keep(Array array) {
    const std::lock_guard lock(mutex_);
    if (array.size > kBytesMax) return;
    while (kept_.size() >= kArraysMax || bytes_ + array.size > kBytesMax) {
      bytes_ -= kept_.front().size;
      kept_.erase(kept_.begin());
    }
    bytes_ += array.size;
    kept_.push_back(std::move(array));
  }

  std::mutex mutex_;
  std::vector<Array> kept_;  // the newest last
  std::uint64_t bytes_ = 0;  // of those
};

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_ARRAY_POOL_H_
