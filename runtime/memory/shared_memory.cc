#include "runtime/memory/shared_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::runtime {
namespace {

// All SharedMemory of this process. Never destroyed: arrays may outlive main.
struct Registry {
  explicit Registry(const Registry* before) : parents(before) {}
  const std::uint64_t forks = ForkCount();
  const Registry* const parents;  // in sight of a leak checker
  std::mutex mutex;
  std::map<std::uintptr_t, SharedMemory*> by_address;
  std::atomic<std::size_t> live{0};  // so that a process without any never takes the lock
  std::uint64_t last_id = 0;
  std::map<std::uint64_t, std::function<void()>> listeners;
  std::uint64_t next_listener = 1;
};

// A child begins with one of its own: that of its parent has what the parent alone may use, and a
// lock that may never be released.
Registry& TheRegistry() {
  static std::atomic<Registry*> newest = nullptr;
  Registry* present = newest.load(std::memory_order_acquire);
  while (present == nullptr || present->forks != ForkCount()) {
    auto* const made = new Registry(present);
    if (newest.compare_exchange_strong(present, made, std::memory_order_acq_rel)) return *made;
    delete made;
  }
  return *present;
}

// Replaces the shared mapping by a private one of the same file.
bool MapPrivately(std::byte* data, std::size_t size, int fd) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
#ifdef ABSL_HAVE_THREAD_SANITIZER
  // TSan treats every mapping as a write to all of it, but no byte changes here. The kernel reads
  // 64 bits of each argument, so the offset has to be off_t.
  return ::syscall(SYS_mmap, data, size, kProtection, kFlags, fd, off_t{0}) != -1;
#else
  return ::mmap(data, size, kProtection, kFlags, fd, 0) != MAP_FAILED;
#endif
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::New(std::size_t bytes) {
  Registry& registry = TheRegistry();
  if (registry.live.fetch_add(1, std::memory_order_relaxed) >= kLiveMax) {
    registry.live.fetch_sub(1, std::memory_order_relaxed);
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kLiveMax, " arrays in shared memory already"));
  }
  absl::StatusOr<SealedMemory> sealed = SealedMemory::New(bytes);
  if (!sealed.ok()) {
    registry.live.fetch_sub(1, std::memory_order_relaxed);
    return sealed.status();
  }
  const std::lock_guard lock(registry.mutex);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(*std::move(sealed), ++registry.last_id));
  registry.by_address[reinterpret_cast<std::uintptr_t>(memory->data())] = memory.get();
  return memory;
}

SharedMemory::~SharedMemory() {
  if (forks_ != ForkCount()) return;
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.by_address.erase(reinterpret_cast<std::uintptr_t>(data()));
  registry.live.fetch_sub(1, std::memory_order_relaxed);
  for (const auto& [number, freed] : registry.listeners) freed();
}

std::optional<SharedMemory::Location> SharedMemory::Find(const void* data, std::size_t size) {
  Registry& registry = TheRegistry();
  if (registry.live.load(std::memory_order_relaxed) == 0) return std::nullopt;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(registry.mutex);
  auto after = registry.by_address.upper_bound(address);
  if (after == registry.by_address.begin()) return std::nullopt;
  SharedMemory* const memory = std::prev(after)->second;
  const std::uint64_t offset = address - std::prev(after)->first;
  if (offset >= memory->size() || size > memory->size() - offset) return std::nullopt;
  if (memory->detached_) return std::nullopt;
  Location place{memory->weak_from_this().lock(), offset};
  if (place.memory == nullptr) return std::nullopt;  // it is being destroyed
  return place;
}

// The kernel replaces the mapping atomically by a private one of the same file, whose pages are the
// file's until they are written to. A concurrent write goes either before it, and the peers see it,
// or after it. The lock keeps Find from offering a peer bytes that are written after the change.
void SharedMemory::Detach() {
  const std::lock_guard lock(TheRegistry().mutex);
  if (std::exchange(detached_, true)) return;
  if (MapPrivately(data(), size(), fd())) return;
  const int error = errno;
  LogError("cannot detach an array of ", size(),
           " bytes in shared memory: mmap: ", std::strerror(error),
           "; processes that have it mapped will see later writes to it");
}

std::uint64_t SharedMemory::WhenFreed(std::function<void()> freed) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.listeners[registry.next_listener] = std::move(freed);
  return registry.next_listener++;
}

void SharedMemory::Forget(std::uint64_t listener) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.listeners.erase(listener);
}

}  // namespace leeway::runtime
