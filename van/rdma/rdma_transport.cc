#include "van/rdma/rdma_transport.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "runtime/memory/shared_memory.h"
#include "van/address/tcp_address.h"
#include "van/rdma/rdma_conn.h"
#include "van/session/session_van.h"

namespace leeway::van {
namespace {

// The longest time for which a close waits for sends to arrive.
constexpr absl::Duration kLinger = absl::Seconds(1);
// The longest time for which memory is held after its send could have ended.
constexpr absl::Duration kCompletionDelay = absl::Milliseconds(1);
constexpr std::size_t kCompletionsPerTurn = 32;
constexpr int kEventsPerTurn = 16;
// Events of connections are rare, and looking for them is a system call. After a thread has
// blocked, the descriptor may have been readable for one; otherwise one poll in kPollsPerLook
// looks.
constexpr unsigned kPollsPerLook = 32;
// The most accepted connections that have not sent a valid message: each has locked memory.
constexpr std::uint32_t kStrangersMax = 64;

class RdmaTransport final : public Transport, private runtime::Source {
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
  int fd() const override { return verbs_->fd(); }
  bool Poll() override;
  std::shared_ptr<runtime::BusyPollSource> busy_poll() override { return busy_poll_; }

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
  std::map<ConnId, std::unique_ptr<RdmaConn>> conns_;  // finished ones are removed between polls
  std::vector<std::pair<ConnId, absl::Status>> failed_dials_;
  ConnId next_conn_ = 1;
  int polling_ = 0;
  unsigned polls_ = 0;
  bool closing_ = false;
  bool pump_planned_ = false;
  bool completions_planned_ = false;
  std::optional<std::uint64_t> freed_listener_;
};

RdmaTransport::RdmaTransport(runtime::Loop* loop, const Limits& limits, const RdmaSizes& sizes,
                             std::unique_ptr<verbs::Verbs> verbs)
    : verbs_(std::move(verbs)) {
  shared_.loop = loop;
  shared_.limits = limits;
  shared_.sizes = sizes;
  shared_.notify = [this, loop, alive = shared_.lifetime.watch()](ConnId id) {
    loop->Post([this, alive, id] {
      if (!alive) return;
      if (RdmaConn* conn = Find(id); conn != nullptr) conn->Pump();
    });
  };
}

RdmaTransport::~RdmaTransport() {
  closing_ = true;
  if (freed_listener_.has_value()) runtime::SharedMemory::Forget(*freed_listener_);
  if (shared_.events != nullptr) shared_.loop->RemoveSource(this);
  for (const auto& [id, conn] : conns_) conn->Close();
  FlushBriefly();
  shared_.lifetime.End();
  busy_poll_->SetDevices({});
  conns_.clear();
  BuryFirst(shared_.remains.size());
  shared_.ports.clear();
  shared_.owed.RunAll();
}

void RdmaTransport::Start(TransportEvents* events) {
  shared_.events = events;
  shared_.loop->AddSource(this);
  // The device has to release freed memory even if nothing is sent any more.
  freed_listener_ = runtime::SharedMemory::WhenFreed(
      [this, loop = shared_.loop, alive = shared_.lifetime.watch()] {
        loop->Post([this, alive] {
          if (!alive) return;
          for (auto& [device, port] : shared_.ports) port.PurgeRegions();
        });
      });
}

// ---- addresses ----

absl::StatusOr<std::string> RdmaTransport::Listen(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToBind(parsed.host));
  LEEWAY_ASSIGN_OR_RETURN(const sockaddr_storage socket_address,
                          SocketAddressOf(host, parsed.port));
  const absl::StatusOr<std::uint16_t> port = verbs_->Listen(socket_address);
  if (!port.ok()) {
    return absl::Status(
        port.status().code(),
        absl::StrCat("cannot listen on ", address, " over rdma: ", port.status().message()));
  }
  return absl::StrCat("tcp://", host.advertised, ":", *port);
}

absl::StatusOr<ConnId> RdmaTransport::Dial(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  LEEWAY_RETURN_IF_ERROR(CheckDialable(address, parsed.host, parsed.port));
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToConnect(parsed.host));
  LEEWAY_ASSIGN_OR_RETURN(const sockaddr_storage socket_address,
                          SocketAddressOf(host, parsed.port));
  absl::StatusOr<std::unique_ptr<verbs::Connection>> connection = verbs_->Dial(socket_address);
  const ConnId id = next_conn_++;
  if (!connection.ok()) {
    failed_dials_.emplace_back(id, connection.status());
    shared_.notify(id);  // wakes the loop
    return id;
  }
  conns_[id] = std::make_unique<RdmaConn>(&shared_, id, /*was_dialled=*/true, std::string(address),
                                          *std::move(connection));
  return id;
}

