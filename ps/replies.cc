#include "ps/replies.h"

#include "absl/strings/str_cat.h"

namespace leeway::ps {
namespace {

// What a reply that waits takes beside its payload.
constexpr std::uint64_t kWaitingBytes = 512;

}  // namespace

void Replies::Add(van::PeerId peer, proto::Reply reply, Payload payload) {
  Waiting waiting{std::move(reply), std::move(payload), 0};
  for (const runtime::Buffer& frame : waiting.payload) waiting.bytes += frame.size();
  if (waiting.payload.empty()) {
    const absl::Status sent = send_(peer, waiting.reply, {}, nullptr);
    if (!sent.ok()) failed_(peer, std::move(waiting.reply), sent);
    return;
  }
  Queue& queue = queues_[peer];
  if (queue.waiting.empty() && MaySend(peer, queue, waiting)) {
    return SendNow(peer, queue, std::move(waiting));
  }
  const std::pair id(waiting.reply.id.shard, waiting.reply.id.sequence);
  if (queue.ids.contains(id)) return;
  if (queue.bytes + waiting.bytes > kWaitingBytesMax) {
    return failed_(peer, std::move(waiting.reply),
                   absl::ResourceExhaustedError(
                       absl::StrCat(queue.bytes, " bytes of replies wait for a worker already")));
  }
  queue.ids.insert(id);
  queue.bytes += waiting.bytes + kWaitingBytes;
  queue.waiting.emplace(Place{waiting.reply.priority, next_order_++}, std::move(waiting));
}

bool Replies::MaySend(van::PeerId peer, Queue& queue, const Waiting& next) const {
  return queue.ahead.MayHandOver(next.bytes, writable_(peer));
}

void Replies::SendNow(van::PeerId peer, Queue& queue, Waiting waiting) {
  const std::uint64_t followed =
      queue.ahead.OnHandOver(waiting.bytes, writable_(peer), loop_->Now());
  van::SendDone done;
  if (followed > 0) done = [this, peer, followed](const absl::Status&) { OnDone(peer, followed); };
  const absl::Status sent = send_(peer, waiting.reply, std::move(waiting.payload), std::move(done));
  if (sent.ok()) return;
  queue.ahead.OnDone(followed, loop_->Now());
  failed_(peer, std::move(waiting.reply), sent);
}

void Replies::OnDone(van::PeerId peer, std::uint64_t bytes) {
  const auto found = queues_.find(peer);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  queue.ahead.OnDone(bytes, loop_->Now());
  while (!queue.waiting.empty()) {
    const auto first = queue.waiting.begin();
    if (!MaySend(peer, queue, first->second)) return;
    Waiting next = std::move(first->second);
    queue.waiting.erase(first);
    queue.ids.erase({next.reply.id.shard, next.reply.id.sequence});
    queue.bytes -= next.bytes + kWaitingBytes;
    SendNow(peer, queue, std::move(next));
  }
}

}  // namespace leeway::ps
