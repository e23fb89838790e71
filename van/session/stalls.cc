// The part of SessionVan that detects stalled connections: it checks all of them at intervals, asks
// peers for a report of what they have taken if there was none for a while, and logs stalls.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"
#include "van/session/hello.h"
#include "van/session/session_van.h"

namespace leeway::van {
namespace {

// The interval of the checks, as a part of Limits::stall_time.
constexpr double kLookInterval = 0.2;
// As a part of Limits::stall_time. A peer reports what it has taken when it is asked, or with its
// next message. After this time without either the van asks; then only a peer that does not answer
// is stalled.
constexpr double kAskAfter = 0.4;

}  // namespace

void SessionVan::WatchForStalls() {
  if (stall_timer_.pending()) return;
  looked_for_stalls_ = loop_->Now();
  stall_timer_.SetAfter(kLookInterval * limits_.stall_time);
}

void SessionVan::LookForStalls() {
  const absl::Time now = loop_->Now();
  const absl::Duration interval = kLookInterval * limits_.stall_time;
  const absl::Duration delay = now - looked_for_stalls_ - interval;
  bool again = false;
  for (auto& [id, peer] : peers_) {
    if (peer.stage != Stage::kUp || peer.guest) continue;
    if (delay > interval) {
      peer.sending.PutOff(delay);
      peer.receiving.PutOff(delay);
    }
    LookAtSending(peer, now);
    LookAtReceiving(peer, now);
    // The transport does not announce messages that begin to arrive, so that direction is checked
    // always.
    again = again || peer.flow.in_flight() > 0 || !transport_->lossy();
  }
  if (again) WatchForStalls();
}

void SessionVan::LookAtSending(Peer& peer, absl::Time now) {
  const std::uint64_t taken = peer.flow.sent() - peer.flow.in_flight();
  const StallWatch::News news =
      peer.sending.Look(peer.flow.in_flight() > 0, taken, now, limits_.stall_time);
  TellOfStall(peer, peer.sending, news,
              absl::StrCat("it has taken nothing of the ",
                           peer.flow.in_flight() + peer.queued_bytes, " bytes for it"));
  const bool asks_anyway = peer.retry.pending();
  if (peer.sending.StuckFor(now) >= kAskAfter * limits_.stall_time && !asks_anyway)
    SendCredit(peer, kCreditWanted);
}

void SessionVan::LookAtReceiving(Peer& peer, absl::Time now) {
  std::optional<std::uint64_t> received;
  // A connection that this side holds is not stalled by its peer.
  if (!peer.held && !peer.held_by_owner) received = transport_->ReceivedOfUnfinished(peer.conn);
  const StallWatch::News news =
      peer.receiving.Look(received.has_value(), received.value_or(0), now, limits_.stall_time);
  TellOfStall(peer, peer.receiving, news,
              "a message from it has arrived in part, and no more of it comes");
}

void SessionVan::TellOfStall(const Peer& peer, const StallWatch& watch, StallWatch::News news,
                             const std::string& what) {
  const absl::Time now = loop_->Now();
  if (news == StallWatch::News::kStalled) {
    ++counters_.stalls;
    log_.Warning("stall", absl::StrCat("the connection to ", NameOf(peer), " is stalled: for ",
                                       runtime::FormatDuration(now - watch.since()), " ", what,
                                       " (its process is stopped or overloaded, or the "
                                       "network between is interrupted)"));
  } else if (news == StallWatch::News::kRecovered) {
    log_.Info("stall over",
              absl::StrCat("the connection to ", NameOf(peer), " goes on; it was stalled for ",
                           runtime::FormatDuration(watch.stuck_for())));
  }
}

void SessionVan::EndStall(const Peer& peer, const absl::Status& why) {
  if (!peer.sending.stalled() && !peer.receiving.stalled()) return;
  const absl::Time since = peer.sending.stalled() ? peer.sending.since() : peer.receiving.since();
  log_.Info("stall over",
            absl::StrCat("the connection to ", NameOf(peer), " has ended; it was stalled for ",
                         runtime::FormatDuration(loop_->Now() - since), why.ok() ? "" : ": ",
                         std::string(why.message())));
}

std::string SessionVan::NameOf(const Peer& peer) const {
  if (!peer.theirs.has_value()) return peer.address;
  const Identity identity = IdentityFrom(*peer.theirs);
  const std::string name = handler_->NameOf(peer.id, identity);
  return name.empty() ? absl::StrCat("the ", Name(identity.role), " at ", peer.address)
                      : absl::StrCat(name, " (", peer.address, ")");
}

std::vector<Stall> SessionVan::stalls() const {
  std::vector<Stall> all;
  for (const auto& [id, peer] : peers_) {
    if (peer.sending.stalled()) {
      all.push_back({.peer = NameOf(peer),
                     .since = peer.sending.since(),
                     .send_bytes = peer.flow.in_flight() + peer.queued_bytes});
    } else if (peer.receiving.stalled()) {
      all.push_back({.peer = NameOf(peer), .since = peer.receiving.since()});
    }
  }
  return all;
}

}  // namespace leeway::van
