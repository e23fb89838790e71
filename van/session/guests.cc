// What a SessionVan does about guests (van.h).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "van/session/session_van.h"

namespace leeway::van {
namespace {

// About what it takes to accept a connection, to greet it and to close it: most of it in the
// kernel.
constexpr absl::Duration kAcceptWork = absl::Microseconds(300);
// A guest that has been silent for less is not made to go for another.
constexpr absl::Duration kSilent = absl::Seconds(1);
// More than `leeway drain` or `leeway status` takes, and nothing to those that ask without end.
constexpr std::uint64_t kManyRequests = 16;

}  // namespace

absl::Duration SessionVan::GuestAcceptWork() { return kAcceptWork; }

bool SessionVan::MayAccept(absl::Duration* pause) {
  const absl::Time now = loop_->Now();
  *pause = meter_.Wait(now);
  if (*pause > absl::ZeroDuration()) return false;
  meter_.Charge(kAcceptWork, now);
  return true;
}

// The guest or newcomer that has been silent longest goes. False: none has been silent for long.
// A member says something as soon as it has connected: one that never did is missed by nobody.
bool SessionVan::MakeRoomForGuest() {
  const absl::Time begin = loop_->Now();
  const Peer* silent = nullptr;
  for (const auto& [id, peer] : peers_) {
    if (!peer.guest && !peer.newcomer) continue;
    if (silent == nullptr || peer.heard < silent->heard) silent = &peer;
  }
  const bool found = silent != nullptr && begin - silent->heard >= kSilent;
  if (found) {
    DropGuest(silent->id, absl::ResourceExhaustedError(absl::StrCat(
                              limits_.guests_max, " connections of those who have not joined, or ",
                              "said nothing since, are open, and this one has been silent for the ",
                              "longest time")));
  }
  // With a thousand guests it takes longer than to accept one.
  const absl::Time now = loop_->Now();
  meter_.Charge(now - begin, now);
  return found;
}

void SessionVan::ServeGuest(PeerId id, ConnId conn, absl::FunctionRef<void()> work) {
  const runtime::Lifetime::Watch alive = lifetime_.watch();
  const absl::Time begin = loop_->Now();
  Find(id)->heard = begin;
  work();
  if (!alive) return;
  Peer* const peer = Find(id);
  if (peer != nullptr && !peer->guest) return;  // it has been admitted
  const absl::Time now = loop_->Now();
  if (!runtime::Planted<"guest-not-charged">()) meter_.Charge(now - begin, now);
  if (peer == nullptr) return;
  peer->charged += now - begin;
  if (peer->conn == conn && !meter_.MayWork(now)) HoldGuest(*peer);
}

void SessionVan::HoldGuest(Peer& peer) {
  if (peer.held) return;
  if (!transport_->Hold(peer.conn)) {
    // Only one that has asked for much itself, and again and again: where the machine has other
    // things to do, a single request may seem to take as long.
    if (peer.charged < GuestMeter::kSaved / 2 || peer.asked < kManyRequests) return;
    return DropGuest(peer.id,
                     absl::ResourceExhaustedError("has not joined, and asks for too much"));
  }
  peer.held = true;
  held_guests_.push_back(peer.id);
  if (!guests_timer_.pending()) guests_timer_.SetAfter(meter_.Wait(loop_->Now()));
}

// One by one: what each of them has sent meanwhile is looked at in turns of their own.
void SessionVan::ReleaseGuests() {
  const absl::Duration wait = meter_.Wait(loop_->Now());
  while (wait == absl::ZeroDuration() && !held_guests_.empty()) {
    Peer* const peer = Find(held_guests_.front());
    held_guests_.pop_front();
    if (peer == nullptr || !std::exchange(peer->held, false)) continue;
    if (!runtime::Planted<"guest-held-for-ever">()) transport_->Release(peer->conn);
    break;
  }
  if (held_guests_.empty()) return;
  guests_timer_.SetAfter(std::max(wait, absl::Milliseconds(1)));
}

void SessionVan::Admit(PeerId id) {
  Peer* const peer = Find(id);
  if (peer == nullptr || !std::exchange(peer->guest, false)) return;
  --guests_;
  if (!peer->newcomer) meter_.GiveBack(peer->charged);
  transport_->Admit(peer->conn);
  if (std::exchange(peer->held, false)) transport_->Release(peer->conn);
}

// Of one that has said the cluster's id, which is no secret: connections that say nothing more are
// paid for by guests.
void SessionVan::OnFirstMessage(Peer& peer) {
  peer.newcomer = false;
  --newcomers_;
  meter_.GiveBack(peer.charged);
}

// Whether there is room for so much more that it has not taken. If not, it is dropped; so is, where
// all guests together have too much, the one that has most. Soon, not now: the caller may still
// have use for it.
bool SessionVan::MaySendToGuest(const Peer& peer, std::uint64_t bytes) {
  const auto waiting = [](const Peer& guest) {
    return guest.flow.in_flight() + guest.queued_bytes;
  };
  std::uint64_t all = 0;
  const Peer* most = &peer;
  for (const auto& [id, other] : peers_) {
    if (!other.guest) continue;
    all += waiting(other);
    if (waiting(other) > waiting(*most)) most = &other;
  }
  if (runtime::Planted<"guest-bytes-unlimited">()) return true;
  const std::uint64_t own = waiting(peer);
  if (own > 0 && own + bytes > limits_.guest_bytes_max) {
    most = &peer;
  } else if (all == 0 || all + bytes <= limits_.guests_bytes_max) {
    return true;
  }
  loop_->Post([this, alive = lifetime_.watch(), id = most->id, bytes = waiting(*most)] {
    if (!alive || Find(id) == nullptr) return;
    DropGuest(id, absl::ResourceExhaustedError(absl::StrCat(
                      "has not joined, and does not read what it has asked for: ", bytes,
                      " bytes wait")));
  });
  return most != &peer;
}

void SessionVan::DropGuest(PeerId id, absl::Status why) {
  const std::uint64_t count = ++counters_.guests_dropped;
  log_.Warning("guest",
               absl::StrCat("dropping ", Find(id)->address, ": ", std::string(why.message()), " (",
                            count, " so far, guests_dropped in the status)"));
  // A node that is refused gives up; one whose connection breaks connects again.
  const Farewell farewell = Find(id)->newcomer ? Farewell::kNone : Farewell::kReject;
  Drop(id, std::move(why), farewell);
}

}  // namespace leeway::van
