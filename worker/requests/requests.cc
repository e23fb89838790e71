#include "worker/requests/requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutants.h"
#include "runtime/loop/backoff.h"
#include "worker/requests/answers.h"
#include "worker/requests/live_settings.h"
#include "worker/slicing/table_coding.h"

namespace leeway::worker {
namespace {

// Abandoned pushes keep copies of their data; beyond this, new operations are refused.
constexpr std::uint64_t kAbandonedBytesMax = 4ull << 30;
// A server that does not take a request yet is asked again after this, doubling: a shard whose head
// has changed is to be of use again as soon as it can be.
constexpr absl::Duration kBackOffMin = absl::Milliseconds(10);
constexpr absl::Duration kBackOffMax = absl::Milliseconds(250);
// A sweep looks at everything open, so sweeps keep at least a part of the interval apart.
constexpr int kSweepsPerInterval = 8;

}  // namespace

Requests::Requests(const Config& config, runtime::Loop* loop, Servers* servers, Self self,
                   OnAnswer on_answer)
    : resend_interval_(runtime::ResendInterval(config)),
      window_bytes_(config.send_window_bytes),
      retained_bytes_max_(config.held_bytes_max),
      loop_(loop),
      servers_(servers),
      self_(self),
      on_answer_(std::move(on_answer)),
      resend_(loop, [this] { ResendDue(); }) {}

absl::Status Requests::Admit(const Sliced& sliced) const {
  for (const Piece& piece : sliced.pieces) {
    const bool known = piece.shard < queues_.size();
    // Who joins after a loss has never known a server of that shard.
    if (known && queues_[piece.shard].lost && !runtime::Planted<"lost-shard-admitted">())
      return LossOf(piece.shard);
    if (!known || queues_[piece.shard].link == nullptr) {
      return absl::InternalError(absl::StrCat("shard ", piece.shard, " has no owner in the map"));
    }
  }
  if (abandoned_bytes_ > kAbandonedBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pushes of ", abandoned_bytes_,
                     " bytes have passed their deadlines and still wait for their servers; "
                     "push less at once or raise LEEWAY_REQUEST_TIMEOUT_MS"));
  }
  if (retained_bytes_ > retained_bytes_max_ && !runtime::Planted<"kept-without-limit">() &&
      proto::HasPush(sliced.op) && sliced.table->spec.consistency.is_bsp()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("push to table '", sliced.table->spec.name, "': ", retained_bytes_,
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
    request->deadline = operation->deadline;
    request->order = next_order_++;
    request->priority = priority;
    request->resend_delay = resend_interval_;
    request->back_off = kBackOffMin;
    if (proto::HasPush(request->op)) {
      ++unanswered_pushes_;
      if (request->filled) pushed_bytes_ += request->piece.payload.back().size();
    }
    // With a free connection the first piece leaves while the next is still being made.
    if (queue.link->queue.empty() && MaySend(queue.link, *request)) {
      SendNow(queue.link, Number(queue, std::move(request)), i == 0 ? now : loop_->Now());
    } else {
      const Request* const queued = request.get();
      EnqueueNew(queue, std::move(request));
      // What stands before it may wait for something that it need not wait for.
      if (*queue.link->queue.begin() == queued) Pump(queue.link);
    }
  }
}

// Leaves its queue and its link's account.
void Requests::Withdraw(ShardQueue& queue, Request* request) {
  if (queue.link != nullptr) {
    if (request->state == Request::State::kQueued) queue.link->queue.erase(request);
    if (request->in_flight && !runtime::Planted<"window-not-given-back">())
      queue.link->in_flight_bytes -= request->bytes;
  }
  request->in_flight = false;
  request->state = Request::State::kWaiting;
  request->due = absl::InfiniteFuture();
}

// While two limits hold: pushes unanswered at the server (pulls and push-pulls may be held there
// for good reason and must not stop the pushes behind them), and what the transport has taken and
// not got rid of, where nothing urgent can overtake it any more.
bool Requests::MaySend(Link* link, const Request& request) const {
  if (!link->up) return false;
  if (link->ahead.out() > 0 && !link->ahead.MayHandOver(request.bytes, servers_->Writable(link))) {
    return false;
  }
  // What is sent again does not ask: those in flight may be waiting for its number.
  return request.op != proto::Op::kPush ||
         (request.times_sent > 0 && !runtime::Planted<"resends-wait-for-the-window">()) ||
         link->in_flight_bytes == 0 || runtime::Planted<"window-not-kept">() ||
         link->in_flight_bytes + request.bytes <= window_bytes_;
}

