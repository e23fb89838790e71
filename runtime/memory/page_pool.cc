#include "runtime/memory/page_pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace leeway::runtime {
namespace {

std::size_t Rounded(std::size_t bytes) {
  return (bytes + PagePool::kAlignment - 1) / PagePool::kAlignment * PagePool::kAlignment;
}

}  // namespace

// A forked child gets a copy of the lock's state, so fork() takes the lock first and no other
// thread holds it then. The heap does the same for its locks.
PagePool& PagePool::Shared() {
  static auto* const pool = [] {
    const auto unlock = [] { Shared().mutex_.unlock(); };
    ::pthread_atfork([] { Shared().mutex_.lock(); }, unlock, unlock);
    return new PagePool;  // objects with static lifetime may still have pieces of it
  }();
  return *pool;
}

PagePool::PagePool() {
  open_.reserve(kOpenMax);
  at_hand_.reserve(kAtHandMax);
}

PagePool::~PagePool() {
  for (const auto& [memory, bytes] : mapped_) ::munmap(memory, bytes);
}

std::byte* PagePool::PageOf(std::byte* memory) {
  return memory - reinterpret_cast<std::uintptr_t>(memory) % kPageBytes;
}

std::byte* PagePool::Allocate(std::size_t bytes) {
  bytes = Rounded(bytes);
  const std::lock_guard lock(mutex_);
  std::byte* memory = TakeFree(bytes);
  if (memory == nullptr) memory = ShareOut(bytes);
  ++pages_.at(PageOf(memory)).pieces_in_use;
  in_use_bytes_ += bytes;
  return memory;
}

std::byte* PagePool::TakeFree(std::size_t bytes) {
  const auto found = free_.lower_bound({bytes, nullptr});
  if (found == free_.end() || found->first != bytes) return nullptr;
  std::byte* const memory = found->second;
  free_.erase(found);
  return memory;
}

// Takes the piece from the first open page that has room. A new page replaces the fullest of the
// open ones.
std::byte* PagePool::ShareOut(std::size_t bytes) {
  const auto room = [this](std::byte* page) { return kPageBytes - pages_.at(page).shared_out; };
  auto open = std::find_if(open_.begin(), open_.end(),
                           [&](std::byte* page) { return room(page) >= bytes; });
  if (open == open_.end()) {
    std::byte* const page = NewPage();
    if (open_.size() == kOpenMax) {
      open_.erase(std::min_element(open_.begin(), open_.end(),
                                   [&](std::byte* a, std::byte* b) { return room(a) < room(b); }));
    }
    open = open_.insert(open_.end(), page);
  }
  Page& page = pages_.at(*open);
  std::byte* const memory = *open + page.shared_out;
  page.pieces.emplace_back(bytes, memory);
  page.shared_out += bytes;
  return memory;
}

std::byte* PagePool::NewPage() {
  if (at_hand_.empty() && bare_.empty()) Reserve();
  std::vector<std::byte*>& from = at_hand_.empty() ? bare_ : at_hand_;
  std::byte* const page = from.back();
  if (const auto [number, is_new] = numbers_.try_emplace(page, last_number_ + 1); is_new) {
    last_number_ = number->second;
  }
  pages_.try_emplace(page);
  from.pop_back();
  return page;
}

// Reserves address space only; the system gives memory at the first touch.
void PagePool::Reserve() {
  constexpr std::size_t kReservedBytes = (kReserved + 1) * kPageBytes;
  mapped_.reserve(mapped_.size() + 1);
  bare_.reserve((mapped_.size() + 1) * kReserved);  // so that Free allocates nothing
  void* const memory = ::mmap(nullptr, kReservedBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapped_.emplace_back(memory, kReservedBytes);
  std::byte* first = PageOf(static_cast<std::byte*>(memory) + kPageBytes - 1);
  ::madvise(first, kReserved * kPageBytes, MADV_HUGEPAGE);  // refused: small pages
  for (std::size_t i = kReserved; i > 0; --i) bare_.push_back(first + (i - 1) * kPageBytes);
}

void PagePool::Free(std::byte* memory, std::size_t bytes) {
  std::byte* const page = TakeBack(memory, Rounded(bytes));
  if (page == nullptr) return;
  // Without the lock: the system call may take long, and other threads need pieces.
  ::madvise(page, kPageBytes, MADV_DONTNEED);
  const std::lock_guard lock(mutex_);
  bare_.push_back(page);
}

// Returns the page if it is empty now and its memory is not to be kept; else null.
std::byte* PagePool::TakeBack(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  in_use_bytes_ -= bytes;
  std::byte* const place = PageOf(memory);
  Page& page = pages_.at(place);
  if (--page.pieces_in_use > 0) {
    try {
      free_.emplace(bytes, memory);
    } catch (const std::bad_alloc&) {  // then the piece is used again when its page is empty
    }
    return nullptr;
  }
  for (const Piece& piece : page.pieces) free_.erase(piece);
  pages_.erase(place);
  std::erase(open_, place);
  if (at_hand_.size() == kAtHandMax) {
    numbers_.erase(place);
    return place;
  }
  at_hand_.push_back(place);
  return nullptr;
}

std::optional<PagePool::Memory> PagePool::Find(const void* data, std::size_t bytes) const {
  // Used as a key only, never written to.
  auto* const first = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  std::byte* const page = PageOf(first);
  if (bytes > kPageBytes - static_cast<std::size_t>(first - page)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = numbers_.find(page);
  if (found == numbers_.end()) return std::nullopt;
  return Memory{page, found->second};
}

bool PagePool::Has(const Memory& memory) const {
  const std::lock_guard lock(mutex_);
  const auto found = numbers_.find(memory.page);
  return found != numbers_.end() && found->second == memory.number;
}

std::size_t PagePool::in_use_bytes() const {
  const std::lock_guard lock(mutex_);
  return in_use_bytes_;
}

std::size_t PagePool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return (pages_.size() + at_hand_.size()) * kPageBytes;
}

}  // namespace leeway::runtime
