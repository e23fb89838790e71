#include "van/shm/shm_link.h"

#include <algorithm>

namespace leeway::van {

bool ShmBusyPoll::Ready() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link->Ready(); });
}

void ShmBusyPoll::BeginSleep() {
  const std::lock_guard lock(mutex_);
  ++sleepers_;
  for (const auto& link : links_) link->AskForMessages();
}

void ShmBusyPoll::EndSleep() {
  const std::lock_guard lock(mutex_);
  slept_.store(true, std::memory_order_relaxed);
  if (--sleepers_ > 0) return;
  for (const auto& link : links_) link->TakeBackAsking();
}

void ShmBusyPoll::Add(std::shared_ptr<ShmLink> link) {
  const std::lock_guard lock(mutex_);
  if (sleepers_ > 0) link->AskForMessages();
  links_.push_back(std::move(link));
}

void ShmBusyPoll::Remove(const ShmLink* link) {
  const std::lock_guard lock(mutex_);
  std::erase_if(links_, [link](const auto& other) { return other.get() == link; });
}

void ShmBusyPoll::Woken(ShmLink* link) {
  const std::lock_guard lock(mutex_);
  if (sleepers_ > 0) link->AskForMessages();
}

}  // namespace leeway::van
