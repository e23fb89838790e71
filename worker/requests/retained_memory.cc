#include "worker/requests/retained_memory.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace leeway::worker {

class RetainedMemory::Slab final : public runtime::BufferOwner {
 public:
  explicit Slab(std::size_t size) : BufferOwner(0), size_(size) {
    whole_ = runtime::Buffer::Allocate(size, &data_);
  }
  runtime::Buffer Fill(const std::byte* data, std::shared_ptr<FreeList> home) {
    home_ = std::move(home);
    std::memcpy(data_, data, size_);
    Ref();
    return {data_, size_, this};
  }
  std::size_t size() const { return size_; }

 private:
  void OnUnused() override;

  runtime::Buffer whole_;
  std::byte* data_ = nullptr;
  const std::size_t size_;
  std::shared_ptr<FreeList> home_;  // while in use
};

class RetainedMemory::FreeList {
 public:
  std::unique_ptr<Slab> Take(std::size_t size) {
    std::lock_guard lock(mutex_);
    const auto found = slabs_.find(size);
    if (found != slabs_.end()) {
      std::unique_ptr<Slab> slab = std::move(found->second);
      slabs_.erase(found);
      bytes_ -= size;
      return slab;
    }
    // The sizes in use have changed: blocks of other sizes make room.
    for (std::size_t made = 0; made < size && !slabs_.empty();) {
      made += slabs_.begin()->first;
      bytes_ -= slabs_.begin()->first;
      slabs_.erase(slabs_.begin());
    }
    return nullptr;
  }
  void Give(std::unique_ptr<Slab> slab) {
    std::lock_guard lock(mutex_);
    bytes_ += slab->size();
    const std::size_t size = slab->size();
    slabs_.emplace(size, std::move(slab));
  }
  std::size_t bytes() {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, std::unique_ptr<Slab>> slabs_;
  std::size_t bytes_ = 0;
};

void RetainedMemory::Slab::OnUnused() {
  const std::shared_ptr<FreeList> home = std::move(home_);
  home->Give(std::unique_ptr<Slab>(this));
}

RetainedMemory::RetainedMemory() : free_(std::make_shared<FreeList>()) {}
RetainedMemory::~RetainedMemory() = default;

runtime::Buffer RetainedMemory::CopyOf(const runtime::Buffer& frame) {
  if (frame.empty()) return {};
  std::unique_ptr<Slab> slab = free_->Take(frame.size());
  if (slab == nullptr) slab = std::make_unique<Slab>(frame.size());
  return slab.release()->Fill(frame.data(), free_);  // comes back by OnUnused
}

std::size_t RetainedMemory::free_bytes() const { return free_->bytes(); }

}  // namespace leeway::worker
