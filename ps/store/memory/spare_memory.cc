#include "ps/store/memory/spare_memory.h"

#include <algorithm>
#include <utility>

#include "ps/store/memory/spare_shelf.h"

namespace leeway::ps {

using Memory = SharedBytes::Memory;

// ---- the shelf ----

void Memory::OnUnused() {
  if (const std::shared_ptr<SpareShelf> shelf = std::move(home)) return shelf->Put(this);
  delete this;
}

SpareShelf::~SpareShelf() {
  for (Size& size : sizes) {
    while (Memory* const memory = Pop(&size)) Delete(&size, memory);
  }
}

SpareShelf::Size* SpareShelf::Find(std::size_t bytes) {
  for (Size& size : sizes) {
    if (size.bytes == bytes) return &size;
    if (size.bytes != 0) continue;
    size.bytes = bytes;
    return &size;
  }
  return nullptr;
}

Memory* SpareShelf::Pop(Size* size) {
  if (size->ready == nullptr) {
    size->ready = size->returned.exchange(nullptr, std::memory_order_acquire);
  }
  Memory* const memory = size->ready;
  if (memory == nullptr) return nullptr;
  size->ready = std::exchange(memory->next, nullptr);
  --size->here;
  return memory;
}

Memory* SpareShelf::Take(Size* size) {
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

void SpareShelf::Push(Size* size, Memory* memory) {
  ++size->here;
  memory->next = size->returned.load(std::memory_order_relaxed);
  while (!size->returned.compare_exchange_weak(memory->next, memory, std::memory_order_release,
                                               std::memory_order_relaxed)) {
  }
}

void SpareShelf::Put(Memory* memory) {
  Size* const size = Find(memory->bytes);
  const bool full = !keep_all && size->here >= size->kept();
  closed || full ? Delete(size, memory) : Push(size, memory);
}

void SpareShelf::Add(Size* size) {
  constexpr std::size_t kPage = 4096;
  auto* const memory = new Memory(size->bytes, /*refs=*/0);
  for (std::size_t i = 0; i < memory->bytes; i += kPage) memory->data[i] = std::byte{0};
  ++size->made;
  Push(size, memory);
}

void SpareShelf::Delete(Size* size, Memory* memory) {
  --size->made;
  delete memory;
}

// ---- what its owner does with it ----

SpareMemory::SpareMemory() : shelf_(std::make_shared<SpareShelf>()) {}
SpareMemory::~SpareMemory() { shelf_->closed = true; }

SharedBytes SpareMemory::New(SpareMemory* spare, std::size_t bytes) {
  return spare == nullptr ? SharedBytes(bytes) : spare->New(bytes);
}

SharedBytes SpareMemory::New(std::size_t bytes) {
  SpareShelf::Size* const size = bytes < kBytesMin ? nullptr : shelf_->Find(bytes);
  return size == nullptr ? SharedBytes(bytes) : SharedBytes(shelf_->Take(size));
}

void SpareMemory::BeginCopies() {
  for (SpareShelf::Size& size : shelf_->sizes) size.most_in_use = size.in_use();
  shelf_->keep_all = true;
}

void SpareMemory::EndCopies() {
  if (!shelf_->keep_all.exchange(false)) return;
  for (SpareShelf::Size& size : shelf_->sizes) size.wanted = size.most_in_use - size.in_use();
  copies_known_ = true;
}

void SpareMemory::Reserve(std::uint64_t bytes) {
  const std::uint64_t in_use = in_use_bytes();
  if (in_use == 0) return;
  const double part = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(in_use));
  for (SpareShelf::Size& size : shelf_->sizes) {
    const auto least = static_cast<std::int64_t>(part * static_cast<double>(size.in_use()));
    size.wanted = std::max(size.wanted.load(), least);
  }
}

std::uint64_t SpareMemory::Refiller::Refill(std::uint64_t bytes_max) const {
  std::uint64_t added = 0;
  for (SpareShelf::Size& size : shelf_->sizes) {
    while (size.here < size.wanted && added < bytes_max && !shelf_->closed) {
      shelf_->Add(&size);
      added += size.bytes;
    }
  }
  return added;
}

SpareMemory::Surplus SpareMemory::TakeSurplus() {
  Surplus surplus;
  for (SpareShelf::Size& size : shelf_->sizes) {
    while (size.bytes != 0 && size.here > size.kept()) {
      Memory* const memory = shelf_->Pop(&size);
      if (memory == nullptr) break;  // counted, but not there yet
      surplus.emplace_back(
          memory, [shelf = shelf_, &size](Memory* one) { SpareShelf::Delete(&size, one); });
    }
  }
  return surplus;
}

std::uint64_t SpareMemory::ready_bytes() const {
  std::uint64_t bytes = 0;
  for (const SpareShelf::Size& size : shelf_->sizes) {
    bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(0, size.here)) * size.bytes;
  }
  return bytes;
}

std::uint64_t SpareMemory::in_use_bytes() const {
  std::uint64_t bytes = 0;
  for (const SpareShelf::Size& size : shelf_->sizes) {
    bytes +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, size.made - size.here)) * size.bytes;
  }
  return bytes;
}

}  // namespace leeway::ps
