#include "worker/requests/request_sender.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "runtime/loop/backoff.h"
#include "worker/slicing/live_table_settings.h"
#include "worker/slicing/table_coding.h"

namespace leeway::worker {
namespace {

// The back-off of a request that its server does not take yet doubles from the first to the second:
// a shard with a new head has to be of use again as soon as possible.
constexpr absl::Duration kBackOffMin = absl::Milliseconds(10);
constexpr absl::Duration kBackOffMax = absl::Milliseconds(250);
// A sweep looks at all requests, so sweeps are at least this part of the resend interval apart.
constexpr int kSweepsPerInterval = 8;

void NoteFirstSent(Request* request, absl::Time now) {
  request->first_sent = now;
  if (request->operation != nullptr && proto::HasPush(request->op)) {
    ++request->operation->pushes_out;
  }
}

}  // namespace

RequestSender::RequestSender(const Config& config, runtime::Loop* loop, Servers* servers,
                             ShardQueues* queues, RequestTotals* totals, WorkerId self)
    : resend_interval_(runtime::ResendInterval(config)),
      window_bytes_(config.push_window_bytes),
      loop_(loop),
      servers_(servers),
      queues_(queues),
      totals_(totals),
      self_(self),
      resend_(loop, [this] { ResendDue(); }) {}

// Over a free connection the first piece of an operation is sent while the next is still being
// made.
void RequestSender::Submit(ShardQueue* queue, std::unique_ptr<Request> owned, absl::Time now) {
  Request* const request = owned.get();
  request->resend_delay = resend_interval_;
  request->back_off = kBackOffMin;
  Link* const link = queue->link();
  if (request->op == proto::Op::kCall) {
    // It may touch all of the shard, so that no request to it may overtake it, or be overtaken.
    queues_->NumberAll(link);
    queue->Enqueue(queue->Number(std::move(owned)));
    return Pump(link);
  }
  if (link->queue.empty() && MaySend(link, *request)) {
    return SendNow(link, queue->Number(std::move(owned)), now);
  }
  queue->EnqueueNew(std::move(owned));
  // The limits may hold up the requests before it and not this one.
  if (*link->queue.begin() == request) Pump(link);
}

bool RequestSender::MaySend(Link* link, const Request& request) const {
  if (!link->up) return false;
  if (link->pacer.out() > 0 && !link->pacer.MayHandOver(request.bytes, servers_->Writable(link))) {
    return false;
  }
  return request.op != proto::Op::kPush || request.times_sent > 0 || link->in_flight_bytes == 0 ||
         link->in_flight_bytes + request.bytes <= window_bytes_;
}

void RequestSender::Pump(Link* link) {
  while (!link->queue.empty()) {
    Request* request = *link->queue.begin();
    if (!MaySend(link, *request)) return;
    if (request->sequence == 0 && queues_->Of(*request).NumberQueued(request)) continue;
    link->queue.erase(request);
    SendNow(link, request, loop_->Now());
  }
}

void RequestSender::PumpAll() {
  for (const auto& [place, link] : servers_->links()) Pump(link.get());
}

void RequestSender::SendNow(Link* link, Request* request, absl::Time now) {
  if (IsUndecided(*request)) return TryLater(request);
  request->state = Request::State::kSent;
  request->epoch_sent = epoch_;
  request->due = now + runtime::Jittered(request->resend_delay, loop_);
  request->resend_delay = runtime::NextResendDelay(request->resend_delay, resend_interval_);
  if (request->times_sent++ == 0) NoteFirstSent(request, now);
  Fill(request);
  if (const absl::Status sent = HandOver(link, request, now); !sent.ok()) {
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

void RequestSender::Fill(Request* request) {
  if (std::exchange(request->filled, true)) return;
  std::optional<double> rate = request->learning_rate;
  const LiveTableSettings* const settings = request->table->settings.get();
  if (!rate.has_value() && settings != nullptr) rate = settings->LearningRateAt(request->clock);
  request->operation->source->Fill(request->index, {.clock = request->clock, .learning_rate = rate},
                                   &request->piece);
  request->bytes = 0;
  for (const runtime::Buffer& frame : request->piece.payload) request->bytes += frame.size();
  totals_->OnFilled(*request);
}

bool RequestSender::IsUndecided(const Request& request) {
  const LiveTableSettings* const settings = request.table->settings.get();
  if (settings != nullptr && settings->UndecidedAt(request.clock)) return true;
  const TableCoding* const coding = request.table->coding.get();
  return !request.filled && coding != nullptr && !coding->ChoiceAt(request.clock).has_value();
}

void RequestSender::SendUndecided() {
  for (ShardQueue& queue : *queues_) {
    if (queue.link() == nullptr) continue;
    queue.EnqueueAll([](const Request& request) {
      return request.times_sent == 0 && request.state == Request::State::kWaiting &&
             !IsUndecided(request);
    });
  }
  PumpAll();
}

proto::Request RequestSender::MessageFor(const Request& request, absl::Time now) const {
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
  message.publication = request.piece.publication;
  if (message.publication != 0) {
    message.have = request.piece.have;
  } else if (coding != nullptr && proto::HasPull(request.op)) {
    message.have = coding->pulls.have(request.piece.block);
  }
  message.after = request.earlier == nullptr ? 0 : request.earlier->sequence;
  message.priority = request.priority;
  message.has_learning_rate = request.learning_rate.has_value();
  message.learning_rate = request.learning_rate.value_or(0);
  message.read_updates = request.read_updates;
  message.rows_wrapped = request.piece.rows_wrapped;
  if (request.op == proto::Op::kCall) {
    const Request* first = &request;
    while (first->earlier != nullptr) first = first->earlier;
    message.settled = first->sequence;
  }
  if (request.operation == nullptr) {
    // No operation waits for it: a server need not hold a pull. A push that was accepted, however,
    // must not be refused because it takes long.
    message.timeout_ms = proto::HasPull(request.op) ? 1 : 0;
  } else if (request.deadline != absl::InfiniteFuture()) {
    const std::int64_t left_ms = absl::ToInt64Milliseconds(request.deadline - now);
    message.timeout_ms =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, left_ms - (left_ms + 9) / 10));
  }
  return message;
}

absl::Status RequestSender::HandOver(Link* link, Request* request, absl::Time now) {
  PostReceive(*link, request);
  const proto::Request message = MessageFor(*request, now);
  const std::span<const runtime::Buffer> payload(request->piece.payload);
  // Behind a large message whose end is awaited, a small one keeps its place.
  if (link->pacer.out() == 0 && servers_->SendWithOthers(link, message, payload)) {
    return absl::OkStatus();
  }
  const std::uint64_t reported =
      link->pacer.OnHandOver(request->bytes, servers_->Writable(link), now);
  absl::Status sent =
      servers_->Send(link, message, payload, reported > 0 ? ReportTo(link, reported) : nullptr);
  if (!sent.ok()) link->pacer.OnDone(reported, now);
  return sent;
}

// Posts the user's array where the answer may be received straight into it. Not for a push-pull:
// if the answer breaks off, the request may be sent again from an array that may be the same one.
// Not while an answer is coming in over another connection, which may yet turn out complete: that
// connection keeps the array.
void RequestSender::PostReceive(const Link& link, Request* request) {
  if (request->op == proto::Op::kPush || request->operation == nullptr) return;
  if (request->op == proto::Op::kPushPull) return;
  if (request->receive.busy() || request->receive.awaits(link.peer)) return;
  PullSink* const sink = request->operation->sink.get();
  std::byte* const place = sink == nullptr ? nullptr : sink->Place(request->index);
  if (place == nullptr) return;
  const proto::RequestId id{.sequence = request->sequence, .shard = request->piece.shard};
  request->receive = servers_->PostReceive(
      link, proto::ReceiveTokenOf(id),
      {place, request->piece.reply_elements * SizeOf(request->table->spec.dtype)});
}

// Called when the transport is done with a send, and may take more.
van::SendDone RequestSender::ReportTo(Link* link, std::uint64_t bytes) {
  return [this, link, bytes, peer = link->peer](const absl::Status&) {
    if (link->peer != peer) return;
    link->pacer.OnDone(bytes, loop_->Now());
    Pump(link);
  };
}

// After a back-off: a queue is full, or the server and this worker do not have the same map yet.
void RequestSender::TryLater(Request* request) {
  request->state = Request::State::kWaiting;
  request->due = loop_->Now() + runtime::Jittered(request->back_off, loop_);
  request->back_off =
      runtime::NextPause(request->back_off, std::min(kBackOffMax, resend_interval_));
  resend_.SetBy(request->due);
}

void RequestSender::SendAgain(ShardQueue* queue, Request* request) {
  const std::uint64_t epoch_sent = request->epoch_sent;
  queue->Withdraw(request);
  request->resend_delay = resend_interval_;
  if (epoch_sent < epoch_) {
    queue->Enqueue(request);
  } else {
    TryLater(request);
  }
}

// Whether to send the request again now; if not, `next` is at most when it is due.
bool RequestSender::IsDue(const Link& link, Request* request, absl::Time now, absl::Time* next) {
  if (request->state == Request::State::kRetained) return false;
  if (request->due > now) {
    *next = std::min(*next, request->due);
    return false;
  }
  if (request->state != Request::State::kSent) return true;
  if (!servers_->Writable(&link)) {  // slow, not lost: another copy would not help
    request->due = now + runtime::Jittered(request->resend_delay, loop_);
    *next = std::min(*next, request->due);
    return false;
  }
  totals_->OnResent();
  return true;
}

void RequestSender::ResendDue() {
  const absl::Time now = loop_->Now();
  absl::Time next = absl::InfiniteFuture();
  for (ShardQueue& queue : *queues_) {
    if (queue.link() == nullptr) continue;
    queue.EnqueueAll([&](Request& request) { return IsDue(*queue.link(), &request, now, &next); });
  }
  if (next != absl::InfiniteFuture()) {
    resend_.SetBy(std::max(next, now + resend_interval_ / kSweepsPerInterval));
  }
  PumpAll();
}

void RequestSender::OnLinkUp(Link* link) {
  link->pacer.Reset();
  for (const std::uint32_t shard : link->shards) {
    (*queues_)[shard].EnqueueAll([this](const Request& request) {
      if (request.state == Request::State::kRetained) return false;
      if (request.times_sent > 0) totals_->OnResent();
      return true;
    });
  }
  Pump(link);
}

void RequestSender::OnLinkDown(Link* link) {
  for (const std::uint32_t shard : link->shards) {
    (*queues_)[shard].ForEachNumbered([](Request& request) {
      if (request.state == Request::State::kQueued || request.state == Request::State::kRetained) {
        return;
      }
      request.in_flight = false;
      request.state = Request::State::kWaiting;
      request.due = absl::InfiniteFuture();
    });
  }
  link->in_flight_bytes = 0;
  link->pacer.Reset();
}

}  // namespace leeway::worker