// Sends in order of priority.
void Requests::Pump(Link* link) {
  while (!link->queue.empty()) {
    Request* request = *link->queue.begin();
    if (!MaySend(link, *request)) return;
    if (request->sequence == 0 && NumberQueued(request)) continue;
    link->queue.erase(request);
    SendNow(link, request, loop_->Now());
  }
}

proto::Request Requests::MessageFor(const Request& request, absl::Time now) const {
  proto::Request message;
  message.id = {.incarnation = self_.incarnation,
                .sequence = request.sequence,
                .worker = self_.rank,
                .shard = request.piece.shard};
  message.epoch = epoch_;
  message.table = request.table->id;
  message.kind = request.table->spec.kind;
  message.op = request.op;
  message.dtype = request.table->spec.dtype;
  message.clock = request.clock;
  message.block = request.piece.block;
  message.keys = request.piece.keys;
  message.elements = request.piece.elements;
  message.codec = request.piece.codec;
  const TableCoding* const coding = request.table->coding.get();
  if (coding != nullptr && proto::HasPull(request.op)) {
    message.have = coding->pulls.have(request.piece.block);
  }
  message.after = request.earlier == nullptr || runtime::Planted<"earlier-not-named">()
                      ? 0
                      : request.earlier->sequence;
  message.priority = request.priority;
  message.has_learning_rate = request.learning_rate.has_value();
  message.learning_rate = request.learning_rate.value_or(0);
  if (request.operation == nullptr) {
    // Nobody waits: a pull is not to be held. But a push that was accepted must not be refused
    // because it takes its time.
    message.timeout_ms =
        proto::HasPull(request.op) || runtime::Planted<"told-of-death-timeout">() ? 1 : 0;
  } else if (request.deadline != absl::InfiniteFuture()) {
    const std::int64_t left_ms = absl::ToInt64Milliseconds(request.deadline - now);
    message.timeout_ms =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, left_ms - (left_ms + 9) / 10));
  }
  return message;
}

// Reports when the transport is done with a send, which is when it may take more.
van::SendDone Requests::Followed(Link* link, std::uint64_t bytes) {
  return [this, link, bytes, peer = link->peer](const absl::Status&) {
    if (link->peer != peer) return;
    link->ahead.OnDone(bytes, loop_->Now());
    Pump(link);
  };
}

void Requests::Fill(Request& request) {
  if (std::exchange(request.filled, true)) return;
  std::optional<double> rate = request.learning_rate;
  const LiveSettings* const settings = request.table->settings.get();
  if (!rate.has_value() && settings != nullptr) rate = settings->LearningRateAt(request.clock);
  request.operation->source->Fill(request.index, {.clock = request.clock, .learning_rate = rate},
                                  &request.piece);
  request.bytes = 0;
  for (const runtime::Buffer& frame : request.piece.payload) request.bytes += frame.size();
  pushed_bytes_ += request.piece.payload.back().size();
}

void Requests::FillOpen() {
  NumberAll();
  ForEachOpen([this](ShardQueue&, Request& request) {
    if (!request.filled && !Undecided(request)) Fill(request);
  });
}

void Requests::TakeBack(Request* request) {
  const Refundable* const refundable = request->piece.refundable.get();
  if (refundable != nullptr) request->table->coding->TakeBack(request->piece, *refundable);
}

// A push of a clock for which the table's codec is being decided waits for that, and so does
// everything of a clock for which its settings are.
bool Requests::Undecided(const Request& request) {
  const LiveSettings* const settings = request.table->settings.get();
  if (settings != nullptr && settings->UndecidedAt(request.clock) &&
      !runtime::Planted<"settings-not-waited-for">())
    return true;
  const TableCoding* const coding = request.table->coding.get();
  return !request.filled && coding != nullptr && !coding->ChoiceAt(request.clock).has_value();
}

void Requests::SendUndecided() {
  for (ShardQueue& queue : queues_) {
    if (queue.link == nullptr) continue;
    EnqueueAll(queue, [](const Request& request) {
      return request.times_sent == 0 && request.state == Request::State::kWaiting &&
             !Undecided(request);
    });
  }
  for (const auto& [place, link] : servers_->links()) Pump(link.get());
}

// The bug "encodes-again".
void Requests::FillAgain(Request& request) {
  const bool can = request.operation != nullptr && request.operation->source != nullptr;
  if (!can || request.table->spec.kind != TableKind::kDense) return;
  request.filled = false;
  request.piece.payload.clear();
}

