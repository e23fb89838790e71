// The sending end of a stream of log entries: the entries that are not acknowledged, in order, and
// how many of them are on their way. Go-back-N: what is lost is sent again together with all that
// came after it, since the receiver takes entries in order alone.
#ifndef LEEWAY_PS_REPLICATION_LOG_REPLICATION_SENDER_H_
#define LEEWAY_PS_REPLICATION_LOG_REPLICATION_SENDER_H_

#include <cstdint>
#include <deque>

#include "absl/time/time.h"
#include "ps/replication/log/log_entry.h"

namespace leeway::ps {

class ReplicationSender {
 public:
  struct Limits {
    std::uint64_t window_bytes = 16 << 20;           // sent and not acknowledged
    absl::Duration resend_first = absl::Seconds(2);  // without an acknowledgement; doubles
    absl::Duration resend_max = absl::Seconds(16);
  };

  ReplicationSender(std::uint64_t stream, const Limits& limits)
      : stream_(stream), limits_(limits) {}

  std::uint64_t stream() const { return stream_; }

  // Numbers the entry: 1, 2, 3, …. Returns its number.
  std::uint64_t Append(LogEntry entry);

  // The entry to be sent next; null when all have been sent or the window is full.
  LogEntry* Next();
  // The entry that Next returned has been sent.
  void NoteSent(absl::Time now);

  enum class Outcome {
    kProgress,  // entries were acknowledged
    kNothing,
  };
  // Everything up to `entry` has been taken. An acknowledgement without news means a gap: what is
  // on its way is sent again, once.
  Outcome TakeAck(std::uint64_t entry, std::uint64_t committed, absl::Time now);

  // All that has not been acknowledged is to be sent again.
  void Rewind();
  // Rewinds if no acknowledgement has come for too long.
  bool RewindIfDue(absl::Time now);
  absl::Time due() const { return due_; }

  bool all_sent() const { return sent_ == entries_.size(); }
  bool all_acked() const { return entries_.empty(); }
  std::uint64_t acked() const { return acked_; }
  std::uint64_t in_flight_bytes() const { return in_flight_bytes_; }

 private:
  const std::uint64_t stream_;
  const Limits limits_;
  std::deque<LogEntry> entries_;  // number acked_ + 1 and on
  std::size_t sent_ = 0;          // how many of them have been sent
  std::uint64_t in_flight_bytes_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t committed_ = 0;
  bool recovering_ = false;  // rewound since there was progress
  absl::Duration resend_ = absl::ZeroDuration();
  absl::Time due_ = absl::InfiniteFuture();
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_REPLICATION_SENDER_H_
