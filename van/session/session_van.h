// SessionVan is the Van over any transport: it does what is the same for all of them.
//
//   peer (dialled):   kDialling ──opened──▶ kGreeting ──their hello──▶ kUp
//                        ▲                     │ closed
//                        └──── after a pause ──┘            until the connect timeout
//   peer (accepted):                        kGreeting ──their hello──▶ kUp
//
// The side that dialled says hello first and repeats it until it is answered. A peer is removed
// from the table at once when its end is known; the handler hears of it from a posted task, so that
// it is never called from within a call to the van. The van may be destroyed from within a handler.
#ifndef LEEWAY_VAN_SESSION_SESSION_VAN_H_
#define LEEWAY_VAN_SESSION_SESSION_VAN_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "proto/messages/messages.h"
#include "runtime/loop/lifetime.h"
#include "runtime/loop/log_limiter.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "van/session/envelope.h"
#include "van/session/flow.h"
#include "van/session/guest_meter.h"
#include "van/session/stall_watch.h"
#include "van/transport.h"
#include "van/van.h"

namespace leeway::van {

class SessionVan final : public Van, private TransportEvents {
 public:
  SessionVan(runtime::Loop* loop, const Identity& identity, const Limits& limits, Handler* handler,
             std::unique_ptr<Transport> transport);
  ~SessionVan() override;

  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<PeerId> Connect(absl::string_view address, absl::Duration timeout) override;
  absl::Status Send(PeerId peer, Message message, SendDone done) override;
  ReceiveHandle PostReceive(PeerId peer, std::uint64_t token, std::span<std::byte> into) override;
  void Disconnect(PeerId peer, absl::Status why) override;
  void Admit(PeerId peer) override;
  void AdmitReader(PeerId peer) override;
  void KeepGuest(PeerId peer) override;
  bool Hold(PeerId peer) override;
  void Release(PeerId peer) override;
  bool Writable(PeerId peer) const override;
  std::string AddressOf(PeerId peer) const override;
  Identity identity() const override { return identity_; }
  void SetIdentity(const Identity& identity) override { identity_ = identity; }
  Counters counters() const override { return counters_; }
  std::vector<Stall> stalls() const override;

 private:
  // An attempt to connect that takes longer is replaced by another one.
  static constexpr absl::Duration kDialAttemptMax = absl::Seconds(5);

  enum class Stage { kDialling, kGreeting, kUp };
  enum class Farewell { kNone, kReject, kGoodbye };

  struct Queued {
    Message message;
    SendDone done;
    std::uint64_t bytes = 0;
  };

  struct Peer {
    Peer(SessionVan* van, PeerId peer)
        : id(peer),
          flow(van->limits_.send_window_bytes),
          deadline(van->loop_, [van, peer] { van->OnDeadline(peer); }),
          retry(van->loop_, [van, peer] { van->Retry(peer); }) {}
    const PeerId id;
    bool dialled = false;
    std::string address;
    Stage stage = Stage::kDialling;
    ConnId conn = 0;
    Buffer hello;                        // our hello on this connection, repeated unchanged
    std::optional<proto::Hello> theirs;  // their hello, once accepted
    SendFlow flow;
    StallWatch sending, receiving;
    std::uint64_t handed = 0;    // the largest offset of theirs that was handed over
    std::uint64_t reported = 0;  // the largest one that they have been told
    bool takes_envelopes = false;
    bool gains_from_envelopes = true;
    bool guest = false;    // its work is limited
    bool counted = false;  // its connection counts among those of guests
    bool held = false;     // a guest whose messages are held until its turn
    bool held_by_owner = false;
    absl::Time heard;          // of one that is counted: time of its last message
    absl::Duration charged;    // of a guest: charged to the meter
    std::uint64_t asked = 0;   // messages given to the owner
    Envelope envelope;         // sent before the loop sleeps; empty while there is a queue
    std::deque<Queued> queue;  // messages that wait for the window, or for kUp
    std::uint64_t queued_bytes = 0;
    runtime::Timer deadline;  // when it must be up
    runtime::Timer retry;     // to dial, say hello or ask for a report again, by stage
    absl::Duration retry_delay;
    absl::Duration timeout;  // as given to Connect
    absl::Status last_failure;
  };

  // An event that the owner has not been told yet: how a send ended, or that a peer is down.
  struct Notice {
    SendDone done;
    PeerId peer = 0;
    absl::Status status;
  };

