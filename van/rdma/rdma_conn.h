// RdmaConn is one connection over rdma, from the first attempt to its end. Lives on the transport's
// loop.
//
//   dialled:   kResolving ──resolved──▶ kConnecting ──established──▶ kOpen
//   accepted:  kConnecting ──established, or a packet──▶ kOpen
//
// After Close it sends what is left and a kEnd packet, and ends when that has arrived.
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
#include "van/rdma/rdma_port.h"
#include "van/rdma/rdma_receiver.h"
#include "van/rdma/rdma_sender.h"
#include "van/transport.h"

namespace leeway::van {

// The parts of a connection that has ended, kept until all of its completions have been polled. A
// device drops the completions of a queue pair that is destroyed, and the receives of these would
// never be posted again. Its sends are failed only when the queue pair is destroyed, because only
// then does the device stop reading their memory.
struct RdmaRemains {
  std::unique_ptr<verbs::Connection> connection;
  std::unique_ptr<RdmaSender> sender;
  std::unique_ptr<RdmaReceiver> receiver;
  absl::Status why;
  void Bury();
};

// The state that the connections of one transport share.
struct RdmaShared {
  runtime::Loop* loop = nullptr;
  Limits limits;
  RdmaSizes sizes;
  TransportEvents* events = nullptr;
  DoneList owed;
  std::map<verbs::Device*, RdmaPort> ports;
  std::vector<ConnId> to_pump;   // connections with something to send or to report
  std::vector<ConnId> lost;      // end when what came before has been delivered
  std::vector<ConnId> finished;  // connections to be removed
  std::vector<RdmaRemains> remains;
  bool unsignalled = false;     // a sender holds memory, and no completion was requested
  std::uint32_t strangers = 0;  // accepted connections without a valid message so far
  // Has Pump called for a connection soon. Any thread, as long as the transport exists.
  std::function<void(ConnId)> notify;
  // Ends when the transport is destroyed, which may happen within any event.
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
  bool closed() const { return closed_; }  // no more events follow
  bool finished() const { return stage_ == Stage::kShut; }
  // True if everything that was sent has arrived, or never will.
  bool delivered() const { return finished() || (sender_ != nullptr && sender_->delivered()); }

  // Events of the device.
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
  // For a lost connection, when everything that came before has been delivered; calls events.
  void End();

  void Send(const Prefix& prefix, Message message, SendDone done);
  void PostReceive(std::uint64_t token, std::span<std::byte> into);
  void EndReceive(std::uint64_t token);
  // Transport::Admit.
  void Admit();
  // Sends, reports and answers what is due, as far as there is room. Calls no events.
  void Pump();
  // Requests the completion that gives memory back.
  void RequestCompletion();
  // No events follow. The connection is finished when what was sent has arrived.
  void Close();
  // Ends the connection at once; queued sends fail.
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
  std::optional<RdmaMemory> slots_;  // until sender_ is made
  std::unique_ptr<RdmaReceiver> receiver_;
  std::unique_ptr<RdmaSender> sender_;
  absl::Status lost_;
  bool no_handshake_ = false;
  bool closed_ = false;
  bool stranger_ = false;
  bool in_pump_list_ = false;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_CONN_H_