std::optional<std::uint64_t> RdmaTransport::ReceivedOfUnfinished(ConnId conn) const {
  const RdmaConn* found = Find(conn);
  return found == nullptr ? std::nullopt : found->received_of_unfinished();
}

std::string RdmaTransport::AddressOf(ConnId conn) const {
  const RdmaConn* found = Find(conn);
  return found == nullptr ? std::string() : found->address;
}

// ---- connections ----

RdmaConn* RdmaTransport::Find(ConnId conn) const {
  const auto found = conns_.find(conn);
  return found == conns_.end() ? nullptr : found->second.get();
}

RdmaConn* RdmaTransport::Find(const verbs::Connection* connection) const {
  for (const auto& [id, conn] : conns_) {
    if (conn->connection() == connection) return conn.get();
  }
  return nullptr;
}

void RdmaTransport::RemoveFinished() {
  for (const ConnId conn : std::exchange(shared_.finished, {})) conns_.erase(conn);
}

void RdmaTransport::Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) {
  RdmaConn* const found = Find(conn);
  if (found == nullptr) {
    return shared_.owed.Add(std::move(done), absl::UnavailableError("the connection broke"));
  }
  found->Send(prefix, std::move(message), std::move(done));
  PumpSoon();
}

void RdmaTransport::PumpSoon() {
  if (shared_.to_pump.empty() || std::exchange(pump_planned_, true)) return;
  shared_.loop->BeforeSleep([this, alive = shared_.lifetime.watch()] {
    if (!alive) return;
    pump_planned_ = false;
    PumpAll();
  });
}

void RdmaTransport::PostReceive(ConnId conn, std::uint64_t token, std::span<std::byte> into) {
  if (RdmaConn* const found = Find(conn); found != nullptr) found->PostReceive(token, into);
}

void RdmaTransport::EndReceive(ConnId conn, std::uint64_t token) {
  RdmaConn* const found = Find(conn);
  if (found == nullptr) return;
  found->EndReceive(token);
  PumpSoon();
}

void RdmaTransport::Admit(ConnId conn) {
  if (RdmaConn* const found = Find(conn); found != nullptr) found->Admit();
}

bool RdmaTransport::PumpAll() {
  const bool any = !shared_.to_pump.empty();
  for (const ConnId conn : std::exchange(shared_.to_pump, {})) {
    if (RdmaConn* found = Find(conn); found != nullptr) found->Pump();
  }
  if (std::exchange(shared_.unsignalled, false)) RequestCompletionsLater();
  return any;
}

void RdmaTransport::RequestCompletionsLater() {
  if (std::exchange(completions_planned_, true)) return;
  shared_.loop->After(kCompletionDelay, [this, alive = shared_.lifetime.watch()] {
    if (!alive) return;
    completions_planned_ = false;
    for (const auto& [id, conn] : conns_) conn->RequestCompletion();
  });
}

void RdmaTransport::Close(ConnId conn) {
  std::erase_if(failed_dials_, [conn](const auto& failed) { return failed.first == conn; });
  RdmaConn* const found = Find(conn);
  if (found == nullptr || found->closed()) return;
  found->Close();
  if (found->finished()) return;
  shared_.loop->After(kLinger, [this, conn, alive = shared_.lifetime.watch()] {
    if (!alive) return;
    if (RdmaConn* late = Find(conn); late != nullptr) late->Shut();
  });
}

