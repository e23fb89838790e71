#include "ps/replication/waiting_answers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/table/inbound.h"
#include "runtime/base/format_duration.h"

namespace leeway::ps {

// After the lease another replica may be the head, so that what is read here may be of the past.
// Not where no other can be: what is committed without any is all that there is.
bool WaitingAnswers::NeedsProof() const {
  return commit_->gating() && context_->shards->loop->Now() >= context_->lease_until;
}

void WaitingAnswers::Answer(van::PeerId peer, proto::Reply reply, Payload payload,
                            absl::Time deadline) {
  const bool proof = HasPull(reply.op) && NeedsProof();
  if (AllIsCommitted() && !proof) {
    context_->replies->SendReply(peer, std::move(reply), std::move(payload));
    return;
  }
  Waiting waiting;
  waiting.deadline = deadline;
  waiting.peer = peer;
  waiting.reply = std::move(reply);
  waiting.payload = std::move(payload);
  Wait(std::move(waiting), proof);
}

absl::Status WaitingAnswers::AnswerReader(van::PeerId peer, proto::Reply reply, Payload payload,
                                          absl::Time deadline) {
  const bool proof = NeedsProof();
  if (AllIsCommitted() && !proof) {
    context_->replies->SendReply(peer, std::move(reply), std::move(payload));
    return absl::OkStatus();
  }
  Waiting waiting;
  waiting.reader_bytes = kRequestOverheadBytes;
  for (const runtime::Buffer& frame : payload) waiting.reader_bytes += frame.size();
  if (!context_->readers.HasRoom(waiting.reader_bytes) ||
      waiting_.size() >= kAnswersWaitingMax / 2) {
    return absl::UnavailableError(
        absl::StrCat("answers of ", context_->readers.bytes,
                     " bytes to readers wait for other replicas already; ask again"));
  }
  context_->readers.bytes += waiting.reader_bytes;
  waiting.deadline = deadline;
  waiting.peer = peer;
  waiting.reply = std::move(reply);
  waiting.payload = std::move(payload);
  Wait(std::move(waiting), proof);
  return absl::OkStatus();
}

void WaitingAnswers::AnswerNow(van::PeerId peer, proto::Reply reply) {
  context_->provisional_given = context_->provisional_given || reply.provisional;
  context_->replies->SendReply(peer, std::move(reply), {});
}

void WaitingAnswers::WhenCommitted(std::function<void()> then) {
  if (AllIsCommitted()) return then();
  Waiting waiting;
  waiting.then = std::move(then);
  Wait(std::move(waiting), /*proof=*/false);
}

// With `proof`: for an entry that is logged from now on.
void WaitingAnswers::Wait(Waiting waiting, bool proof) {
  const std::size_t most = waiting.then == nullptr ? kAnswersWaitingMax : 2 * kAnswersWaitingMax;
  if (waiting_.size() >= most) {
    ++context_->shards->counters->replies_unsent;
    return;
  }
  waiting.index = shard_->index() + (proof ? 1 : 0);
  if (proof) {
    confirm_at_ = waiting.index;
    context_->host->ConfirmSoon(shard_->id());
  }
  waiting.since = context_->shards->loop->Now();
  first_deadline_ = std::min(first_deadline_, waiting.deadline);
  if (waiting.deadline != absl::InfiniteFuture()) context_->host->ResendAt(waiting.deadline);
  waiting_.push_back(std::move(waiting));
}

void WaitingAnswers::Release(std::uint64_t committed) {
  while (!waiting_.empty() && waiting_.front().index <= committed) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Uncharge(next);
    if (next.then != nullptr) {
      next.then();
    } else {
      context_->replies->SendReply(next.peer, std::move(next.reply), std::move(next.payload));
    }
  }
}

// A worker that gave up without an answer would blame this server.
void WaitingAnswers::RefuseOverdue(absl::Time now, absl::FunctionRef<std::string()> awaited) {
  if (now < first_deadline_) return;
  first_deadline_ = absl::InfiniteFuture();
  std::deque<Waiting> left;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    if (waiting.deadline > now) {
      first_deadline_ = std::min(first_deadline_, waiting.deadline);
      left.push_back(std::move(waiting));
      continue;
    }
    Uncharge(waiting);
    proto::Reply reply = std::move(waiting.reply);
    reply.result = Overdue(waiting, reply.op, shard_->id(), awaited(), now);
    reply.keys = reply.elements = reply.version = 0;
    AnswerNow(waiting.peer, std::move(reply));
  }
  waiting_ = std::move(left);
}

absl::Status WaitingAnswers::Overdue(const Waiting& waiting, proto::Op op, std::uint32_t shard,
                                     const std::string& awaited, absl::Time now) {
  const std::string waited =
      absl::StrCat("waiting for ", awaited, ", to have what is in shard ", shard,
                   " as well; waited ", runtime::FormatDuration(now - waiting.since));
  if (waiting.reader_bytes > 0) {
    return absl::DeadlineExceededError(
        absl::StrCat(waited,
                     " (LEEWAY_REQUEST_TIMEOUT_MS says how long). A reader is told only what is on "
                     "all replicas: pull again, or wait longer (Options::timeout)"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat(waited, HasPush(op) ? "; whether the push was accepted is not known" : "",
                   " (LEEWAY_REQUEST_TIMEOUT_MS says how long)"));
}

void WaitingAnswers::DropReader(van::PeerId peer) {
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const bool lost = waiting.peer == peer && waiting.reader_bytes > 0;
    if (lost) Uncharge(waiting);
    return lost;
  });
}

void WaitingAnswers::Clear() {
  for (const Waiting& waiting : waiting_) Uncharge(waiting);
  waiting_.clear();
}

}  // namespace leeway::ps