void Requests::SendNow(Link* link, Request* request, absl::Time now) {
  if (Undecided(*request)) return TryLater(request);
  request->state = Request::State::kSent;
  request->epoch_sent = epoch_;
  request->due = now + runtime::Jittered(request->resend_delay, loop_);
  request->resend_delay = runtime::NextResendDelay(request->resend_delay, resend_interval_);
  if (request->times_sent > 0 && runtime::Planted<"encodes-again">()) FillAgain(*request);
  if (request->times_sent++ == 0) NoteFirstSent(*request, now);
  Fill(*request);
  if (const absl::Status sent = HandOver(link, *request, now); !sent.ok()) {
    link->trouble = sent;
    TryLater(request);
    return;
  }
  if (request->op == proto::Op::kPush) {
    request->in_flight = true;
    link->in_flight_bytes += request->bytes;
  }
  resend_.SetBy(request->due);
}

void Requests::NoteFirstSent(Request& request, absl::Time now) {
  request.first_sent = now;
  if (request.operation != nullptr && proto::HasPush(request.op)) ++request.operation->pushes_out;
}

// Posts the user's array, where the answer may be received straight into it. Not where it is pushed
// from as well: if the answer breaks off it may have to be sent again, from an array that may be
// this one. Where an answer is coming in over another connection that may yet prove to be the right
// one, nothing of it may be missing: that one keeps the array.
void Requests::PostReceive(const Link& link, Request& request) {
  if (request.op == proto::Op::kPush || request.operation == nullptr) return;
  if (request.op == proto::Op::kPushPull && !runtime::Planted<"posted-for-a-push-pull">()) return;
  if ((request.receive.busy() && !runtime::Planted<"posted-again-while-busy">()) ||
      request.receive.awaits(link.peer))
    return;
  PullSink* const sink = request.operation->sink.get();
  std::byte* const place = sink == nullptr ? nullptr : sink->Place(request.index);
  if (place == nullptr) return;
  const proto::RequestId id{.sequence = request.sequence, .shard = request.piece.shard};
  request.receive = servers_->PostReceive(
      link, proto::ReceiveTokenOf(id),
      {place, request.piece.reply_elements * SizeOf(request.table->spec.dtype)});
}

absl::Status Requests::HandOver(Link* link, Request& request, absl::Time now) {
  PostReceive(*link, request);
  const proto::Request message = MessageFor(request, now);
  const std::span<const runtime::Buffer> payload(request.piece.payload);
  // Where large messages are under way, whose end is waited for, small ones keep their place.
  if (link->ahead.out() == 0 && servers_->SendWithOthers(link, message, payload)) {
    return absl::OkStatus();
  }
  const std::uint64_t followed =
      link->ahead.OnHandOver(request.bytes, servers_->Writable(link), now);
  absl::Status sent =
      servers_->Send(link, message, payload, followed > 0 ? Followed(link, followed) : nullptr);
  if (!sent.ok()) link->ahead.OnDone(followed, now);
  return sent;
}

// Not now, but soon: a queue was full, or the server and we do not know the same map yet.
void Requests::TryLater(Request* request) {
  request->state = Request::State::kWaiting;
  request->due = loop_->Now() + runtime::Jittered(request->back_off, loop_);
  request->back_off = std::min(2 * request->back_off, std::min(kBackOffMax, resend_interval_));
  resend_.SetBy(request->due);
}

void Requests::ResendDue() {
  const absl::Time now = loop_->Now();
  absl::Time next = absl::InfiniteFuture();
  const auto due = [&](const ShardQueue& queue, Request& request) {
    if (request.state == Request::State::kKept) return false;
    if (request.due > now) {
      next = std::min(next, request.due);
      return false;
    }
    if (request.state != Request::State::kSent) return true;
    if (runtime::Planted<"lost-not-sent-again">()) return false;
    if (!servers_->Writable(queue.link)) {  // slow, not lost: more of the same would not help
      request.due = now + runtime::Jittered(request.resend_delay, loop_);
      next = std::min(next, request.due);
      return false;
    }
    ++resends_;
    return true;
  };
  for (ShardQueue& queue : queues_) {
    if (queue.link == nullptr) continue;
    EnqueueAll(queue, [&](Request& request) { return due(queue, request); });
  }
  if (next != absl::InfiniteFuture()) {
    resend_.SetBy(std::max(next, now + resend_interval_ / kSweepsPerInterval));
  }
  for (const auto& [place, link] : servers_->links()) Pump(link.get());
}

void Requests::OnLinkUp(Link* link) {
  link->ahead.Reset();
  for (const std::uint32_t shard : link->shards) {
    EnqueueAll(queues_[shard], [this](const Request& request) {
      if (request.state == Request::State::kKept) return false;
      if (runtime::Planted<"nothing-on-a-new-connection">()) return false;
      if (request.times_sent > 0) ++resends_;
      return true;
    });
  }
  Pump(link);
}