bool RdmaTransport::AllDelivered() const {
  return std::all_of(conns_.begin(), conns_.end(),
                     [](const auto& conn) { return conn.second->delivered(); });
}

// Waits for peers that are slow to take what was sent to them.
void RdmaTransport::FlushBriefly() {
  const absl::Time until = shared_.loop->Now() + kLinger;
  // Virtual time does not pass here, so the number of waits is limited too.
  int waits_left = static_cast<int>(kLinger / absl::Milliseconds(1));
  while (!AllDelivered() && shared_.loop->Now() < until && waits_left-- > 0) {
    bool drained = false;
    if (PollDevices(&drained) || PumpAll() || PollEvents() ||
        EndLost(std::exchange(shared_.lost, {}))) {
      ++waits_left;
      continue;
    }
    pollfd any{verbs_->fd(), POLLIN, 0};
    ::poll(&any, 1, /*timeout_ms=*/1);
  }
}

// ---- events ----

bool RdmaTransport::Poll() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  if (PollOnce() || !alive) return true;
  return busy_poll_->ArmForSleepers() && PollOnce();
}

bool RdmaTransport::PollOnce() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  if (polling_ == 0) RemoveFinished();
  ++polling_;
  bool any = PumpAll();
  std::vector<ConnId> lost = std::exchange(shared_.lost, {});
  const std::size_t remains = shared_.remains.size();
  bool drained = true;
  if (PollDevices(&drained)) any = true;
  if (!alive) return true;
  if (drained) {
    BuryFirst(remains);
    if (EndLost(std::move(lost))) any = true;
  } else {
    shared_.lost.insert(shared_.lost.end(), lost.begin(), lost.end());
  }
  if (!alive) return true;
  if (busy_poll_->TakeSlept() || ++polls_ % kPollsPerLook == 0) {
    if (PollEvents()) any = true;
    if (!alive) return true;
  }
  for (const auto& [conn, why] : std::exchange(failed_dials_, {})) {
    any = true;
    shared_.events->OnClosed(conn, why);
    if (!alive) return true;
  }
  if (PumpAll()) any = true;
  if (!shared_.lost.empty() || !shared_.remains.empty()) any = true;
  --polling_;
  if (shared_.owed.empty()) return any;
  shared_.owed.RunAll();
  return true;
}

bool RdmaTransport::PollDevices(bool* drained) {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  *drained = true;
  bool any = false;
  for (verbs::Device* device : verbs_->devices()) {
    const auto port = shared_.ports.find(device);
    if (port == shared_.ports.end()) continue;
    std::array<verbs::Completion, kCompletionsPerTurn> completions;
    const std::size_t count = device->Poll(completions);
    if (count == completions.size()) *drained = false;
    for (std::size_t i = 0; i < count; ++i) {
      any = true;
      OnCompletion(port->second, completions[i]);
      if (!alive) return true;
    }
  }
  return any;
}

void RdmaTransport::OnCompletion(RdmaPort& port, const verbs::Completion& completion) {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  RdmaConn* const conn = port.Find(completion.queue_pair);
  if ((completion.id & RdmaPort::kReceive) == 0) {
    if (conn != nullptr) conn->OnSent(completion);
    return;
  }
  if (conn != nullptr && completion.outcome == verbs::Outcome::kOk) {
    conn->OnPacket(port.Received(completion));
    if (!alive) return;
  } else if (conn != nullptr) {
    conn->Lose(verbs::StatusOf(completion));
  }
  if (const absl::Status status = port.Repost(completion.id); !status.ok()) {
    runtime::LogWarning("rdma: a receive is lost: ", std::string(status.message()));
  }
}

bool RdmaTransport::PollEvents() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  bool any = false;
  verbs::Event event;
  for (int i = 0; i < kEventsPerTurn && verbs_->NextEvent(&event); ++i) {
    any = true;
    OnEvent(std::move(event));
    if (!alive) return true;
    event = verbs::Event();
  }
  if (any) busy_poll_->SetDevices(verbs_->devices());
  return any;
}

