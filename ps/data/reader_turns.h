// The queue of readers' requests (Config::read_only) on one data thread, which are served after
// those of workers and servers.
//
// Lives on the data thread's loop. While workers or other servers send something, all readers
// together get a share of the thread's time; when nothing else has come for a little while, all of
// it. Either way they are served from tasks of their own, a few requests in one turn of the loop,
// so that a worker's request never waits for more than those. Readers take turns, one request each.
// Backpressure: from a reader with much in the queue nothing more is read (Van::Hold), and where
// the transport cannot do that its requests are refused.
#ifndef LEEWAY_PS_DATA_READER_TURNS_H_
#define LEEWAY_PS_DATA_READER_TURNS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/table/inbound.h"
#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "van/session/share_meter.h"

namespace leeway::ps {

class ReaderTurns {
 public:
  // While others speak.
  static constexpr double kShare = 0.05;
  static constexpr absl::Duration kSaved = absl::Milliseconds(1);
  // Others are taken to speak for so long after each message.
  static constexpr absl::Duration kQuiet = absl::Milliseconds(10);
  // In one turn of the loop; the request that is under way when the time is up is finished.
  static constexpr int kTurnRequestsMax = 16;
  static constexpr absl::Duration kTurnTimeMax = absl::Milliseconds(1);
  // The requests of one reader that wait before nothing more is read from it, until half are left.
  static constexpr std::size_t kReaderRequestsMax = 256;
  static constexpr std::uint64_t kReaderBytesMax = 4 << 20;
  // The requests of all readers of a thread that wait; beyond it requests are refused. To refuse
  // costs time that is no part of the share, so where half as many wait nothing more is read from
  // any reader that has asked, until it is answered.
  static constexpr std::size_t kRequestsMax = 16384;
  static constexpr std::uint64_t kBytesMax = 64 << 20;

  struct Owner {
    std::function<void(Inbound)> serve;
    std::function<bool(van::PeerId)> hold;  // false: it cannot be held
    std::function<void(van::PeerId)> release;
  };
  ReaderTurns(runtime::Loop* loop, Owner owner);
  ReaderTurns(const ReaderTurns&) = delete;
  ReaderTurns& operator=(const ReaderTurns&) = delete;

  // Whether there is room for it. UNAVAILABLE: not now.
  absl::Status Check(const Inbound& inbound) const;
  void Add(Inbound inbound);
  void DropPeer(van::PeerId peer);
  // A worker or a server has sent something.
  void OthersSpoke() { others_spoke_ = true; }
  std::size_t waiting() const { return requests_; }

 private:
  struct Queue {
    std::deque<Inbound> requests;
    std::uint64_t bytes = 0;
    bool held = false;
  };

  void Turn();
  void TurnLater(absl::Time now);
  bool Quiet(absl::Time now);
  bool Crowded() const;
  Inbound TakeNext();

  runtime::Loop* const loop_;
  const Owner owner_;
  std::map<van::PeerId, Queue> queues_;  // none is empty
  van::PeerId last_ = 0;                 // that was served
  std::size_t requests_ = 0;
  std::uint64_t bytes_ = 0;
  van::ShareMeter meter_{kShare, kSaved};
  bool others_spoke_ = false;  // since `others_heard_` was noted
  absl::Time others_heard_ = absl::InfinitePast();
  bool turn_is_due_ = false;  // posted, or the timer runs
  runtime::Timer timer_;
  runtime::Lifetime lifetime_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_READER_TURNS_H_
