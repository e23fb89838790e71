// One connection over rdma, from the first attempt to its end.
//
//   dialled:   kResolving ──resolved──▶ kConnecting ──established──▶ kOpen
//   accepted:  kConnecting ──established, or a packet──▶ kOpen
//
// Closed, it sends what is left and a packet that says so, and ends when that has arrived.
#ifndef LEEWAY_VAN_RDMA_RDMA_CONN_H_
#define LEEWAY_VAN_RDMA_RDMA_CONN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "van/done_list.h"
#include "van/rdma/rdma_port.h"
#include "van/rdma/rdma_receiver.h"
#include "van/rdma/rdma_sender.h"
#include "van/transport.h"

namespace leeway::van {

// What is left of a connection that has ended, until everything that had come on it has been
// polled: a device takes along completions of a queue pair that is destroyed, and the receives of
// these would never be posted again. Its sends fail when its queue pair has gone, since only from
// then on the device reads nothing any more.
struct RdmaRemains {
  std::unique_ptr<verbs::Connection> connection;
  std::unique_ptr<RdmaSender> sender;
  std::unique_ptr<RdmaReceiver> receiver;
  absl::Status why;
  void Bury();
};

// What the connections of one transport share.
struct RdmaShared {
  runtime::Loop* loop = nullptr;
  Limits limits;
  RdmaSizes sizes;
  TransportEvents* events = nullptr;
  DoneList owed;
  std::map<verbs::Device*, RdmaPort> ports;
  std::vector<ConnId> to_pump;   // have something to send or to report
  std::vector<ConnId> lost;      // will end once what came before has been handed over
  std::vector<ConnId> finished;  // to be removed
  std::vector<RdmaRemains> remains;
  bool unsettled = false;       // a sender holds memory without having asked for a completion
  std::uint32_t strangers = 0;  // accepted connections that have sent no good message yet
  // Has a connection pumped soon; any thread, as long as the transport lives.
  std::function<void(ConnId)> notify;
  // False once the transport is gone, which may happen within any event.
  runtime::Lifetime lifetime;
};

class RdmaConn {
 public:
  RdmaConn(RdmaShared* shared, ConnId conn, bool was_dialled, std::string conn_address,
           std::unique_ptr<verbs::Connection> connection);
  ~RdmaConn() { Shut(); }

  const ConnId id;
  const bool dialled;
  const std::string address;

  const verbs::Connection* connection() const { return connection_.get(); }
  bool closed() const { return closed_; }  // no more events
  bool finished() const { return stage_ == Stage::kShut; }
  // Whether all that was sent has arrived, or never will.
  bool delivered() const { return finished() || (sender_ != nullptr && sender_->delivered()); }

  // What the device tells. Those that may call events say so.
  void OnResolved();
  absl::Status Accept(std::span<const std::byte> greeting);
  void OnEstablished(std::span<const std::byte> greeting);  // may call events
  void OnPacket(std::span<const std::byte> packet);         // may call events
  void OnSent(const verbs::Completion& completion);
  void Lose(absl::Status why);
  void LoseHandshake(absl::Status why) {
    no_handshake_ = true;
    Lose(std::move(why));
  }
  // Of one that is lost, once everything that had come has been handed over; calls events.
  void End();

  void Send(const Prefix& prefix, Message message, SendDone done);
  void PostReceive(std::uint64_t token, std::span<std::byte> into);
  void EndReceive(std::uint64_t token);
  // Transport::Admit.
  void Admit();
  // Sends, reports and answers what waits, as far as there is room. Calls no events.
  void Pump();
  // Asks for the completion that gives memory back.
  void Settle();
  // From here on no events; it is finished once what was sent has arrived.
  void Close();
  // Ends it at once; what still waits fails.
  void Shut();
  // Transport::ReceivedOfUnfinished.
  std::optional<std::uint64_t> received_of_unfinished() const {
    return receiver_ == nullptr ? std::nullopt : receiver_->received_of_unfinished();
  }

 private:
  enum class Stage { kResolving, kConnecting, kOpen, kShut };

  RdmaReceiver::Limits MemberLimits() const;
  absl::Status Prepare();
  void Open(const RdmaGreeting& theirs);
  absl::Status TryPump();
  void PumpLater();
  void NoLongerStranger();
  RdmaPort& port();

  RdmaShared* const shared_;
  std::unique_ptr<verbs::Connection> connection_;
  Stage stage_;
  std::optional<RdmaMemory> slots_;  // until there is a sender
  std::unique_ptr<RdmaReceiver> receiver_;
  std::unique_ptr<RdmaSender> sender_;
  absl::Status lost_;
  bool no_handshake_ = false;
  bool closed_ = false;
  bool stranger_ = false;
  bool has_port_ = false;
  bool in_pump_list_ = false;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_CONN_H_
