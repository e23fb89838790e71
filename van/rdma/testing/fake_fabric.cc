#include <cstring>
#include <iterator>

#include "runtime/random.h"
#include "van/rdma/testing/fake_state.h"

namespace leeway::van::verbs {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr Outcome kFailures[] = {Outcome::kRetriesExceeded,
                                 Outcome::kReceiverNotReady,
                                 Outcome::kRemoteAccess,
                                 Outcome::kRemoteInvalid,
                                 Outcome::kLocalProtection,
                                 Outcome::kLocalLength,
                                 Outcome::kOther};

}  // namespace

double FakeFabric::State::Uniform() {
  return static_cast<double>(runtime::RandomAt(faults.seed, 0, draws++) >> 11) * 0x1p-53;
}

void FakeFabric::State::Progress() {
  const std::map<std::uint32_t, std::shared_ptr<FakePair>> all = pairs;
  for (const auto& [number, pair] : all) {
    while (pair->handle != nullptr && !pair->pending.empty()) {
      if (pair->state == FakePair::State::kUp && Draw(faults.delay_rate)) {
        pair->owner->Wake();
        break;
      }
      if (!Carry(*pair, pair->pending.front())) break;
    }
  }
}

// False: it has to wait.
bool FakeFabric::State::Carry(FakePair& pair, const FakeRequest& request) {
  Completion completion;
  completion.id = request.request.id;
  completion.queue_pair = pair.number;
  const bool signalled = request.request.signalled;
  bool wait = false;
  completion.outcome =
      pair.state == FakePair::State::kUp ? Try(pair, request, &wait) : Outcome::kFlushed;
  if (wait) return false;
  ++counters.requests;
  counters.signalled += signalled ? 1 : 0;
  pair.pending.pop_front();
  if (completion.outcome != Outcome::kOk || signalled) pair.owner->Complete(completion);
  if (completion.outcome == Outcome::kOk) return true;
  const std::shared_ptr<FakePair> peer = pair.peer;
  Break(pair);
  if (peer != nullptr && peer->handle != nullptr) Break(*peer);
  return true;
}

Outcome FakeFabric::State::Try(FakePair& pair, const FakeRequest& request, bool* wait) {
  if (fail_next.has_value() || Draw(faults.fail_rate)) {
    ++counters.failed;
    if (fail_next.has_value()) return *std::exchange(fail_next, std::nullopt);
    return kFailures[static_cast<std::size_t>(Uniform() * std::size(kFailures))];
  }
  if (Draw(faults.disconnect_rate)) {
    ++counters.failed;
    return Outcome::kFlushed;
  }
  std::uint64_t bytes = 0;
  for (const Segment& segment : request.segments) {
    bytes += segment.bytes;
    if (!pair.owner->Covers(segment.local_key, segment.data, segment.bytes, false)) {
      return Outcome::kLocalProtection;
    }
  }
  std::byte* to = nullptr;
  if (request.request.opcode == Opcode::kWrite) {
    to = reinterpret_cast<std::byte*>(request.request.remote_address);
    if (bytes > 0 && !pair.peer->owner->Covers(request.request.remote_key, to, bytes, true)) {
      ++counters.writes_refused;
      return Outcome::kRemoteAccess;
    }
    counters.written_bytes += bytes;
  } else {
    const Outcome taken = TakeIn(pair, bytes, &to, wait);
    if (taken != Outcome::kOk || *wait) return taken;
  }
  for (const Segment& segment : request.segments) {
    if (segment.bytes > 0) std::memcpy(to, segment.data, segment.bytes);
    to += segment.bytes;
  }
  return Outcome::kOk;
}

// The next receive of the other side, where what is sent goes.
Outcome FakeFabric::State::TakeIn(FakePair& pair, std::uint64_t bytes, std::byte** to, bool* wait) {
  FakeOwner& target = *pair.peer->owner;
  std::pair<std::uint64_t, Segment> receive;
  if (!target.TakeReceive(&receive)) {
    *wait = true;
    return Outcome::kOk;
  }
  Completion completion;
  completion.id = receive.first;
  completion.queue_pair = pair.peer->number;
  completion.receive = true;
  completion.bytes = static_cast<std::uint32_t>(bytes);
  const Segment& place = receive.second;
  const bool fits =
      bytes <= place.bytes && target.Covers(place.local_key, place.data, place.bytes, false);
  if (!fits) completion.outcome = Outcome::kLocalLength;
  target.Complete(completion);
  if (!fits) return Outcome::kRemoteInvalid;
  *to = const_cast<std::byte*>(place.data);
  counters.sent_bytes += bytes;
  return Outcome::kOk;
}

void FakeFabric::State::Break(FakePair& pair) {
  if (pair.state == FakePair::State::kBroken) return;
  const bool was_up = pair.state == FakePair::State::kUp;
  pair.state = FakePair::State::kBroken;
  for (const FakeRequest& request : std::exchange(pair.pending, {})) {
    Completion completion;
    completion.id = request.request.id;
    completion.queue_pair = pair.number;
    completion.outcome = Outcome::kFlushed;
    pair.owner->Complete(completion);
  }
  Event event;
  event.kind = was_up ? EventKind::kDisconnected : EventKind::kFailed;
  event.connection = pair.handle;
  if (!was_up) event.why = absl::UnavailableError("the device was lost");
  pair.owner->Tell(std::move(event));
}

FakeFabric::FakeFabric() : state_(std::make_shared<State>()) {}
FakeFabric::~FakeFabric() = default;

void FakeFabric::SetFaults(const FakeFaults& faults) {
  const Lock lock(state_->mutex);
  state_->faults = faults;
  state_->draws = 0;
}

void FakeFabric::FailNext(Outcome outcome) {
  const Lock lock(state_->mutex);
  state_->fail_next = outcome;
}

void FakeFabric::LoseDevices() {
  const Lock lock(state_->mutex);
  const std::map<std::uint32_t, std::shared_ptr<FakePair>> all = state_->pairs;
  for (const auto& [number, pair] : all) {
    if (pair->handle != nullptr) state_->Break(*pair);
  }
  for (FakeOwner* owner : state_->owners) {
    if (!owner->in_use()) continue;
    Event event;
    event.kind = EventKind::kDeviceLost;
    event.device = owner->AsDevice();
    event.why = absl::UnavailableError("device fake0 was lost");
    owner->Tell(std::move(event));
  }
}

FakeCounters FakeFabric::counters() const {
  const Lock lock(state_->mutex);
  return state_->counters;
}

}  // namespace leeway::van::verbs
