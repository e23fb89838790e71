#include "worker/requests/requests.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "worker/operations/answers.h"
#include "worker/slicing/table_coding.h"
#include "worker/slicing/updates_read.h"

namespace leeway::worker {
namespace {

// Undoes what a push that a server has refused did to the residuals of its table.
void TakeBack(const Request& request) {
  const Refundable* const refundable = request.piece.refundable.get();
  if (refundable != nullptr) request.table->coding->TakeBack(request.piece, *refundable);
}

}  // namespace

Requests::Requests(const Config& config, runtime::Loop* loop, Servers* servers, WorkerId self,
                   Listener* listener)
    : retained_bytes_max_(config.held_bytes_max),
      abandoned_bytes_max_(config.send_queue_bytes_max),
      loop_(loop),
      self_(self),
      listener_(listener),
      queues_(servers, &totals_),
      sender_(config, loop, servers, &queues_, &totals_, self),
      retained_(servers, &queues_, &sender_, &totals_),
      failover_(servers, &queues_, &sender_, &totals_) {}

absl::Status Requests::Admit(const Sliced& sliced) const {
  for (const Piece& piece : sliced.pieces) {
    const bool known = piece.shard < queues_.size();
    // A worker that joined after the loss has never had a link to a server of that shard.
    if (known && queues_[piece.shard].lost()) return LossOf(piece.shard);
    if (!known || queues_[piece.shard].link() == nullptr) {
      return absl::InternalError(absl::StrCat("shard ", piece.shard, " has no owner in the map"));
    }
  }
  if (totals_.abandoned_bytes() > abandoned_bytes_max_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "pushes of ", totals_.abandoned_bytes(),
        " bytes have passed their deadlines and still wait for their servers, more than "
        "LEEWAY_SEND_QUEUE_BYTES_MAX, ",
        abandoned_bytes_max_, "; push less at once or raise LEEWAY_REQUEST_TIMEOUT_MS"));
  }
  if (totals_.retained_bytes() > retained_bytes_max_ && proto::HasPush(sliced.op) &&
      sliced.table->spec.consistency.is_bsp()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("push to table '", sliced.table->spec.name, "': ", totals_.retained_bytes(),
                     " bytes of earlier pushes are kept until their clocks have closed, more than "
                     "LEEWAY_HELD_BYTES_MAX, ",
                     retained_bytes_max_, "; call Clock() and pull more often, or raise it"));
  }
  return absl::OkStatus();
}

void Requests::Submit(const std::shared_ptr<Operation>& operation, Pieces pieces,
                      std::optional<double> learning_rate, int priority) {
  const absl::Time now = operation->submitted;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ShardQueue& queue = queues_[pieces[i].shard];
    std::unique_ptr<Request> request(new Request);  // () would fill it with zeros first
    request->operation = operation;
    request->index = i;
    request->filled = operation->source == nullptr;
    request->piece = std::move(pieces[i]);
    for (const runtime::Buffer& frame : request->piece.payload) request->bytes += frame.size();
    request->table = operation->table;
    request->op = operation->op;
    request->clock = operation->clock;
    request->learning_rate = learning_rate;
    if (request->table->updates_read != nullptr && proto::HasPush(request->op)) {
      request->read_updates = request->table->updates_read->Of(request->piece);
    }
    request->deadline = operation->deadline;
    request->order = queues_.TakeOrder();
    request->priority = priority;
    sender_.Submit(&queue, std::move(request), i == 0 ? now : loop_->Now());
  }
}

void Requests::FillOpen() {
  NumberAll();
  for (ShardQueue& queue : queues_) {
    queue.ForEach([this](Request& request) {
      if (!request.filled && !RequestSender::IsUndecided(request)) sender_.Fill(&request);
    });
  }
}

// The request that the link's server was sent under that number; null: none, or it is settled.
Request* Requests::Asked(const Link* link, const proto::RequestId& id) {
  if (id.incarnation != self_.incarnation || id.worker != self_.rank ||
      id.shard >= queues_.size() || queues_[id.shard].link() != link) {
    return nullptr;
  }
  Request* const request = queues_[id.shard].Find(id.sequence);
  return request != nullptr && request->times_sent > 0 ? request : nullptr;
}

void Requests::OnReply(Link* link, const proto::Reply& reply, std::span<runtime::Buffer> payload) {
  Request* const request = Asked(link, reply.id);
  if (request == nullptr) return;
  ShardQueue& queue = queues_[reply.id.shard];
  // Otherwise an answer that says "not yet" or "accepted" is an earlier head's, or a duplicate.
  const bool sent = request->state == Request::State::kSent;
  if (absl::IsAborted(reply.result) || absl::IsUnavailable(reply.result)) {
    if (!sent) return;
    sender_.SendAgain(&queue, request);
  } else if (reply.result.ok() && reply.provisional && request->op == proto::Op::kPush &&
             request->held()) {
    if (!sent) return;
    queue.Withdraw(request);
    if (retained_.Retain(request)) listener_->OnAnswer(*request, *link, reply, {});
  } else if (!reply.result.ok() && LeavesPushOpen(*request, reply.result)) {
    if (!sent) return;
    queue.Withdraw(request);
    AskOn(&queue, request, *link, reply);
  } else {
    OnFinalAnswer(&queue, *link, reply, payload);
  }
  if (!link->queue.empty()) sender_.Pump(link);
}