  // session_van.cc: messages, sent and received, and calls of the owner
  absl::Status CheckSizes(const Message& message) const;
  bool PutInEnvelope(Peer& peer, const Message& message);
  void SendEnvelope(Peer& peer);
  void SendEnvelopes();
  void Transmit(Peer& peer, Queued item);
  void TransmitQueue(Peer& peer);
  void OnBlocked(Peer& peer);
  void AskAgain(Peer& peer);
  void SendSession(Peer& peer, Buffer header);
  void SendCredit(Peer& peer, std::uint8_t flags);
  void OnArrival(ConnId conn, Arrival arrival) override;
  std::shared_ptr<const PostedReceive> PostedFor(ConnId conn, std::span<const std::byte> head,
                                                 std::uint64_t bytes) override;
  absl::StatusOr<Prefix> CheckArrival(const Arrival& arrival) const;
  void OnMessage(PeerId id, Arrival arrival);
  void OnData(PeerId id, const Prefix& prefix, Arrival arrival);
  // The answer to a posted receive has come, in place or not.
  void EndReceive(PeerId id, std::uint64_t token, const Arrival& arrival);
  void OnEnvelope(PeerId id, const Prefix& prefix, const Arrival& arrival);
  // Gives the message to the handler; false: this van has been destroyed.
  bool HandOver(PeerId id, Message message);
  void AfterData(PeerId id, const Prefix& prefix);
  void Tell(Notice notice);
  void RunNotices();
  Peer* Find(PeerId id);

  // guests.cc: peers that have not been admitted
  bool MayAccept(absl::Duration* pause) override;
  bool MakeRoomForGuest();
  void ServeGuest(PeerId id, ConnId conn, absl::FunctionRef<void()> work);
  void HoldGuest(Peer& peer);
  void StopCounting(Peer& peer);
  void EndMetering(Peer& peer);
  void ReleaseGuests();
  bool MaySendToGuest(const Peer& peer, std::uint64_t bytes);
  void DropGuest(PeerId id, absl::Status why);

  // stalls.cc: stalled connections
  void WatchForStalls();
  void LookForStalls();
  void LookAtSending(Peer& peer, absl::Time now);
  void LookAtReceiving(Peer& peer, absl::Time now);
  void TellOfStall(const Peer& peer, const StallWatch& watch, StallWatch::News news,
                   const std::string& what);
  void EndStall(const Peer& peer, const absl::Status& why);
  std::string NameOf(const Peer& peer) const;

  // session_events.cc: connections, from dialling or accepting to their end
  void OnAccepted(ConnId conn) override;
  void OnOpened(ConnId conn) override;
  void OnClosed(ConnId conn, const absl::Status& why) override;
  void OnHandshakeFailed(const std::string& address, const absl::Status& why) override;
  absl::Status Damaged(const std::string& address);
  void Lose(Peer& peer, const absl::Status& why, Farewell farewell);
  void Drop(PeerId id, absl::Status why, Farewell farewell);
  void DialNow(Peer& peer);
  void DialLater(Peer& peer, absl::Status why);
  proto::Hello OwnHello() const;
  void SayHello(Peer& peer);
  void NoteIfTaken(Peer& peer);
  void OnConnectTimeout(Peer& peer);
  static absl::Status NotReached(const Peer& peer);
  void OnSession(Peer& peer, const Arrival& arrival);
  void OnHello(Peer& peer, const proto::Hello& theirs);
  void Ban(PeerId id, absl::Status why);
  void BanMalformed(PeerId id, const absl::Status& why);
  void OnDeadline(PeerId id);
  void Retry(PeerId id);
  // Calls Retry after a pause that doubles up to `max`, with jitter.
  void RetryLater(Peer& peer, absl::Duration max);

  runtime::Loop* loop_;
  Identity identity_;
  Limits limits_;
  Handler* handler_;
  std::unique_ptr<Transport> transport_;
  Counters counters_;
  PeerId next_peer_ = 1;
  std::uint32_t accepted_ = 0;
  std::uint32_t counted_ = 0;  // connections of guests and readers
  // Limited, so that a flood of invalid connections cannot fill the log.
  runtime::LogLimiter log_;
  runtime::Timer stall_timer_;
  absl::Time looked_for_stalls_;
  GuestMeter meter_;
  AcceptMeter accept_meter_;
  // In the order in which they are served: by what each has been charged, then as they were held.
  std::set<std::tuple<absl::Duration, std::uint64_t, PeerId>> held_guests_;
  std::uint64_t guests_held_ = 0;  // ever
  // So many bytes may be sent to guests before what waits for each is added up again.
  std::uint64_t guests_room_bytes_ = 0;
  runtime::Timer guests_timer_;
  std::map<PeerId, Peer> peers_;  // ordered, so that every run says goodbye in the same order
  absl::flat_hash_map<ConnId, PeerId> by_conn_;
  const std::shared_ptr<PostedReceives> posted_;
  std::vector<PeerId> with_envelope_;  // peers with a non-empty envelope
  absl::Time in_envelope_since_;       // since when the first of these messages has waited
  // The peer whose message of kAnswersWaitBytes or more is being handed over.
  std::optional<PeerId> block_from_;
  std::vector<Notice> notices_;
  bool notices_posted_ = false;
  runtime::Lifetime lifetime_;
};

// Makes a factory of SessionVans over the transports that `new_transport` makes. `any_address` and
// `viable` are as in Factory; without `viable` it can always be used.
std::unique_ptr<Factory> NewSessionFactory(
    std::function<std::unique_ptr<Transport>(runtime::Loop*, const Limits&)> new_transport,
    std::function<std::string(absl::string_view host)> any_address,
    std::function<absl::Status()> viable = absl::OkStatus);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_SESSION_VAN_H_
