// The answers of one shard that wait until what they say is on every replica, in the order of the
// log entries that they wait for. An answer that nothing has to be waited for leaves at once.
//
// Owned by its Replica. More than kAnswersWaitingMax are dropped: their workers ask again. Answers
// to readers are charged to a budget that the readers of a thread share.
#ifndef LEEWAY_PS_REPLICATION_WAITING_ANSWERS_H_
#define LEEWAY_PS_REPLICATION_WAITING_ANSWERS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/replication/commit_point.h"
#include "ps/replication/log/answer_sink.h"
#include "ps/replication/replica_context.h"
#include "ps/shard/shard.h"
#include "van/van.h"

namespace leeway::ps {

// Calls of the server itself (WhenCommitted), which nobody repeats, have room for as many more.
inline constexpr std::size_t kAnswersWaitingMax = 1 << 16;

class WaitingAnswers final : public AnswerSink {
 public:
  // All of them outlive this. `commit` says what of the shard's log is on every replica.
  WaitingAnswers(ReplicaContext* context, const Shard* shard, const CommitPoint* commit)
      : context_(context), shard_(shard), commit_(commit) {}
  ~WaitingAnswers() override { Clear(); }
  WaitingAnswers(const WaitingAnswers&) = delete;
  WaitingAnswers& operator=(const WaitingAnswers&) = delete;

  // AnswerSink
  void Answer(van::PeerId peer, proto::Reply reply, Payload payload, absl::Time deadline) override;
  absl::Status AnswerReader(van::PeerId peer, proto::Reply reply, Payload payload,
                            absl::Time deadline) override;
  void AnswerNow(van::PeerId peer, proto::Reply reply) override;

  // Calls `then` once everything logged so far is on every replica.
  void WhenCommitted(std::function<void()> then);

  // Sends what waits for entries up to `committed`.
  void Release(std::uint64_t committed);
  // Answers those whose peers stop waiting now with DEADLINE_EXCEEDED. `awaited` describes the
  // replica that is waited for.
  void RefuseOverdue(absl::Time now, absl::FunctionRef<std::string()> awaited);
  // Drops answers to that peer if it is a reader, which may be gone for good; a worker comes back
  // and asks again.
  void DropReader(van::PeerId peer);
  void Clear();
  // The first deadline, or an earlier time.
  absl::Time first_deadline() const { return first_deadline_; }

  // ---- proof that this replica leads still ----
  // After the lease, answers to pulls wait for an entry that is logged after they were asked for.
  // One at a time is logged for them: answers that come meanwhile share the next.

  bool WaitForLaterEntry() const { return confirm_at_ > shard_->index(); }
  bool NeedConfirm() const {
    return WaitForLaterEntry() && confirming_ <= commit_->committed(shard_->index());
  }
  void NoteConfirm() { confirming_ = shard_->index(); }
  void RestartConfirms() { confirm_at_ = confirming_ = 0; }

 private:
  struct Waiting {
    std::uint64_t index = 0;  // of the entry that has to be on every replica
    absl::Time since;
    absl::Time deadline = absl::InfiniteFuture();
    van::PeerId peer = 0;
    proto::Reply reply;
    Payload payload;
    std::uint64_t reader_bytes = 0;  // of an answer to a reader: what it is charged
    std::function<void()> then;      // called instead of sending an answer
  };

  bool NeedsProof() const;
  bool AllIsCommitted() const { return commit_->committed(shard_->index()) == shard_->index(); }
  void Wait(Waiting waiting, bool proof);
  void Uncharge(const Waiting& waiting) { context_->readers.bytes -= waiting.reader_bytes; }
  static absl::Status Overdue(const Waiting& waiting, proto::Op op, std::uint32_t shard,
                              const std::string& awaited, absl::Time now);

  ReplicaContext* const context_;
  const Shard* const shard_;
  const CommitPoint* const commit_;
  std::deque<Waiting> waiting_;
  absl::Time first_deadline_ = absl::InfiniteFuture();
  std::uint64_t confirm_at_ = 0;  // index of a coming entry that answers wait for
  std::uint64_t confirming_ = 0;  // of the last entry that was logged for that
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_WAITING_ANSWERS_H_
