#include "ps/replication/log/replication_sender.h"

#include <algorithm>
#include <utility>

#include "runtime/base/mutants.h"

namespace leeway::ps {

std::uint64_t Outbox::Append(Item item) {
  item.header.stream = stream_;
  item.header.item = acked_ + items_.size() + 1;
  items_.push_back(std::move(item));
  return items_.back().header.item;
}

Item* Outbox::Next() {
  if (all_sent()) return nullptr;
  Item& next = items_[sent_];
  // One that is larger than the window goes alone.
  const bool fits =
      in_flight_bytes_ == 0 || (in_flight_bytes_ < limits_.window_bytes &&
                                next.bytes() <= limits_.window_bytes - in_flight_bytes_);
  return fits || runtime::Planted<"outbox-window-ignored">() ? &next : nullptr;
}

void Outbox::NoteSent(absl::Time now) {
  in_flight_bytes_ += items_[sent_++].bytes();
  if (due_ != absl::InfiniteFuture()) return;
  resend_ = limits_.resend_first;
  due_ = now + resend_;
}

Outbox::Outcome Outbox::TakeAck(std::uint64_t item, std::uint64_t committed, absl::Time now) {
  const bool commits = committed > committed_;
  committed_ = std::max(committed_, committed);
  if (item > acked_ + items_.size()) return Outcome::kNothing;  // of nobody we know
  if (item <= acked_) {
    if (item == acked_ && !commits && !recovering_ && sent_ > 0) {
      if (!runtime::Planted<"gap-not-resent">()) Rewind();
      recovering_ = true;
    }
    return Outcome::kNothing;
  }
  for (; acked_ < item; ++acked_) {
    if (sent_ > 0) {
      --sent_;
      if (!runtime::Planted<"in-flight-not-given-back">())
        in_flight_bytes_ -= items_.front().bytes();
    }
    items_.pop_front();
  }
  recovering_ = false;
  resend_ = limits_.resend_first;
  due_ = sent_ == 0 ? absl::InfiniteFuture() : now + resend_;
  return Outcome::kProgress;
}

void Outbox::Rewind() {
  sent_ = 0;
  in_flight_bytes_ = 0;
}

bool Outbox::RewindIfDue(absl::Time now) {
  if (now < due_) return false;
  Rewind();
  resend_ = std::min(2 * resend_, limits_.resend_max);
  due_ = now + resend_;
  return true;
}

}  // namespace leeway::ps
