#include "ps/replication/log/replication_sender.h"

#include <algorithm>
#include <utility>

namespace leeway::ps {

std::uint64_t ReplicationSender::Append(LogEntry entry) {
  entry.header.stream = stream_;
  entry.header.entry = acked_ + entries_.size() + 1;
  entries_.push_back(std::move(entry));
  return entries_.back().header.entry;
}

LogEntry* ReplicationSender::Next() {
  if (all_sent()) return nullptr;
  LogEntry& next = entries_[sent_];
  // An entry that is larger than the window goes alone.
  const bool fits =
      in_flight_bytes_ == 0 || (in_flight_bytes_ < limits_.window_bytes &&
                                next.bytes() <= limits_.window_bytes - in_flight_bytes_);
  return fits ? &next : nullptr;
}

void ReplicationSender::NoteSent(absl::Time now) {
  in_flight_bytes_ += entries_[sent_++].bytes();
  if (due_ != absl::InfiniteFuture()) return;
  resend_ = limits_.resend_first;
  due_ = now + resend_;
}

ReplicationSender::Outcome ReplicationSender::TakeAck(std::uint64_t entry, std::uint64_t committed,
                                                      absl::Time now) {
  const bool commits = committed > committed_;
  committed_ = std::max(committed_, committed);
  if (entry > acked_ + entries_.size()) return Outcome::kNothing;  // no entry of this stream
  if (entry <= acked_) {
    if (entry == acked_ && !commits && !recovering_ && sent_ > 0) {
      Rewind();
      recovering_ = true;
    }
    return Outcome::kNothing;
  }
  for (; acked_ < entry; ++acked_) {
    if (sent_ > 0) {
      --sent_;
      in_flight_bytes_ -= entries_.front().bytes();
    }
    entries_.pop_front();
  }
  recovering_ = false;
  resend_ = limits_.resend_first;
  due_ = sent_ == 0 ? absl::InfiniteFuture() : now + resend_;
  return Outcome::kProgress;
}

void ReplicationSender::Rewind() {
  sent_ = 0;
  in_flight_bytes_ = 0;
}

bool ReplicationSender::RewindIfDue(absl::Time now) {
  if (now < due_) return false;
  Rewind();
  resend_ = std::min(2 * resend_, limits_.resend_max);
  due_ = now + resend_;
  return true;
}

}  // namespace leeway::ps
