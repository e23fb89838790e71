#include "ps/data/state/replies.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"

namespace leeway::ps {
namespace {

// The bytes that a reply that waits is charged beside its payload.
constexpr std::uint64_t kWaitingBytes = 512;
// Requests of a reader while nothing more can be sent to it.
constexpr std::uint64_t kUnreadMax = 4096;

}  // namespace

Replies::Replies(runtime::Loop* loop, Send send, Writable writable, Failed failed)
    : loop_(loop),
      send_(std::move(send)),
      writable_(std::move(writable)),
      failed_(std::move(failed)),
      send_queue_(van::Limits().send_queue) {}

void Replies::Clear() {
  for (auto& [peer, queue] : queues_) Release(queue, queue.bytes);
  queues_.clear();
  gathered_.clear();
}

void Replies::DropPeer(van::PeerId peer) {
  gathered_.erase(peer);
  const auto found = queues_.find(peer);
  if (found == queues_.end()) return;
  Release(found->second, found->second.bytes);
  queues_.erase(found);
}

bool Replies::ReaderHasRoom(const Queue& queue, std::uint64_t bytes) const {
  if (readers_bytes_ == 0) return true;
  return queue.bytes + bytes <= kReaderBytesMax && readers_bytes_ + bytes <= kReadersBytesMax;
}

bool Replies::Charge(Queue& queue, std::uint64_t bytes) {
  if (queue.reader ? !ReaderHasRoom(queue, bytes) : !send_queue_->Charge(queue.bytes, bytes)) {
    return false;
  }
  queue.bytes += bytes;
  if (queue.reader) readers_bytes_ += bytes;
  return true;
}

void Replies::Release(Queue& queue, std::uint64_t bytes) {
  queue.bytes -= bytes;
  if (queue.reader) {
    readers_bytes_ -= bytes;
  } else {
    send_queue_->Release(bytes);
  }
}

absl::Status Replies::CheckReader(van::PeerId peer) {
  Queue& queue = queues_[peer];
  queue.reader = true;
  queue.unread = writable_(peer) ? 0 : queue.unread + 1;
  if (queue.unread > kUnreadMax) {
    return absl::PermissionDeniedError(
        "a reader goes on asking, and does not read what it is told");
  }
  if (ReaderHasRoom(queue, kWaitingBytes)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(readers_bytes_, " bytes of replies wait for readers already; ask again"));
}

void Replies::Add(van::PeerId peer, proto::Reply reply, Payload payload, bool reader) {
  if (payload.empty()) {
    const bool pushed = reply.op == proto::Op::kPush && reply.result.ok();
    return gathering_ && pushed ? Gather(peer, std::move(reply))
                                : SendWithoutValues(peer, std::move(reply));
  }
  Waiting waiting{std::move(reply), std::move(payload), 0};
  for (const runtime::Buffer& frame : waiting.payload) waiting.bytes += frame.size();
  Queue& queue = queues_[peer];
  queue.reader = reader;
  const bool may_go = !reader || ReaderHasRoom(queue, waiting.bytes + kWaitingBytes);
  if (may_go && queue.waiting.empty() && MaySend(peer, queue, waiting)) {
    return SendNow(peer, queue, std::move(waiting));
  }
  const std::pair id(waiting.reply.id.shard, waiting.reply.id.sequence);
  if (queue.ids.contains(id)) return;
  if (!Charge(queue, waiting.bytes + kWaitingBytes)) {
    return failed_(
        peer, std::move(waiting.reply),
        absl::ResourceExhaustedError(absl::StrCat(
            queue.bytes, " bytes of replies wait for a ", reader ? "reader" : "worker", " already",
            reader ? "" : ", and there is no more room (LEEWAY_SEND_QUEUE_BYTES_MAX)")));
  }
  queue.ids.insert(id);
  queue.waiting.emplace(QueuePosition{waiting.reply.priority, next_order_++}, std::move(waiting));
}

void Replies::SendWithoutValues(van::PeerId peer, proto::Reply reply) {
  const absl::Status sent = send_(peer, reply, {}, nullptr);
  if (!sent.ok()) failed_(peer, std::move(reply), sent);
}

void Replies::Gather(van::PeerId peer, proto::Reply reply) {
  Gathered& gathered = gathered_[peer];
  gathered.acks.push_back(
      {.sequence = reply.id.sequence, .shard = reply.id.shard, .provisional = reply.provisional});
  if (gathered.acks.size() == 1) {
    gathered.first = std::move(reply);
  } else if (gathered.acks.size() == proto::kPushesPerBatchMax) {
    SendGathered(peer);
  }
}

void Replies::SendGathered(van::PeerId peer) {
  if (gathered_.empty()) return;
  const auto found = gathered_.find(peer);
  if (found == gathered_.end()) return;
  Gathered gathered = std::move(found->second);
  gathered_.erase(found);
  if (gathered.acks.size() == 1) return SendWithoutValues(peer, std::move(gathered.first));
  proto::Reply& reply = gathered.first;
  proto::PushAcks acks{.incarnation = reply.id.incarnation,
                       .worker = reply.id.worker,
                       .acks = std::move(gathered.acks)};
  const absl::Status sent = send_(peer, acks, {}, nullptr);
  if (sent.ok()) return;
  for (const proto::PushAck& ack : acks.acks) {
    reply.id.sequence = ack.sequence;
    reply.id.shard = ack.shard;
    failed_(peer, reply, sent);
  }
}

void Replies::EndGathering() {
  gathering_ = false;
  while (!gathered_.empty()) SendGathered(gathered_.begin()->first);
}

bool Replies::MaySend(van::PeerId peer, Queue& queue, const Waiting& next) const {
  return queue.ahead.MayHandOver(next.bytes, writable_(peer));
}

void Replies::SendNow(van::PeerId peer, Queue& queue, Waiting waiting) {
  const std::uint64_t followed =
      queue.ahead.OnHandOver(waiting.bytes, writable_(peer), loop_->Now());
  // A reader's answer counts until the transport has sent it, though it is longer than there is
  // room.
  const std::uint64_t charged = queue.reader ? waiting.bytes + kWaitingBytes : 0;
  queue.bytes += charged;
  readers_bytes_ += charged;
  van::SendDone done;
  if (followed > 0 || charged > 0) {
    done = [this, peer, followed, charged](const absl::Status&) {
      OnDone(peer, followed, charged);
    };
  }
  const absl::Status sent = send_(peer, waiting.reply, std::move(waiting.payload), std::move(done));
  if (sent.ok()) return;
  if (charged > 0) Release(queue, charged);
  queue.ahead.OnDone(followed, loop_->Now());
  failed_(peer, std::move(waiting.reply), sent);
}

void Replies::OnDone(van::PeerId peer, std::uint64_t followed, std::uint64_t charged) {
  const auto found = queues_.find(peer);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  if (charged > 0) Release(queue, charged);
  queue.ahead.OnDone(followed, loop_->Now());
  while (!queue.waiting.empty()) {
    const auto first = queue.waiting.begin();
    if (!MaySend(peer, queue, first->second)) return;
    Waiting next = std::move(first->second);
    queue.waiting.erase(first);
    queue.ids.erase({next.reply.id.shard, next.reply.id.sequence});
    Release(queue, next.bytes + kWaitingBytes);
    SendNow(peer, queue, std::move(next));
  }
}

}  // namespace leeway::ps
