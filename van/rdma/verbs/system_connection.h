// SystemConnection is a queue pair of a device and the rdma_cm id that connects it. Lives on the
// loop of its Verbs.
//
// The queue pair is created and taken through its states here, not by librdmacm: it belongs to the
// context of this loop's device, and has its own number of retries and timeouts.
#ifndef LEEWAY_VAN_RDMA_VERBS_SYSTEM_CONNECTION_H_
#define LEEWAY_VAN_RDMA_VERBS_SYSTEM_CONNECTION_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "van/rdma/verbs/library.h"
#include "van/rdma/verbs/system_device.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

class SystemVerbs;

// A copy of an rdma_cm event, so that the event can be acknowledged before it is handled: an id
// cannot be destroyed before all its events are acknowledged.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_TIMEWAIT_EXIT;
  rdma_cm_id* id = nullptr;
  int status = 0;  // -errno, or the other side's reason for a rejection
  std::vector<std::byte> private_data;
};

class SystemConnection final : public Connection {
 public:
  // `owner` outlives the connection.
  static absl::StatusOr<std::unique_ptr<SystemConnection>> Dial(SystemVerbs* owner,
                                                                rdma_event_channel* channel,
                                                                const sockaddr_storage& address);
  // For a connect request. Takes over `id`.
  static absl::StatusOr<std::unique_ptr<SystemConnection>> Requested(
      SystemVerbs* owner, rdma_cm_id* id, std::span<const std::byte> private_data);
  ~SystemConnection() override;

  Device* device() const override { return device_; }
  std::uint32_t queue_pair() const override { return queue_pair_->qp_num; }
  std::string peer_address() const override { return peer_; }
  absl::Status Connect(std::span<const std::byte> private_data) override;
  absl::Status Accept(std::span<const std::byte> private_data) override;
  absl::Status Post(std::span<const SendRequest> requests) override;
  void Disconnect() override;

  // Returns the event for the Verbs to report, if any.
  std::optional<Event> OnEvent(const CmEvent& event);

 private:
  enum class Stage {
    kResolving,   // dialled: resolves the address, then the route
    kReady,       // has its queue pair; nothing was sent to the other side
    kConnecting,  // this side has agreed, the other has not
    kEstablished,
    kEnded,  // failed or disconnected, which has been reported
  };

  SystemConnection(SystemVerbs* owner, Owned<rdma_cm_id> id, std::string peer, bool dialled);
  std::optional<Event> OnAddressResolved();
  std::optional<Event> OnRouteResolved();
  std::optional<Event> OnResponse(const CmEvent& event);
  std::optional<Event> OnDisconnected();
  std::optional<Event> Fail(absl::Status why);
  Event EventOf(EventKind kind);

  // Creates it in state INIT; MakeReadyToSend takes it to RTR and RTS when the other side is known.
  absl::Status MakeQueuePair();
  // UNAVAILABLE: rdma_cm has chosen another path than options require.
  absl::Status CheckPath() const;
  absl::Status MakeReadyToSend();
  absl::Status Modify(ibv_qp_state state);
  void MakeFail();
  rdma_conn_param Parameters(std::span<const std::byte> private_data);
  // Sets the smaller MTU of both sides, when the other side's is known.
  void AgreeOnMtu(std::span<const std::byte> private_data);
  // UNAVAILABLE: `step` failed, by errno.
  absl::Status Cannot(const char* step, int error) const;

  SystemVerbs* const owner_;
  const Library& library_;
  Owned<rdma_cm_id> id_;
  const std::string peer_;
  const bool dialled_;
  Stage stage_ = Stage::kResolving;
  SystemDevice* device_ = nullptr;
  // Sent with the request or the answer: the user's bytes, then the wanted MTU.
  std::array<std::byte, kPrivateBytesMax + 4> private_data_;
  std::uint32_t mtu_bytes_;  // upper limit; 0: that of the path
  ibv_qp* queue_pair_ = nullptr;
};

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_SYSTEM_CONNECTION_H_