void RdmaTransport::OnEvent(verbs::Event event) {
  if (event.kind == verbs::EventKind::kRequest) return OnRequest(std::move(event));
  if (event.kind == verbs::EventKind::kDeviceLost) return OnDeviceLost(event.device, event.why);
  RdmaConn* const conn = Find(event.connection);
  if (conn == nullptr || conn->finished()) return;
  switch (event.kind) {
    case verbs::EventKind::kResolved:
      return conn->OnResolved();
    case verbs::EventKind::kEstablished:
      return conn->OnEstablished(event.private_data);
    case verbs::EventKind::kFailed:
      return conn->Lose(event.why);
    case verbs::EventKind::kDisconnected:
      return conn->Lose(absl::UnavailableError("the connection broke"));
    case verbs::EventKind::kRequest:
    case verbs::EventKind::kDeviceLost:
      return;
  }
}

void RdmaTransport::OnRequest(verbs::Event event) {
  const std::string peer = absl::StrCat("rdma://", event.accepted->peer_address());
  if (closing_) return;
  if (shared_.strangers >= kStrangersMax) {
    runtime::LogWarning("refusing a connection from ", peer, ": ", kStrangersMax,
                        " others have connected and have not sent a message yet");
    return;
  }
  const ConnId id = next_conn_++;
  auto conn = std::make_unique<RdmaConn>(&shared_, id, /*was_dialled=*/false, peer,
                                         std::move(event.accepted));
  const absl::Status accepted = conn->Accept(event.private_data);
  if (!accepted.ok()) {
    conn.reset();
    std::erase(shared_.finished, id);
    const bool foreign = absl::IsFailedPrecondition(accepted) || absl::IsInvalidArgument(accepted);
    if (foreign) return shared_.events->OnHandshakeFailed(peer, accepted);
    runtime::LogWarning("refusing a connection from ", peer, ": ", std::string(accepted.message()));
    return;
  }
  conns_[id] = std::move(conn);
  shared_.events->OnAccepted(id);
}

void RdmaTransport::OnDeviceLost(const verbs::Device* device, const absl::Status& why) {
  runtime::LogWarning("rdma: ", std::string(why.message()));
  for (const auto& [id, conn] : conns_) {
    if (!conn->finished() && conn->connection()->device() == device) conn->Lose(why);
  }
}

void RdmaTransport::BuryFirst(std::size_t count) {
  std::vector<RdmaRemains>& remains = shared_.remains;
  const auto end = remains.begin() + static_cast<std::ptrdiff_t>(std::min(count, remains.size()));
  for (auto it = remains.begin(); it != end; ++it) it->Bury();
  remains.erase(remains.begin(), end);
}

bool RdmaTransport::EndLost(std::vector<ConnId> lost) {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  for (const ConnId id : lost) {
    if (RdmaConn* conn = Find(id); conn != nullptr && !conn->finished()) conn->End();
    if (!alive) return true;
  }
  return !lost.empty();
}

}  // namespace

std::unique_ptr<Transport> NewRdmaTransport(verbs::Provider* provider, runtime::Loop* loop,
                                            const Limits& limits, const RdmaSizes& sizes) {
  absl::StatusOr<std::unique_ptr<verbs::Verbs>> verbs = provider->Open({});
  if (!verbs.ok()) verbs = verbs::NoVerbs(verbs.status());
  return std::make_unique<RdmaTransport>(loop, limits, sizes, *std::move(verbs));
}

std::unique_ptr<Factory> NewRdmaFactory(std::shared_ptr<verbs::Provider> provider,
                                        const RdmaSizes& sizes) {
  return NewSessionFactory(
      [provider, sizes](runtime::Loop* loop, const Limits& limits) {
        return NewRdmaTransport(provider.get(), loop, limits, sizes);
      },
      AnyTcpAddress, [provider] { return provider->Viable(); });
}

}  // namespace leeway::van