void Requests::OnFinalAnswer(ShardQueue* queue, const Link& link, const proto::Reply& reply,
                             std::span<runtime::Buffer> payload) {
  const std::unique_ptr<Request> request = queue->TakeOut(reply.id.sequence);
  if (RefusesPush(reply.result)) TakeBack(*request);
  request->piece.refundable.reset();  // its operation may end with this answer
  request->piece.payload.clear();
  request->receive.Revoke();
  if (request->retained && !reply.result.ok()) retained_.OnRefused(*request, link, reply.result);
  if (request->operation != nullptr) listener_->OnAnswer(*request, link, reply, payload);
}

void Requests::OnAcks(Link* link, const proto::PushAcks& acks) {
  for (const proto::PushAck& ack : acks.acks) OnReply(link, proto::ReplyOf(acks, ack), {});
}

std::uint64_t Requests::OldestClock() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const ShardQueue& queue : queues_) {
    queue.ForEach([&](const Request& request) { oldest = std::min(oldest, request.clock); });
  }
  return oldest;
}

// ---- ends without an answer ----

void Requests::Abandon(Operation& operation) {
  if (proto::HasPush(operation.op) && operation.pushes_out == 0 && !HasNumber(operation)) {
    return Forget(operation);
  }
  const auto abandon = [&](Request& request) {
    if (request.operation.get() != &operation) return;
    if (request.times_sent == 0 && proto::HasPush(request.op)) ++operation.pushes_out;
    sender_.Fill(&request);
    request.receive.Revoke();
    request.operation.reset();
    SetAside(&request, operation);
  };
  for (ShardQueue& queue : queues_) queue.ForEach(abandon);
}

// Sends the request again as a push alone, whose answer may take its time. With an answer like that
// the head has the push, but its replicas may not have it, so that it would be lost with the head.
void Requests::AskOn(ShardQueue* queue, Request* request, const Link& link,
                     const proto::Reply& reply) {
  if (request->op == proto::Op::kPushPull) request->op = proto::Op::kPush;
  request->receive.Revoke();
  request->resend_delay = sender_.resend_interval();
  if (request->operation != nullptr) SetAside(request, *request->operation);
  queue->Enqueue(request);
  if (request->operation != nullptr) listener_->OnAnswer(*request, link, reply, {});
}

// Copies what the request needs of the user's memory: its operation ends.
void Requests::SetAside(Request* request, const Operation& operation) {
  totals_.OnAbandoned(request);
  if (request->piece.refundable != nullptr) request->piece.refundable->given = {};
  if (!operation.memory) return;
  request->CopyPayload();
}

bool Requests::HasNumber(const Operation& operation) const {
  bool found = false;
  for (const ShardQueue& queue : queues_) {
    queue.ForEachNumbered(
        [&](const Request& request) { found = found || request.operation.get() == &operation; });
  }
  return found;
}

void Requests::Forget(const Operation& operation) {
  for (ShardQueue& queue : queues_) {
    queue.DropUnnumbered(
        [&](const Request& request) { return request.operation.get() == &operation; });
  }
}

void Requests::Clear() {
  NumberAll();
  for (ShardQueue& queue : queues_) queue.TakeAll();
  sender_.Stop();
}

// ---- errors ----

std::string Requests::DescribeRequestWait(const ShardQueue& queue, const Request& request) const {
  if (queue.link() == nullptr) {
    return absl::StrCat("a server for shard ", request.piece.shard, ", which has none now");
  }
  const Link& link = *queue.link();
  std::string text = link.Describe();
  if (!link.up) {
    absl::StrAppend(&text, ", which is not connected", link.trouble.ok() ? "" : ": ",
                    link.trouble.message());
  } else if (RequestSender::IsUndecided(request)) {
    absl::StrAppend(&text, ", to which nothing of clock ", request.clock,
                    " is sent before the scheduler has decided on a change of table '",
                    request.table->spec.name, "'");
  } else if (request.times_sent == 0) {
    absl::StrAppend(&text, ", to which it could not be sent yet");
  } else {
    absl::StrAppend(&text, " for ", runtime::FormatDuration(loop_->Now() - request.first_sent),
                    ", sent ", request.times_sent, request.times_sent == 1 ? " time" : " times");
    const TableSpec& spec = request.table->spec;
    if (spec.consistency.rule == Consistency::Rule::kBackup) {
      absl::StrAppend(&text, " (table '", spec.name, "' is ", spec.consistency.ToString(),
                      ": a push of clock ", request.clock,
                      " waits there until so many workers have ended the clocks before)");
    }
  }
  return text + link.Silence(loop_->Now());
}

std::string Requests::DescribeWait(const Operation& operation) const {
  constexpr int kNamedMax = 4;
  std::vector<const Link*> links;
  std::string names;
  for (const ShardQueue& queue : queues_) {
    queue.ForEach([&](const Request& request) {
      if (request.operation.get() != &operation) return;
      if (std::find(links.begin(), links.end(), queue.link()) != links.end()) return;
      links.push_back(queue.link());
      if (links.size() > kNamedMax) return;
      absl::StrAppend(&names, names.empty() ? "" : ", ", DescribeRequestWait(queue, request));
    });
  }
  if (links.size() > kNamedMax) {
    absl::StrAppend(&names, " and ", links.size() - kNamedMax, " more data threads");
  }
  return absl::StrCat(operation.unanswered, " of ", operation.requests,
                      " requests are unanswered; waited for ", names);
}

}  // namespace leeway::worker
