// RdmaTransport is the transport over rdma. All its work is done on the loop's thread.
//
// Addresses are those of tcp, "tcp://HOST:PORT"; rdma has its own space of ports, so a tcp listener
// may have the same port (docs/rdma.md).
#ifndef LEEWAY_VAN_RDMA_RDMA_TRANSPORT_H_
#define LEEWAY_VAN_RDMA_RDMA_TRANSPORT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "van/rdma/rdma_busy_poll.h"
#include "van/rdma/rdma_conn.h"
#include "van/rdma/verbs/verbs.h"
#include "van/transport.h"

namespace leeway::van {

class RdmaTransport final : public Transport {
 public:
  RdmaTransport(runtime::Loop* loop, const Limits& limits, const RdmaSizes& sizes,
                std::unique_ptr<verbs::Verbs> verbs);
  ~RdmaTransport() override;

  void Start(TransportEvents* events) override;
  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<ConnId> Dial(absl::string_view address) override;
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override;
  void Close(ConnId conn) override;
  std::string AddressOf(ConnId conn) const override;
  std::uint64_t posted_bytes_min(ConnId /*conn*/) const override {
    return shared_.sizes.posted_bytes_min;
  }
  void PostReceive(ConnId conn, std::uint64_t token, std::span<std::byte> into) override;
  void EndReceive(ConnId conn, std::uint64_t token) override;
  void Admit(ConnId conn) override;
  std::optional<std::uint64_t> ReceivedOfUnfinished(ConnId conn) const override;
  bool lossy() const override { return false; }

 private:
  class Device final : public runtime::Source {
   public:
    explicit Device(RdmaTransport* transport) : transport_(transport) {}
    int fd() const override { return transport_->verbs_->fd(); }
    bool Poll() override { return transport_->Poll(); }
    std::shared_ptr<runtime::BusyPollSource> busy_poll() override { return transport_->busy_poll_; }

   private:
    RdmaTransport* const transport_;
  };

  bool Poll();
  bool PollOnce();
  // Polls the completion queues. `*drained`: no completion was left, so what has ended may be
  // destroyed.
  bool PollDevices(bool* drained);
  void OnCompletion(RdmaPort& port, const verbs::Completion& completion);
  bool PollEvents();
  void OnEvent(verbs::Event event);
  void OnRequest(verbs::Event event);
  void OnDeviceLost(const verbs::Device* device, const absl::Status& why);
  bool EndLost(std::vector<ConnId> lost);
  // Destroys the parts of the `count` connections that ended first.
  void BuryFirst(std::size_t count);
  bool PumpAll();
  void PumpSoon();
  void RequestCompletionsLater();
  void RemoveFinished();
  RdmaConn* Find(ConnId conn) const;
  RdmaConn* Find(const verbs::Connection* connection) const;
  bool AllDelivered() const;
  void FlushBriefly();

  RdmaShared shared_;
  // The connections are on it, so they and their memory are destroyed first.
  std::unique_ptr<verbs::Verbs> verbs_;
  const std::shared_ptr<RdmaBusyPoll> busy_poll_ = std::make_shared<RdmaBusyPoll>();
  Device source_{this};
  std::map<ConnId, std::unique_ptr<RdmaConn>> conns_;  // finished ones are removed between polls
  absl::flat_hash_map<const verbs::Connection*, ConnId> by_connection_;
  std::vector<std::pair<ConnId, absl::Status>> failed_dials_;
  ConnId next_conn_ = 1;
  int polling_ = 0;
  unsigned polls_ = 0;
  bool pump_planned_ = false;
  bool completions_planned_ = false;
  std::optional<std::uint64_t> freed_listener_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_TRANSPORT_H_
