// TimerQueue is the ordered queue of timers behind both kinds of loop: by time, then in the order
// in which they were added. Add and Remove take logarithmic time and Remove leaves nothing behind,
// because most timers (a request's deadline) are cancelled.
#ifndef LEEWAY_RUNTIME_LOOP_TIMER_QUEUE_H_
#define LEEWAY_RUNTIME_LOOP_TIMER_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "runtime/loop/loop.h"

namespace leeway::runtime {

// Values leave the queue by being returned and are never destroyed inside it, because their
// destructors may call the queue.
template <class T>
class TimerQueue {
 public:
  TimerId Add(absl::Time due, T value) {
    const std::uint64_t id = ++last_id_;
    by_id_[id] = by_time_.try_emplace(Key{due, id}, std::move(value)).first;
    return static_cast<TimerId>(id);
  }

  std::optional<T> Remove(TimerId timer) {
    const auto found = by_id_.find(static_cast<std::uint64_t>(timer));
    if (found == by_id_.end()) return std::nullopt;
    return Take(found->second);
  }

  // Removes and returns the first value if it is due at `now`.
  std::optional<T> PopDue(absl::Time now) { return PopDue(now, static_cast<TimerId>(last_id_)); }
  // As above, but only values added up to `newest`.
  std::optional<T> PopDue(absl::Time now, TimerId newest) {
    for (auto it = by_time_.begin(); it != by_time_.end() && it->first.first <= now; ++it) {
      if (it->first.second <= static_cast<std::uint64_t>(newest)) return Take(it);
    }
    return std::nullopt;
  }

  // Removes and returns all values for which `which` is true, in their order.
  template <class Predicate>
  std::vector<T> RemoveIf(Predicate which) {
    std::vector<T> removed;
    for (auto it = by_time_.begin(); it != by_time_.end();) {
      const auto here = it++;
      if (which(here->second)) removed.push_back(Take(here));
    }
    return removed;
  }

  // The number of values for which `which` is true.
  template <class Predicate>
  std::size_t CountIf(Predicate which) const {
    std::size_t count = 0;
    for (const auto& [key, value] : by_time_) count += which(value) ? 1 : 0;
    return count;
  }

  // The time of the first value; InfiniteFuture if the queue is empty.
  absl::Time next() const {
    return by_time_.empty() ? absl::InfiniteFuture() : by_time_.begin()->first.first;
  }
  TimerId newest() const { return static_cast<TimerId>(last_id_); }
  bool empty() const { return by_time_.empty(); }

 private:
  using Key = std::pair<absl::Time, std::uint64_t>;
  using ByTime = std::map<Key, T>;

  T Take(typename ByTime::iterator it) {
    T value = std::move(it->second);
    by_id_.erase(it->first.second);
    by_time_.erase(it);
    return value;
  }

  ByTime by_time_;
  absl::flat_hash_map<std::uint64_t, typename ByTime::iterator> by_id_;
  std::uint64_t last_id_ = 0;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_TIMER_QUEUE_H_
