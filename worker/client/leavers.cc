#include "worker/client/leavers.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/base/fork.h"
#include "worker/client/loop_driver.h"

namespace leeway::worker {
namespace {

// The leavers of one process.
struct Registry {
  const std::uint64_t forks = runtime::ForkCount();
  Registry* before = nullptr;  // the parent's; in sight of a leak checker
  std::mutex mutex;
  std::condition_variable changed;
  int not_left = 0, not_closed = 0;
  absl::Duration timeout;  // the longest
};

std::atomic<Registry*> newest = nullptr;

// A child must not touch its parent's registry: a thread may have held its lock when the child was
// made.
bool OfThisProcess(const Registry* registry) {
  return registry != nullptr && registry->forks == runtime::ForkCount();
}

Registry* RegistryOfThisProcess() {
  Registry* found = newest.load();
  if (OfThisProcess(found)) return found;
  auto* const fresh = new Registry;
  fresh->before = found;
  if (newest.compare_exchange_strong(found, fresh)) return fresh;
  delete fresh;
  return found;  // another thread's
}

}  // namespace

void StartLeaver(absl::Duration timeout, absl::AnyInvocable<void()> leave,
                 absl::AnyInvocable<void()> close) {
  Registry* const registry = RegistryOfThisProcess();
  {
    const std::lock_guard lock(registry->mutex);
    ++registry->not_left;
    ++registry->not_closed;
    registry->timeout = std::max(registry->timeout, timeout);
  }
  // Each time: where the process is ending already, the handlers of before have run.
  std::atexit(WaitForLeavers);
  std::thread([registry, leave = std::move(leave), close = std::move(close)]() mutable {
    const auto one_less = [registry](int* number) {
      const std::lock_guard lock(registry->mutex);
      --*number;
      registry->changed.notify_all();
    };
    leave();
    one_less(&registry->not_left);
    close();
    leave = nullptr;  // what they hold is destroyed before the process ends
    close = nullptr;
    one_less(&registry->not_closed);
  }).detach();
}

void WaitForLeavers() {
  Registry* const registry = newest.load();
  if (!OfThisProcess(registry)) return;
  const bool left_is_enough = LoopDriver::InAnyCallback();
  std::unique_lock lock(registry->mutex);
  registry->changed.wait_for(lock, absl::ToChronoNanoseconds(registry->timeout), [&] {
    return registry->not_left == 0 && (left_is_enough || registry->not_closed == 0);
  });
}

}  // namespace leeway::worker
