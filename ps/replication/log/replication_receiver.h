// The receiving end of a stream of log entries: each is taken once, in order.
#ifndef LEEWAY_PS_REPLICATION_LOG_REPLICATION_RECEIVER_H_
#define LEEWAY_PS_REPLICATION_LOG_REPLICATION_RECEIVER_H_

#include <cstdint>

namespace leeway::ps {

class ReplicationReceiver {
 public:
  enum class Verdict {
    kNext,     // to be taken now
    kSeen,     // taken before
    kGap,      // something before it is missing
    kUnknown,  // of a stream whose beginning was not seen
    kOld,      // of a stream that the sender has given up
  };

  // Streams of one sender have growing numbers; none is 0.
  Verdict Judge(std::uint64_t stream, std::uint64_t entry) const {
    if (stream < stream_ || stream == 0) return Verdict::kOld;
    if (stream > stream_) return entry == 1 ? Verdict::kNext : Verdict::kUnknown;
    if (entry <= received_) return Verdict::kSeen;
    return entry == received_ + 1 ? Verdict::kNext : Verdict::kGap;
  }
  // The entry judged to be next has been taken.
  void Take(std::uint64_t stream, std::uint64_t entry) {
    stream_ = stream;
    received_ = entry;
  }
  // Another sender comes, with streams of its own.
  void Forget() { stream_ = received_ = 0; }

  std::uint64_t stream() const { return stream_; }      // 0: none
  std::uint64_t received() const { return received_; }  // everything up to it has been taken

 private:
  std::uint64_t stream_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_REPLICATION_RECEIVER_H_
