#include "ps/store/memory/block_pool.h"

#include <algorithm>
#include <utility>

#include "ps/store/memory/block_free_list.h"

namespace leeway::ps {

using Memory = SharedBytes::Memory;

// ---- the free list ----

void Memory::OnUnused() {
  if (const std::shared_ptr<BlockFreeList> free_list = std::move(home)) return free_list->Put(this);
  delete this;
}

BlockFreeList::~BlockFreeList() {
  for (Size& size : sizes) {
    while (Memory* const memory = Pop(&size)) Delete(&size, memory);
  }
}

BlockFreeList::Size* BlockFreeList::Find(std::size_t bytes) {
  for (Size& size : sizes) {
    if (size.bytes == bytes) return &size;
    if (size.bytes != 0) continue;
    size.bytes = bytes;
    return &size;
  }
  return nullptr;
}

Memory* BlockFreeList::Pop(Size* size) {
  if (size->ready == nullptr) {
    size->ready = size->returned.exchange(nullptr, std::memory_order_acquire);
  }
  Memory* const memory = size->ready;
  if (memory == nullptr) return nullptr;
  size->ready = std::exchange(memory->next, nullptr);
  --size->here;
  return memory;
}

Memory* BlockFreeList::Take(Size* size) {
  Memory* memory = Pop(size);
  if (memory != nullptr) {
    memory->Ref();
  } else {
    memory = new Memory(size->bytes);
    ++size->made;
  }
  size->most_in_use = std::max(size->most_in_use, size->in_use());
  memory->home = shared_from_this();
  return memory;
}

void BlockFreeList::Push(Size* size, Memory* memory) {
  ++size->here;
  memory->next = size->returned.load(std::memory_order_relaxed);
  while (!size->returned.compare_exchange_weak(memory->next, memory, std::memory_order_release,
                                               std::memory_order_relaxed)) {
  }
}

void BlockFreeList::Put(Memory* memory) {
  Size* const size = Find(memory->bytes);
  const bool full = !keep_all && size->here >= size->kept();
  closed || full ? Delete(size, memory) : Push(size, memory);
}

void BlockFreeList::Add(Size* size) {
  constexpr std::size_t kPage = 4096;
  auto* const memory = new Memory(size->bytes, /*refs=*/0);
  for (std::size_t i = 0; i < memory->bytes; i += kPage) memory->data[i] = std::byte{0};
  ++size->made;
  Push(size, memory);
}

void BlockFreeList::Delete(Size* size, Memory* memory) {
  --size->made;
  delete memory;
}

// ---- what its owner does with it ----

BlockPool::BlockPool() : free_list_(std::make_shared<BlockFreeList>()) {}
BlockPool::~BlockPool() { free_list_->closed = true; }

SharedBytes BlockPool::New(BlockPool* pool, std::size_t bytes) {
  return pool == nullptr ? SharedBytes(bytes) : pool->New(bytes);
}

SharedBytes BlockPool::New(std::size_t bytes) {
  BlockFreeList::Size* const size = bytes < kBytesMin ? nullptr : free_list_->Find(bytes);
  return size == nullptr ? SharedBytes(bytes) : SharedBytes(free_list_->Take(size));
}

void BlockPool::BeginCopies() {
  for (BlockFreeList::Size& size : free_list_->sizes) size.most_in_use = size.in_use();
  free_list_->keep_all = true;
}

void BlockPool::EndCopies() {
  if (!free_list_->keep_all.exchange(false)) return;
  for (BlockFreeList::Size& size : free_list_->sizes)
    size.wanted = size.most_in_use - size.in_use();
  copies_known_ = true;
}

void BlockPool::Reserve(std::uint64_t bytes) {
  const std::uint64_t in_use = in_use_bytes();
  if (in_use == 0) return;
  const double part = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(in_use));
  for (BlockFreeList::Size& size : free_list_->sizes) {
    const auto least = static_cast<std::int64_t>(part * static_cast<double>(size.in_use()));
    size.wanted = std::max(size.wanted.load(), least);
  }
}

std::uint64_t BlockPool::Refiller::Refill(std::uint64_t bytes_max) const {
  std::uint64_t added = 0;
  for (BlockFreeList::Size& size : free_list_->sizes) {
    while (size.here < size.wanted && added < bytes_max && !free_list_->closed) {
      free_list_->Add(&size);
      added += size.bytes;
    }
  }
  return added;
}

BlockPool::Excess BlockPool::TakeExcess() {
  Excess excess;
  for (BlockFreeList::Size& size : free_list_->sizes) {
    while (size.bytes != 0 && size.here > size.kept()) {
      Memory* const memory = free_list_->Pop(&size);
      if (memory == nullptr) break;  // counted, but not there yet
      excess.emplace_back(memory, [free_list = free_list_, &size](Memory* one) {
        BlockFreeList::Delete(&size, one);
      });
    }
  }
  return excess;
}

std::uint64_t BlockPool::ready_bytes() const {
  std::uint64_t bytes = 0;
  for (const BlockFreeList::Size& size : free_list_->sizes) {
    bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(0, size.here)) * size.bytes;
  }
  return bytes;
}

std::uint64_t BlockPool::in_use_bytes() const {
  std::uint64_t bytes = 0;
  for (const BlockFreeList::Size& size : free_list_->sizes) {
    bytes +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, size.made - size.here)) * size.bytes;
  }
  return bytes;
}

}  // namespace leeway::ps
