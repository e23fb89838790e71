// Counts and logs messages that are not as they should be, beside what the van counts. The log is
// rate limited. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CONTROL_PROTOCOL_ERRORS_H_
#define LEEWAY_SCHEDULER_CONTROL_PROTOCOL_ERRORS_H_

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/loop/log_limiter.h"
#include "scheduler/members/node_sender.h"
#include "van/van.h"

namespace leeway::scheduler {

class ProtocolErrors {
 public:
  enum class Kind {
    kMalformed,    // could not be decoded; the peer is dropped
    kForbidden,    // is never sent to a scheduler; the peer is dropped
    kOutOfTurn,    // is ignored
    kJoinRefused,  // a Join that was refused
  };

  ProtocolErrors(runtime::Loop* loop, const NodeSender* sender) : sender_(sender), log_(loop) {}

  void Note(Kind kind, absl::string_view what, van::PeerId peer) {
    const std::uint64_t count = ++counts_[static_cast<int>(kind)];
    log_.Warning("protocol error", absl::StrCat("from ", sender_->van()->AddressOf(peer), ": ",
                                                what, " (", count, " so far)"));
  }
  std::uint64_t count(Kind kind) const { return counts_[static_cast<int>(kind)]; }

 private:
  const NodeSender* const sender_;
  runtime::LogLimiter log_;
  std::uint64_t counts_[4] = {};
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_PROTOCOL_ERRORS_H_