void Requests::OnLinkDown(Link* link) {
  for (const std::uint32_t shard : link->shards) {
    for (const std::unique_ptr<Request>& request : queues_[shard].open) {
      if (request == nullptr || request->state == Request::State::kQueued ||
          request->state == Request::State::kKept) {
        continue;
      }
      request->in_flight = false;
      request->state = Request::State::kWaiting;
      request->due = absl::InfiniteFuture();
    }
  }
  if (!runtime::Planted<"window-kept-over-lost-connection">()) link->in_flight_bytes = 0;
  link->ahead.Reset();
}

Request* Requests::Find(ShardQueue& queue, std::uint64_t sequence) const {
  const std::uint64_t first = queue.next - queue.open.size();
  if (sequence < first || sequence >= queue.next) return nullptr;
  return queue.open[sequence - first].get();
}

// What this link answers; null: nothing that was asked, or it is settled.
Request* Requests::Asked(const Link* link, const proto::RequestId& id) {
  if (id.incarnation != self_.incarnation || id.worker != self_.rank ||
      id.shard >= queues_.size() ||
      (queues_[id.shard].link != link && !runtime::Planted<"answer-of-an-earlier-head">())) {
    return nullptr;
  }
  Request* const request = Find(queues_[id.shard], id.sequence);
  return request != nullptr && request->times_sent > 0 ? request : nullptr;
}

void Requests::OnReply(Link* link, const proto::Reply& reply, std::span<runtime::Buffer> payload) {
  const proto::RequestId& id = reply.id;
  Request* const request = Asked(link, id);
  if (request == nullptr) return;
  ShardQueue& queue = queues_[id.shard];

  const bool sent = request->state == Request::State::kSent;
  if (!runtime::Planted<"not-yet-is-an-answer">() &&
      (absl::IsAborted(reply.result) || absl::IsUnavailable(reply.result))) {
    if (!sent) return;
    const std::uint64_t epoch_sent = request->epoch_sent;
    Withdraw(queue, request);
    request->resend_delay = resend_interval_;
    if (epoch_sent < epoch_) {
      Enqueue(queue, request);
    } else {
      TryLater(request);
    }
  } else if (reply.result.ok() && reply.provisional && !runtime::Planted<"accepted-is-settled">() &&
             request->op == proto::Op::kPush && request->held()) {
    if (!sent) return;  // of an earlier head, or said twice
    Withdraw(queue, request);
    Retain(*request, *link, reply);
  } else if (LeavesPushOpen(*request, reply.result) &&
             !runtime::Planted<"push-dropped-with-its-pull">()) {
    if (!sent) return;
    Withdraw(queue, request);
    AskOn(queue, *request, *link, reply);
  } else {
    const std::unique_ptr<Request> answered = TakeOut(queue, id.sequence);
    if (RefusesPush(reply.result) && !runtime::Planted<"refused-not-taken-back">())
      TakeBack(answered.get());
    answered->piece.refundable.reset();  // its operation may end with this answer
    answered->piece.payload.clear();
    answered->receive.Revoke();
    if (answered->retained && !reply.result.ok()) Refused(*answered, *link, reply.result);
    if (answered->operation != nullptr) on_answer_(*answered, *link, reply, payload);
  }
  Pump(link);
}

void Requests::OnAcks(Link* link, const proto::PushAcks& acks) {
  for (const proto::PushAck& ack : acks.acks) OnReply(link, proto::ReplyOf(acks, ack), {});
}

std::unique_ptr<Request> Requests::TakeOut(ShardQueue& queue, std::uint64_t sequence) {
  const std::uint64_t first = queue.next - queue.open.size();
  std::unique_ptr<Request> request = std::move(queue.open[sequence - first]);
  Withdraw(queue, request.get());
  Request*& last = queue.last[request->held() ? 1 : 0];
  (request->later == nullptr ? last : request->later->earlier) = request->earlier;
  if (request->earlier != nullptr) request->earlier->later = request->later;
  while (!queue.open.empty() && queue.open.front() == nullptr) queue.open.pop_front();
  Retire(*request);
  return request;
}

void Requests::Retire(const Request& request) {
  if (request.retained) {
    --retained_;
    if (!runtime::Planted<"kept-bytes-not-given-back">()) retained_bytes_ -= request.bytes;
  } else if (proto::HasPush(request.op)) {
    --unanswered_pushes_;
  }
  if (request.abandoned) abandoned_bytes_ -= request.bytes;
}

}  // namespace leeway::worker
