// The part of SessionVan that limits guests (van/van.h).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/thread_cpu_time.h"
#include "runtime/log/log.h"
#include "van/session/session_van.h"

namespace leeway::van {
namespace {

// Only a guest that has been silent for at least this time is dropped for another one.
constexpr absl::Duration kSilent = absl::Seconds(1);
// More requests than `leeway drain` or `leeway status` makes.
constexpr std::uint64_t kManyRequests = 16;

// The work of this thread since it was made. On a busy machine others have the core for most of the
// time: charged to guests, that would keep a tool waiting for seconds. On virtual time nothing
// passes while the thread works.
class Work {
 public:
  explicit Work(absl::Time now) : begin_(now) {}
  absl::Duration Until(absl::Time now) const {
    return std::min(now - begin_, runtime::ThreadCpuTime() - used_);
  }

 private:
  const absl::Time begin_;
  const absl::Duration used_ = runtime::ThreadCpuTime();
};

}  // namespace

bool SessionVan::MayAccept(absl::Duration* pause) {
  const absl::Time now = loop_->Now();
  *pause = accept_meter_.Wait(now);
  if (*pause > absl::ZeroDuration()) return false;
  accept_meter_.Charge(AcceptMeter::kWork, now);
  return true;
}

// Drops the guest or reader that has been silent longest. False: none has been silent for kSilent.
bool SessionVan::MakeRoomForGuest() {
  const absl::Time begin = loop_->Now();
  const Work search(begin);
  const Peer* silent = nullptr;
  for (const auto& [id, peer] : peers_) {
    if (!peer.counted) continue;
    if (silent == nullptr || peer.heard < silent->heard) silent = &peer;
  }
  const bool found = silent != nullptr && begin - silent->heard >= kSilent;
  if (found) {
    DropGuest(silent->id,
              absl::ResourceExhaustedError(absl::StrCat(
                  limits_.guests_max,
                  " connections of processes that have not joined the cluster are open (",
                  "guests_max), and this one has been silent for the longest time")));
  }
  // With a thousand guests the search takes longer than accepting a connection.
  const absl::Time now = loop_->Now();
  accept_meter_.Charge(search.Until(now), now);
  return found;
}

void SessionVan::ServeGuest(PeerId id, ConnId conn, absl::FunctionRef<void()> work) {
  const runtime::Lifetime::Watch alive = lifetime_.watch();
  const absl::Time begin = loop_->Now();
  Find(id)->heard = begin;
  const Work its(begin);
  work();
  if (!alive) return;
  Peer* const peer = Find(id);
  if (peer != nullptr && !peer->guest) return;  // admitted by this message
  const absl::Time now = loop_->Now();
  const absl::Duration worked = its.Until(now);
  meter_.Charge(worked, now);
  if (peer == nullptr) return;
  peer->charged += worked;
  if (peer->conn == conn && !meter_.MayWork(now)) HoldGuest(*peer);
}

void SessionVan::HoldGuest(Peer& peer) {
  if (peer.held) return;
  if (!transport_->Hold(peer.conn)) {
    // Drops only a guest that has itself caused much work by many requests: on a busy machine, a
    // single request may seem to take as long.
    if (peer.charged < GuestMeter::kSaved / 2 || peer.asked < kManyRequests) return;
    return DropGuest(
        peer.id, absl::ResourceExhaustedError("has not joined the cluster and asks for too much"));
  }
  peer.held = true;
  held_guests_.emplace(peer.charged, ++guests_held_, peer.id);
  if (!guests_timer_.pending()) guests_timer_.SetAfter(meter_.Wait(loop_->Now()));
}

// Releases one guest at a time, because the messages that each has sent meanwhile are handled in
// later tasks: the one that has caused least work, so that a tool or a new member does not wait
// behind a thousand connections that ask again and again.
void SessionVan::ReleaseGuests() {
  const absl::Duration wait = meter_.Wait(loop_->Now());
  while (wait == absl::ZeroDuration() && !held_guests_.empty()) {
    Peer* const peer = Find(std::get<2>(*held_guests_.begin()));
    held_guests_.erase(held_guests_.begin());
    if (peer == nullptr || !std::exchange(peer->held, false)) continue;
    transport_->Release(peer->conn);
    break;
  }
  if (held_guests_.empty()) return;
  guests_timer_.SetAfter(std::max(wait, absl::Milliseconds(1)));
}

void SessionVan::Admit(PeerId id) {
  Peer* const peer = Find(id);
  if (peer == nullptr) return;
  StopCounting(*peer);
  if (!peer->guest) return;
  accept_meter_.GiveBack(AcceptMeter::kWork);
  meter_.GiveBack(peer->charged);
  EndMetering(*peer);
}

// What its connection has cost stays charged, or connecting again and again would cost nothing.
void SessionVan::AdmitReader(PeerId id) {
  if (Peer* const peer = Find(id); peer != nullptr && peer->guest) EndMetering(*peer);
}

void SessionVan::KeepGuest(PeerId id) {
  if (Peer* const peer = Find(id); peer != nullptr) StopCounting(*peer);
}

void SessionVan::StopCounting(Peer& peer) { counted_ -= std::exchange(peer.counted, false); }

void SessionVan::EndMetering(Peer& peer) {
  peer.guest = false;
  transport_->Admit(peer.conn);
  if (std::exchange(peer.held, false)) transport_->Release(peer.conn);
}

// Whether so many more bytes may be sent to that guest. If it has too many unread bytes, it is
// dropped; if all guests together have too many, the one with most is dropped. The drop is posted,
// because the caller may still use the peer.
bool SessionVan::MaySendToGuest(const Peer& peer, std::uint64_t bytes) {
  const auto waiting = [](const Peer& guest) {
    return guest.flow.in_flight() + guest.queued_bytes;
  };
  const std::uint64_t own = waiting(peer);
  const Peer* most = &peer;
  if (own == 0 || own + bytes <= limits_.guest_bytes_max) {
    if (bytes <= guests_room_bytes_) {
      guests_room_bytes_ -= bytes;
      return true;
    }
    std::uint64_t all = 0;
    for (const auto& [id, other] : peers_) {
      if (!other.guest) continue;
      all += waiting(other);
      if (waiting(other) > waiting(*most)) most = &other;
    }
    const std::uint64_t with_it = all + bytes;
    guests_room_bytes_ = limits_.guests_bytes_max - std::min(with_it, limits_.guests_bytes_max);
    if (all == 0 || with_it <= limits_.guests_bytes_max) return true;
  }
  loop_->Post([this, alive = lifetime_.watch(), id = most->id, bytes = waiting(*most)] {
    if (!alive || Find(id) == nullptr) return;
    DropGuest(id, absl::ResourceExhaustedError(absl::StrCat(
                      "has not joined the cluster and does not read the replies to its requests: ",
                      bytes, " bytes wait")));
  });
  return most != &peer;
}

void SessionVan::DropGuest(PeerId id, absl::Status why) {
  const std::uint64_t count = ++counters_.guests_dropped;
  log_.Warning("guest",
               absl::StrCat("dropping ", Find(id)->address, ": ", std::string(why.message()), " (",
                            count, " so far, guests_dropped in the status)"));
  // A node that is rejected gives up; one whose connection breaks connects again. One that says the
  // cluster's id may be a member that the owner does not know yet.
  const std::optional<proto::Hello>& theirs = Find(id)->theirs;
  const bool says_id = theirs.has_value() && theirs->cluster != 0;
  const Farewell farewell = says_id ? Farewell::kNone : Farewell::kReject;
  Drop(id, std::move(why), farewell);
}

}  // namespace leeway::van
