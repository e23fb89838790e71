#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/random.h"
#include "van/rdma/testing/fake_device.h"
#include "van/rdma/testing/fake_state.h"

namespace leeway::van::verbs {
namespace {

using Lock = FakeFabric::State::Lock;

constexpr Outcome kFailures[] = {Outcome::kRetriesExceeded,
                                 Outcome::kReceiverNotReady,
                                 Outcome::kRemoteAccess,
                                 Outcome::kRemoteInvalid,
                                 Outcome::kLocalProtection,
                                 Outcome::kLocalLength,
                                 Outcome::kOther};

bool MayHaveArrived(Outcome outcome) {
  return outcome == Outcome::kRetriesExceeded || outcome == Outcome::kOther;
}

std::uint64_t BytesOf(const FakeRequest& request) {
  std::uint64_t bytes = 0;
  for (const Segment& segment : request.segments) bytes += segment.bytes;
  return bytes;
}

// A digest of both ends of each segment: enough to detect a buffer that is used again.
std::uint64_t DigestOf(const FakeRequest& request) {
  constexpr std::size_t kBorder = 64;
  std::uint64_t digest = 0;
  for (const Segment& segment : request.segments) {
    const absl::string_view all(reinterpret_cast<const char*>(segment.data), segment.bytes);
    const std::size_t border = std::min(all.size(), kBorder);
    digest = runtime::StableHash(digest + runtime::StableHash(all.substr(0, border)));
    digest =
        runtime::StableHash(digest + runtime::StableHash(all.substr(all.size() - border, border)));
  }
  return digest;
}

}  // namespace

double FakeFabric::State::Uniform() { return runtime::UniformAt(faults.seed, 0, draws++); }

// ---- what waits ----

bool FakeFabric::State::Held(const FakePair& pair, const FakeGate& gate, double rate) {
  const std::shared_ptr<const bool>& hurry = pair.owner->hooks().hurry;
  if (hurry != nullptr && *hurry) return false;
  if (*gate) return true;
  if (!Draw(rate)) return false;
  HoldBack(pair, gate);
  return true;
}

void FakeFabric::State::HoldBack(const FakePair& pair, const FakeGate& gate) {
  FakeOwner* const owner = pair.owner;
  const bool event = gate == pair.event_gate;
  const auto wake = [owner, event] { event ? owner->NoteEvents() : owner->NoteWork(); };
  if (owner->hooks().after == nullptr) return wake();
  *gate = true;
  owner->hooks().after(Uniform() * faults.delay_max, [weak = weak_from_this(), gate, owner, wake] {
    const std::shared_ptr<State> state = weak.lock();
    if (state == nullptr) return;
    const Lock lock(state->mutex);
    *gate = false;
    const std::vector<FakeOwner*>& all = state->owners;
    if (std::find(all.begin(), all.end(), owner) != all.end()) wake();
  });
}

void FakeFabric::State::Activate(const FakePair& pair) {
  active_.insert(pair.number);
  pair.owner->NoteWork();
}

void FakeFabric::State::Progress() {
  if (paused) return;
  for (const std::uint32_t number : std::vector<std::uint32_t>(active_.begin(), active_.end())) {
    const auto found = pairs.find(number);
    const std::shared_ptr<FakePair> pair = found == pairs.end() ? nullptr : found->second;
    if (pair == nullptr || !ProgressPair(*pair)) active_.erase(number);
  }
}

// Makes progress with one connection. False: there is nothing more to do.
bool FakeFabric::State::ProgressPair(FakePair& pair) {
  if (pair.fails_in > 0) return ProgressDial(pair);
  while (!pair.pending.empty()) {
    const bool works = pair.link == FakeLink::kUp && !pair.in_error;
    if (works && Held(pair, pair.request_gate, faults.delay_rate)) break;
    if (!CarryFirst(pair)) break;
  }
  HandOverDelayed(pair, /*all=*/false);
  return !pair.pending.empty() || !pair.delayed_sent.empty() || !pair.delayed_received.empty();
}

bool FakeFabric::State::ProgressDial(FakePair& pair) {
  if (*pair.request_gate) return true;
  if (--pair.fails_in > 0) {
    HoldBack(pair, pair.request_gate);
    return true;
  }
  End(pair, absl::UnavailableError("the other side does not answer"));
  return false;
}

// ---- requests ----

// Carries out the first pending request. False: it has to wait, or there is none.
bool FakeFabric::State::CarryFirst(FakePair& pair) {
  const bool works = pair.link == FakeLink::kUp && !pair.in_error;
  if (works && InjectDisconnect(pair)) return false;
  Outcome outcome = Outcome::kFlushed;
  if (works) {
    const FakeRequest& request = pair.pending.front();
    const std::optional<Failure> failure = DrawFailure(pair, request);
    Tried tried;
    if (!failure.has_value()) {
      tried = Try(pair, request, /*part=*/1);
    } else if (failure->arrived) {
      tried = Try(pair, request, Uniform());
    }
    if (tried.waits && !failure.has_value()) {
      ++counters.receiver_waits;
      if (faults.receiver_waits_max == 0) return false;
      if (++pair.waits < faults.receiver_waits_max) {
        HoldBack(pair, pair.request_gate);
        return false;
      }
      tried.outcome = Outcome::kReceiverNotReady;
    }
    pair.waits = 0;
    outcome = tried.outcome;
    if (failure.has_value() && outcome == Outcome::kOk) outcome = failure->outcome;
  }
  FakeRequest request = std::move(pair.pending.front());
  pair.pending.pop_front();
  Finish(pair, std::move(request), outcome);
  return true;
}

bool FakeFabric::State::InjectDisconnect(FakePair& pair) {
  if (!Draw(faults.disconnect_rate)) return false;
  ++counters.failed;
  if (Draw(0.5)) Try(pair, pair.pending.front(), Uniform());
  const std::shared_ptr<FakePair> peer = pair.peer;
  End(pair, absl::OkStatus());
  if (peer != nullptr && peer->handle != nullptr) End(*peer, absl::OkStatus());
  return true;
}

std::optional<FakeFabric::State::Failure> FakeFabric::State::DrawFailure(
    FakePair& pair, const FakeRequest& request) {
  Failure failure;
  if (const auto found = fail_requests.find({pair.number, request.index});
      found != fail_requests.end()) {
    failure.outcome = found->second;
    fail_requests.erase(found);
  } else if (fail_next.has_value() && fail_next->skipped == 0) {
    failure = *std::exchange(fail_next, std::nullopt);
  } else {
    if (fail_next.has_value()) --fail_next->skipped;
    if (!Draw(faults.fail_rate)) return std::nullopt;
    failure.outcome = kFailures[static_cast<std::size_t>(Uniform() * std::size(kFailures))];
    failure.arrived = MayHaveArrived(failure.outcome) && Draw(0.5);
  }
  ++counters.failed;
  return failure;
}

// `part`: the part of a write that arrives.
FakeFabric::State::Tried FakeFabric::State::Try(FakePair& pair, const FakeRequest& request,
                                                double part) {
  for (const Segment& segment : request.segments) {
    if (!pair.device->Covers(segment)) return {Outcome::kLocalProtection};
  }
  const FakePair* const peer = pair.peer.get();
  if (peer == nullptr || peer->link != FakeLink::kUp || peer->in_error) {
    return {Outcome::kRetriesExceeded};
  }
  std::uint64_t left = BytesOf(request);
  std::byte* to = nullptr;
  if (request.request.opcode == Opcode::kWrite) {
    if (!peer->device->Grants(request.request.remote_key, request.request.remote_address, left)) {
      ++counters.writes_refused;
      return {Outcome::kRemoteAccess};
    }
    to = reinterpret_cast<std::byte*>(request.request.remote_address);
    left = static_cast<std::uint64_t>(static_cast<double>(left) * part);
    counters.written_bytes += left;
  } else {
    const Tried taken = TakeIn(pair, left, &to);
    if (taken.outcome != Outcome::kOk || taken.waits) return taken;
  }
  for (const Segment& segment : request.segments) {
    const std::size_t bytes = std::min<std::uint64_t>(segment.bytes, left);
    if (bytes > 0 && on_write != nullptr && request.request.opcode == Opcode::kWrite) {
      on_write({segment.data, bytes}, to);
    }
    if (bytes > 0) std::memmove(to, segment.data, bytes);
    to += bytes;
    left -= bytes;
  }
  return {};
}

// Takes the next receive of the other side, for the bytes of a send.
FakeFabric::State::Tried FakeFabric::State::TakeIn(FakePair& pair, std::uint64_t bytes,
                                                   std::byte** to) {
  FakePair& peer = *pair.peer;
  FakeDevice::Receive receive;
  if (!peer.device->TakeReceive(&receive)) return {Outcome::kOk, /*waits=*/true};
  FakeCompletion done;
  done.pair = pair.peer;
  done.completion.id = receive.id;
  done.completion.queue_pair = peer.number;
  done.completion.receive = true;
  done.completion.bytes = static_cast<std::uint32_t>(bytes);
  if (bytes > receive.segment.bytes) {
    done.completion.outcome = Outcome::kLocalLength;
  } else if (!peer.device->Covers(receive.segment)) {
    done.completion.outcome = Outcome::kLocalProtection;
  }
  if (!peer.delayed_received.empty() ||
      Held(peer, peer.received_gate, faults.delayed_completion_rate)) {
    peer.delayed_received.push_back(done);
    Activate(peer);
  } else {
    peer.device->Complete(done);
  }
  if (done.completion.outcome != Outcome::kOk) return {Outcome::kRemoteInvalid};
  *to = const_cast<std::byte*>(receive.segment.data);
  counters.sent_bytes += bytes;
  return {};
}

void FakeFabric::State::Finish(FakePair& pair, FakeRequest request, Outcome outcome) {
  ++counters.requests;
  counters.signalled += request.request.signalled ? 1 : 0;
  if (outcome == Outcome::kOk) {
    request.digest = DigestOf(request);
    pair.carried.push_back(request);
  }
  if (outcome != Outcome::kOk || request.request.signalled) CompleteSent(pair, request, outcome);
  if (outcome == Outcome::kOk || pair.in_error) return;
  const std::shared_ptr<FakePair> peer = pair.peer;
  Error(pair);
  const bool by_peer = outcome == Outcome::kRemoteAccess || outcome == Outcome::kRemoteInvalid;
  if (by_peer && peer != nullptr && peer->handle != nullptr) End(*peer, absl::OkStatus());
}

// ---- completions ----

void FakeFabric::State::CompleteSent(FakePair& pair, const FakeRequest& request, Outcome outcome) {
  FakeCompletion done;
  done.pair = pairs.at(pair.number);
  done.index = request.index;
  done.completion.id = request.request.id;
  done.completion.queue_pair = pair.number;
  done.completion.outcome = outcome;
  const bool delayed =
      !pair.in_error &&
      (!pair.delayed_sent.empty() || Held(pair, pair.sent_gate, faults.delayed_completion_rate));
  if (!delayed) return HandOver(pair, done);
  pair.delayed_sent.push_back(done);
  Activate(pair);
}

// A completion implies that all requests before it are done.
void FakeFabric::State::HandOver(FakePair& pair, const FakeCompletion& completion) {
  while (!pair.carried.empty() && pair.carried.front().index <= completion.index) {
    CheckKept(pair, pair.carried.front());
    pair.carried.pop_front();
  }
  pair.device->Complete(completion);
}

void FakeFabric::State::CheckKept(FakePair& pair, const FakeRequest& request) {
  for (const Segment& segment : request.segments) {
    if (pair.device->Covers(segment)) continue;
    ++counters.deregistered_early;
    return;
  }
  if (DigestOf(request) != request.digest) ++counters.changed_early;
}

void FakeFabric::State::HandOverDelayed(FakePair& pair, bool all) {
  while (!pair.delayed_sent.empty()) {
    if (!all && Held(pair, pair.sent_gate, faults.delayed_completion_rate)) break;
    const FakeCompletion next = std::move(pair.delayed_sent.front());
    pair.delayed_sent.pop_front();
    HandOver(pair, next);
  }
  while (!pair.delayed_received.empty()) {
    if (!all && Held(pair, pair.received_gate, faults.delayed_completion_rate)) break;
    const FakeCompletion next = std::move(pair.delayed_received.front());
    pair.delayed_received.pop_front();
    pair.device->Complete(next);
  }
}

// ---- the end ----

void FakeFabric::State::Error(FakePair& pair) {
  if (std::exchange(pair.in_error, true)) return;
  HandOverDelayed(pair, /*all=*/true);
  for (FakeRequest& request : std::exchange(pair.pending, {})) {
    Finish(pair, std::move(request), Outcome::kFlushed);
  }
}

void FakeFabric::State::End(FakePair& pair, const absl::Status& why) {
  if (pair.link == FakeLink::kEnded) return;
  const bool was_up = std::exchange(pair.link, FakeLink::kEnded) == FakeLink::kUp;
  pair.fails_in = 0;
  Error(pair);
  Event event;
  event.kind = was_up ? EventKind::kDisconnected : EventKind::kFailed;
  event.connection = pair.handle;
  if (!was_up) event.why = why;
  pair.owner->Tell(std::move(event), pairs.at(pair.number));
}

void FakeFabric::State::Destroy(FakePair& pair) {
  const std::shared_ptr<FakePair> kept = pairs.at(pair.number);
  pair.handle = nullptr;
  if (pair.device != nullptr && Draw(faults.purge_rate)) {
    pair.device->Purge(pair);
  } else {
    for (const FakeCompletion& one : pair.delayed_received) pair.device->Complete(one);
  }
  pair.pending.clear();
  pair.carried.clear();
  pair.delayed_sent.clear();
  pair.delayed_received.clear();
  const bool was_asked = !pair.dialled;
  if (const std::shared_ptr<FakePair> peer = std::exchange(pair.peer, nullptr)) {
    peer->peer = nullptr;
    End(*peer, absl::UnavailableError(was_asked ? "the other side refuses the connection"
                                                : "the other side has gone"));
  }
  pair.link = FakeLink::kEnded;
  pair.owner = nullptr;
  pairs.erase(pair.number);
  --counters.connections;
}

void FakeFabric::State::LoseDevice(FakeOwner& owner, FakeDevice& device, bool stay_lost) {
  device.lost = stay_lost;
  const std::map<std::uint32_t, std::shared_ptr<FakePair>> all = pairs;
  for (const auto& [number, pair] : all) {
    if (pair->device != &device || pair->handle == nullptr) continue;
    pair->link = FakeLink::kEnded;
    Error(*pair);
  }
  if (!device.was_used) return;
  ++counters.lost_devices;
  Event event;
  event.kind = EventKind::kDeviceLost;
  event.device = &device;
  event.why = absl::UnavailableError(absl::StrCat("device ", device.info().name, " was lost"));
  owner.Tell(std::move(event), nullptr);
}

// ---- control ----

FakeFabric::FakeFabric() : state_(std::make_shared<State>()) {}
FakeFabric::~FakeFabric() = default;

void FakeFabric::SetFaults(const FakeFaults& faults) {
  const Lock lock(state_->mutex);
  state_->faults = faults;
  state_->draws = 0;
}

void FakeFabric::FailNth(std::uint64_t skipped, Outcome outcome, bool arrived) {
  const Lock lock(state_->mutex);
  state_->fail_next = State::Failure{skipped, outcome, arrived};
}

void FakeFabric::FailRequest(std::uint32_t queue_pair, std::uint64_t index, Outcome outcome) {
  const Lock lock(state_->mutex);
  state_->fail_requests[{queue_pair, index}] = outcome;
}

void FakeFabric::OnWrite(
    std::function<void(std::span<const std::byte> from, const std::byte* to)> told) {
  const Lock lock(state_->mutex);
  state_->on_write = std::move(told);
}

void FakeFabric::Pause() {
  const Lock lock(state_->mutex);
  state_->paused = true;
}

void FakeFabric::Resume() {
  const Lock lock(state_->mutex);
  state_->paused = false;
  for (FakeOwner* owner : state_->owners) owner->NoteWork();
}

void FakeFabric::DisconnectAll() {
  const Lock lock(state_->mutex);
  const std::map<std::uint32_t, std::shared_ptr<FakePair>> all = state_->pairs;
  for (const auto& [number, pair] : all) {
    if (pair->link == FakeLink::kUp) state_->End(*pair, absl::OkStatus());
  }
}

void FakeFabric::LoseDevices(bool stay_lost) {
  const Lock lock(state_->mutex);
  for (FakeOwner* owner : state_->owners) {
    for (const auto& device : owner->all_devices()) {
      state_->LoseDevice(*owner, *device, stay_lost);
    }
  }
}

void FakeFabric::LoseDevice(const Device* lost, bool stay_lost) {
  const Lock lock(state_->mutex);
  for (FakeOwner* owner : state_->owners) {
    for (const auto& device : owner->all_devices()) {
      if (device.get() == lost) state_->LoseDevice(*owner, *device, stay_lost);
    }
  }
}

void FakeFabric::RestoreDevices() {
  const Lock lock(state_->mutex);
  for (FakeOwner* owner : state_->owners) {
    for (const auto& device : owner->all_devices()) device->lost = false;
  }
}

void FakeFabric::LoseDevicesOf(const std::string& host) {
  const Lock lock(state_->mutex);
  for (FakeOwner* owner : state_->owners) {
    if (owner->hooks().host != host) continue;
    for (const auto& device : owner->all_devices()) {
      state_->LoseDevice(*owner, *device, /*stay_lost=*/true);
    }
  }
}

void FakeFabric::RestoreDevicesOf(const std::string& host) {
  const Lock lock(state_->mutex);
  for (FakeOwner* owner : state_->owners) {
    if (owner->hooks().host != host) continue;
    for (const auto& device : owner->all_devices()) device->lost = false;
  }
}

void FakeFabric::Kill(const std::string& host) {
  const Lock lock(state_->mutex);
  const auto on_it = [&host](const FakeOwner* owner) {
    return owner != nullptr && owner->hooks().host == host;
  };
  std::erase_if(state_->listeners, [&](const auto& one) { return on_it(one.second); });
  for (FakeOwner* owner : state_->owners) {
    if (!on_it(owner)) continue;
    for (const auto& device : owner->all_devices()) device->lost = true;
  }
  const std::map<std::uint32_t, std::shared_ptr<FakePair>> all = state_->pairs;
  for (const auto& [number, pair] : all) {
    if (!on_it(pair->owner)) continue;
    pair->link = FakeLink::kEnded;
    state_->Error(*pair);
    const std::shared_ptr<FakePair> peer = pair->peer;
    if (peer != nullptr && peer->handle != nullptr && !on_it(peer->owner)) {
      state_->End(*peer, absl::UnavailableError("the other side has gone"));
    }
  }
}

FakeCounters FakeFabric::counters() const {
  const Lock lock(state_->mutex);
  return state_->counters;
}

}  // namespace leeway::van::verbs
