// AnswerSink is the interface by which a shard answers workers and readers. An answer tells of
// nothing that is not on every replica, so most of them wait. WaitingAnswers implements it; on the
// data thread's loop.
#ifndef LEEWAY_PS_REPLICATION_LOG_ANSWER_SINK_H_
#define LEEWAY_PS_REPLICATION_LOG_ANSWER_SINK_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/replication/log/log_entry.h"
#include "van/van.h"

namespace leeway::ps {

class AnswerSink {
 public:
  virtual ~AnswerSink() = default;

  // Answers once everything logged so far is on every replica; or now. At the deadline the answer
  // is an error that names the replica that is waited for.
  virtual void Answer(van::PeerId peer, proto::Reply reply, Payload payload,
                      absl::Time deadline) = 0;
  // Likewise to a reader, within what readers may have waiting. UNAVAILABLE: that is too much.
  virtual absl::Status AnswerReader(van::PeerId peer, proto::Reply reply, Payload payload,
                                    absl::Time deadline) = 0;
  // Answers at once: the reply tells of nothing that is logged.
  virtual void AnswerNow(van::PeerId peer, proto::Reply reply) = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_ANSWER_SINK_H_
