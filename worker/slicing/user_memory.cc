#include "worker/slicing/user_memory.h"

namespace leeway::worker {

void Poster::Post(runtime::Task task) {
  std::lock_guard lock(mutex_);
  if (loop_ == nullptr) return;
  // If the poster is closed before the task runs, the objects that the task uses are gone.
  loop_->Post([self = shared_from_this(), task = std::move(task)]() mutable {
    if (!self->closed()) task();
  });
}

bool Poster::closed() {
  std::lock_guard lock(mutex_);
  return loop_ == nullptr;
}

void Poster::Close() {
  std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

// Release and the last Unref may run on two threads at once; the later of the two finds the state
// of the other, reports and deletes.
bool UserMemory::Release(runtime::Task then) {
  then_ = std::move(then);
  Unref();
  if (state_.exchange(kReleased, std::memory_order_acq_rel) == kUnused) {
    delete this;
    return true;
  }
  return false;
}

void UserMemory::OnUnused() {
  if (state_.exchange(kUnused, std::memory_order_acq_rel) != kReleased) return;
  if (then_) poster_->Post(std::move(then_));
  delete this;
}

}  // namespace leeway::worker
