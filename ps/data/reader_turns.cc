#include "ps/data/reader_turns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::ps {

ReaderTurns::ReaderTurns(runtime::Loop* loop, Owner owner)
    : loop_(loop), owner_(std::move(owner)), timer_(loop, [this] { Turn(); }) {}

absl::Status ReaderTurns::Check(const Inbound& inbound) const {
  if (requests_ < kRequestsMax && (bytes_ == 0 || bytes_ + inbound.bytes() <= kBytesMax)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat(requests_, " requests of readers wait on this data thread already; ask again"));
}

void ReaderTurns::Add(Inbound inbound) {
  const van::PeerId peer = inbound.peer;
  EnsureOwned(&inbound.payload);
  Queue& queue = queues_[peer];
  ++requests_;
  bytes_ += inbound.bytes();
  queue.bytes += inbound.bytes();
  queue.requests.push_back(std::move(inbound));
  const bool full = queue.requests.size() >= kReaderRequestsMax || queue.bytes >= kReaderBytesMax;
  if ((full || Crowded()) && !queue.held) queue.held = owner_.hold(peer);
  if (!turn_is_due_) TurnLater(loop_->Now());
}

void ReaderTurns::DropPeer(van::PeerId peer) {
  const auto found = queues_.find(peer);
  if (found == queues_.end()) return;
  requests_ -= found->second.requests.size();
  bytes_ -= found->second.bytes;
  queues_.erase(found);
}

bool ReaderTurns::Crowded() const {
  return requests_ >= kRequestsMax / 2 || bytes_ >= kBytesMax / 2;
}

bool ReaderTurns::Quiet(absl::Time now) {
  if (std::exchange(others_spoke_, false)) others_heard_ = now;
  return now - others_heard_ >= kQuiet;
}

// Of the reader whose turn it is.
Inbound ReaderTurns::TakeNext() {
  auto next = queues_.upper_bound(last_);
  if (next == queues_.end()) next = queues_.begin();
  last_ = next->first;
  Queue& queue = next->second;
  Inbound inbound = std::move(queue.requests.front());
  queue.requests.pop_front();
  const std::uint64_t bytes = inbound.bytes();
  --requests_;
  bytes_ -= bytes;
  queue.bytes -= bytes;
  const bool half =
      queue.requests.size() <= kReaderRequestsMax / 2 && queue.bytes <= kReaderBytesMax / 2;
  const bool may_ask = queue.requests.empty() || (half && !Crowded());
  if (may_ask && std::exchange(queue.held, false)) owner_.release(last_);
  if (queue.requests.empty()) queues_.erase(next);
  return inbound;
}

void ReaderTurns::Turn() {
  turn_is_due_ = false;
  const runtime::Lifetime::Watch here = lifetime_.watch();
  const absl::Time begin = loop_->Now();
  absl::Time now = begin;
  for (int served = 0; served < kTurnRequestsMax && now - begin < kTurnTimeMax; ++served) {
    const bool quiet = Quiet(now);
    if (queues_.empty() || (!quiet && !meter_.MayWork(now))) break;
    owner_.serve(TakeNext());
    if (!here) return;
    const absl::Time after = loop_->Now();
    if (!quiet) meter_.Charge(after - now, after);
    now = after;
  }
  TurnLater(now);
}

void ReaderTurns::TurnLater(absl::Time now) {
  if (queues_.empty()) return;
  turn_is_due_ = true;
  const absl::Duration wait =
      Quiet(now) ? absl::ZeroDuration() : std::min(meter_.Wait(now), others_heard_ + kQuiet - now);
  if (wait > absl::ZeroDuration()) {
    timer_.SetAfter(wait);
    return;
  }
  loop_->Post([this, here = lifetime_.watch()] {
    if (here) Turn();
  });
}

}  // namespace leeway::ps
