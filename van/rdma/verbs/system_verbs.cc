#include "van/rdma/verbs/system_verbs.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/status_macros.h"
#include "runtime/unique_fd.h"
#include "van/rdma/verbs/library.h"
#include "van/rdma/verbs/system_device.h"
#include "van/tcp_address.h"

namespace leeway::van::verbs {
namespace {

constexpr int kResolveMs = 2000;
constexpr int kBacklog = 256;
constexpr std::uint8_t kRetries = 7;
constexpr std::uint64_t kConnectionsTag = 0;
constexpr std::uint64_t kDevicesTag = 16;  // + 2 · its number
// How long a peer without a receive is left alone: 0.64 ms (the table of IBTA 9.7.5.2.8).
constexpr std::uint8_t kReceiverNotReadyTimer = 12;
// Of the reasons for which the other side refuses: nobody listens there.
constexpr int kNoListener = 8, kRefusedByListener = 28;

std::string NameOf(const sockaddr* address) {
  sockaddr_storage copy{};
  const bool v6 = address->sa_family == AF_INET6;
  std::memcpy(&copy, address, v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  const std::string name = TcpName(copy);
  return std::string(absl::StripPrefix(name, "tcp://"));
}

// The exponent of rdma_cm's timeout of one attempt, of which there are kRetries + 1.
std::uint8_t TimeoutExponent(std::uint32_t timeout_ms) {
  const double attempt_us = 1000.0 * timeout_ms / (kRetries + 1);
  const double exponent = std::log2(std::max(attempt_us, 4.096) / 4.096);
  return static_cast<std::uint8_t>(std::min(31.0, std::round(exponent)));
}

class SystemVerbs;

class SystemConnection final : public Connection {
 public:
  SystemConnection(const Library* library, rdma_cm_id* id, bool dialled)
      : library_(library), id_(id), dialled_(dialled) {
    id_->context = this;
  }
  ~SystemConnection() override {
    if (id_->qp != nullptr) library_->destroy_qp(id_);
    library_->destroy_id(id_);
  }

  Device* device() const override { return device_; }
  std::uint32_t queue_pair() const override { return id_->qp->qp_num; }
  std::string peer_address() const override { return NameOf(rdma_get_peer_addr(id_)); }
  absl::Status Connect(std::span<const std::byte> private_data) override;
  absl::Status Accept(std::span<const std::byte> private_data) override;
  absl::Status Post(std::span<const SendRequest> requests) override;
  void Disconnect() override { library_->disconnect(id_); }

  absl::Status CreateQueuePair(SystemDevice* device) {
    device_ = device;
    return device->CreateQueuePair(id_);
  }
  bool has_queue_pair() const { return id_->qp != nullptr; }
  bool dialled() const { return dialled_; }
  rdma_cm_id* id() const { return id_; }

 private:
  absl::Status Cannot(absl::string_view what) const {
    return absl::UnavailableError(
        absl::StrCat("cannot ", what, " ", peer_address(), " over rdma: ", std::strerror(errno)));
  }
  static rdma_conn_param Parameters(std::span<const std::byte> private_data);

  const Library* const library_;
  rdma_cm_id* const id_;
  const bool dialled_;
  SystemDevice* device_ = nullptr;
};

rdma_conn_param SystemConnection::Parameters(std::span<const std::byte> private_data) {
  rdma_conn_param parameters{};
  parameters.private_data = private_data.data();
  parameters.private_data_len = static_cast<std::uint8_t>(private_data.size());
  parameters.responder_resources = 1;
  parameters.initiator_depth = 1;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kRetries;  // without end
  return parameters;
}

absl::Status SystemConnection::Connect(std::span<const std::byte> private_data) {
  rdma_conn_param parameters = Parameters(private_data);
  return library_->connect(id_, &parameters) == 0 ? absl::OkStatus() : Cannot("connect to");
}

absl::Status SystemConnection::Accept(std::span<const std::byte> private_data) {
  rdma_conn_param parameters = Parameters(private_data);
  if (library_->accept(id_, &parameters) != 0) return Cannot("accept");
  return absl::OkStatus();
}

absl::Status SystemConnection::Post(std::span<const SendRequest> requests) {
  constexpr std::size_t kAtOnce = 16;
  std::array<ibv_send_wr, kAtOnce> chain;
  std::array<std::array<ibv_sge, kSegmentsMax>, kAtOnce> places;
  while (!requests.empty()) {
    const std::size_t count = std::min(kAtOnce, requests.size());
    for (std::size_t i = 0; i < count; ++i) {
      const SendRequest& from = requests[i];
      ibv_send_wr& to = chain[i];
      to = {};
      std::uint32_t bytes = 0;
      for (std::size_t j = 0; j < from.segments.size(); ++j) {
        places[i][j].addr = reinterpret_cast<std::uint64_t>(from.segments[j].data);
        places[i][j].length = from.segments[j].bytes;
        places[i][j].lkey = from.segments[j].local_key;
        bytes += from.segments[j].bytes;
      }
      to.wr_id = from.id;
      to.next = i + 1 < count ? &chain[i + 1] : nullptr;
      to.sg_list = places[i].data();
      to.num_sge = static_cast<int>(from.segments.size());
      to.opcode = from.opcode == Opcode::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
      to.send_flags = from.signalled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u;
      if (bytes > 0 && bytes <= device_->inline_bytes()) to.send_flags |= IBV_SEND_INLINE;
      to.wr.rdma.remote_addr = from.remote_address;
      to.wr.rdma.rkey = from.remote_key;
    }
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(id_->qp, chain.data(), &bad);
    if (error != 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot send to ", peer_address(), " over rdma: ", std::strerror(error)));
    }
    requests = requests.subspan(count);
  }
  return absl::OkStatus();
}

class SystemVerbs final : public Verbs {
 public:
  SystemVerbs(const Library* library, const Options& options)
      : library_(library), options_(options), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
  ~SystemVerbs() override;
  absl::Status Start();

  int fd() const override { return epoll_.get(); }
  absl::StatusOr<std::uint16_t> Listen(const sockaddr_storage& address) override;
  absl::StatusOr<std::unique_ptr<Connection>> Dial(const sockaddr_storage& address) override;
  bool NextEvent(Event* event) override;
  std::span<Device* const> devices() const override { return devices_; }

 private:
  void Look();
  bool Translate(const rdma_cm_event& from, Event* event);
  bool OnRequest(const rdma_cm_event& from, Event* event);
  bool OnRouteResolved(SystemConnection* connection, Event* event);
  bool Fail(SystemConnection* connection, absl::Status why, Event* event);
  absl::Status Why(const rdma_cm_event& from, const SystemConnection& connection) const;
  absl::StatusOr<SystemDevice*> DeviceOf(rdma_cm_id* id);

  const Library* const library_;
  const Options options_;
  const runtime::UniqueFd epoll_;
  rdma_event_channel* channel_ = nullptr;
  std::vector<rdma_cm_id*> listeners_;
  std::vector<std::unique_ptr<SystemDevice>> owned_;
  std::vector<Device*> devices_;
  bool events_ready_ = false;
  std::vector<bool> device_ready_;  // something has befallen it
};

absl::Status SystemVerbs::Start() {
  channel_ = library_->create_event_channel();
  if (channel_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("rdma connections cannot be made (module rdma_ucm, /dev/infiniband/rdma_cm): ",
                     std::strerror(errno)));
  }
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kConnectionsTag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, channel_->fd, &event) != 0) {
    return absl::UnavailableError("out of file descriptors (ulimit -n)");
  }
  return absl::OkStatus();
}

SystemVerbs::~SystemVerbs() {
  for (rdma_cm_id* listener : listeners_) library_->destroy_id(listener);
  owned_.clear();
  if (channel_ != nullptr) library_->destroy_event_channel(channel_);
}

// ---- connections ----

absl::StatusOr<std::uint16_t> SystemVerbs::Listen(const sockaddr_storage& address) {
  rdma_cm_id* id = nullptr;
  if (library_->create_id(channel_, &id, nullptr, RDMA_PS_TCP) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no rdma connection can be made: ", std::strerror(errno)));
  }
  sockaddr_storage copy = address;
  auto* const generic = reinterpret_cast<sockaddr*>(&copy);
  if (library_->bind_addr(id, generic) != 0 || library_->listen(id, kBacklog) != 0) {
    const int error = errno;
    library_->destroy_id(id);
    if (error == EADDRINUSE) return absl::AlreadyExistsError("the port is in use");
    if (error == ENODEV || error == EADDRNOTAVAIL) {
      return absl::NotFoundError("no rdma device has that address");
    }
    return absl::UnavailableError(std::strerror(error));
  }
  listeners_.push_back(id);
  return ntohs(library_->get_src_port(id));
}

absl::StatusOr<std::unique_ptr<Connection>> SystemVerbs::Dial(const sockaddr_storage& address) {
  rdma_cm_id* id = nullptr;
  if (library_->create_id(channel_, &id, nullptr, RDMA_PS_TCP) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no rdma connection can be made: ", std::strerror(errno)));
  }
  auto connection = std::make_unique<SystemConnection>(library_, id, /*dialled=*/true);
  std::uint8_t exponent = TimeoutExponent(options_.timeout_ms);
  library_->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, sizeof(exponent));
  sockaddr_storage copy = address;
  auto* const generic = reinterpret_cast<sockaddr*>(&copy);
  if (library_->resolve_addr(id, nullptr, generic, kResolveMs) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no rdma device reaches ", NameOf(generic), ": ", std::strerror(errno)));
  }
  return connection;
}

absl::StatusOr<SystemDevice*> SystemVerbs::DeviceOf(rdma_cm_id* id) {
  for (const auto& device : owned_) {
    if (device->context() == id->verbs) return device.get();
  }
  LEEWAY_ASSIGN_OR_RETURN(
      std::unique_ptr<SystemDevice> device,
      SystemDevice::Open(library_, id, options_, epoll_.get(), kDevicesTag + 2 * owned_.size()));
  owned_.push_back(std::move(device));
  devices_.push_back(owned_.back().get());
  device_ready_.push_back(false);
  return owned_.back().get();
}

// ---- events ----

// Which descriptors have something, by one call to the system.
void SystemVerbs::Look() {
  std::array<epoll_event, 16> news;
  const int count = ::epoll_wait(epoll_.get(), news.data(), static_cast<int>(news.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = news[static_cast<std::size_t>(i)].data.u64;
    if (tag == kConnectionsTag) {
      events_ready_ = true;
    } else if ((tag - kDevicesTag) % 2 == 0) {
      owned_[(tag - kDevicesTag) / 2]->OnReadable();
    } else {
      device_ready_[(tag - kDevicesTag) / 2] = true;
    }
  }
}

bool SystemVerbs::NextEvent(Event* event) {
  *event = Event();
  if (!events_ready_) Look();
  while (events_ready_) {
    rdma_cm_event* from = nullptr;
    if (library_->get_cm_event(channel_, &from) != 0) {
      events_ready_ = false;
      break;
    }
    // Acknowledged before anybody acts on it: a connection cannot be destroyed before.
    const rdma_cm_event copy = *from;
    std::array<std::byte, 256> data{};
    rdma_cm_event local = copy;
    const bool has_data =
        copy.event == RDMA_CM_EVENT_CONNECT_REQUEST || copy.event == RDMA_CM_EVENT_ESTABLISHED;
    if (has_data && copy.param.conn.private_data != nullptr) {
      std::memcpy(data.data(), copy.param.conn.private_data, copy.param.conn.private_data_len);
      local.param.conn.private_data = data.data();
    }
    library_->ack_cm_event(from);
    if (Translate(local, event)) return true;
  }
  for (std::size_t i = 0; i < owned_.size(); ++i) {
    if (!device_ready_[i]) continue;
    device_ready_[i] = false;
    if (!owned_[i]->IsLost()) continue;
    event->kind = EventKind::kDeviceLost;
    event->device = owned_[i].get();
    event->why = absl::UnavailableError(
        absl::StrCat("rdma device ", owned_[i]->info().name, " reported a fatal error"));
    return true;
  }
  return false;
}

bool SystemVerbs::Translate(const rdma_cm_event& from, Event* event) {
  if (from.event == RDMA_CM_EVENT_CONNECT_REQUEST) return OnRequest(from, event);
  auto* const connection = static_cast<SystemConnection*>(from.id->context);
  if (connection == nullptr) return false;  // a listener
  event->connection = connection;
  switch (from.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (library_->resolve_route(from.id, kResolveMs) == 0) return false;
      return Fail(connection, absl::UnavailableError("no rdma route to it"), event);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return OnRouteResolved(connection, event);
    case RDMA_CM_EVENT_ESTABLISHED: {
      event->kind = EventKind::kEstablished;
      ibv_qp_attr timer{};
      timer.min_rnr_timer = kReceiverNotReadyTimer;
      library_->modify_qp(from.id->qp, &timer, IBV_QP_MIN_RNR_TIMER);
      const auto* const data = static_cast<const std::byte*>(from.param.conn.private_data);
      if (data != nullptr)
        event->private_data.assign(data, data + from.param.conn.private_data_len);
      return true;
    }
    case RDMA_CM_EVENT_DISCONNECTED:
      event->kind = EventKind::kDisconnected;
      return true;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      event->kind = EventKind::kDeviceLost;
      event->device = connection->device();
      event->why = absl::UnavailableError("an rdma device was removed");
      return event->device != nullptr || Fail(connection, event->why, event);
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      return Fail(connection, Why(from, *connection), event);
    default:
      return false;
  }
}

bool SystemVerbs::Fail(SystemConnection* connection, absl::Status why, Event* event) {
  event->kind = EventKind::kFailed;
  event->connection = connection;
  event->why = std::move(why);
  return true;
}

absl::Status SystemVerbs::Why(const rdma_cm_event& from, const SystemConnection& connection) const {
  const std::string peer = connection.peer_address();
  if (from.event == RDMA_CM_EVENT_REJECTED) {
    const bool nobody = from.status == kNoListener || from.status == kRefusedByListener;
    return absl::UnavailableError(
        nobody ? absl::StrCat(peer, " refused an rdma connection")
               : absl::StrCat(peer, " rejected an rdma connection (reason ", from.status, ")"));
  }
  const char* const step = from.event == RDMA_CM_EVENT_ADDR_ERROR    ? "no rdma device reaches "
                           : from.event == RDMA_CM_EVENT_ROUTE_ERROR ? "no rdma route to "
                                                                     : "no rdma answer from ";
  return absl::UnavailableError(absl::StrCat(
      step, peer, from.status < 0 ? absl::StrCat(": ", std::strerror(-from.status)) : ""));
}

bool SystemVerbs::OnRouteResolved(SystemConnection* connection, Event* event) {
  const absl::StatusOr<SystemDevice*> device = DeviceOf(connection->id());
  if (!device.ok()) return Fail(connection, device.status(), event);
  if (absl::Status made = connection->CreateQueuePair(*device); !made.ok()) {
    return Fail(connection, std::move(made), event);
  }
  event->kind = EventKind::kResolved;
  return true;
}

// One that cannot be served is refused by being destroyed.
bool SystemVerbs::OnRequest(const rdma_cm_event& from, Event* event) {
  auto connection = std::make_unique<SystemConnection>(library_, from.id, /*dialled=*/false);
  const absl::StatusOr<SystemDevice*> device = DeviceOf(from.id);
  if (!device.ok() || !connection->CreateQueuePair(*device).ok()) return false;
  event->kind = EventKind::kRequest;
  event->connection = connection.get();
  event->accepted = std::move(connection);
  const auto* const data = static_cast<const std::byte*>(from.param.conn.private_data);
  if (data != nullptr) event->private_data.assign(data, data + from.param.conn.private_data_len);
  return true;
}

// ---- what there is ----

const char* NameOf(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_ACTIVE:
      return "active";
    case IBV_PORT_ARMED:
      return "armed";
    case IBV_PORT_INIT:
      return "initialising";
    case IBV_PORT_DOWN:
      return "down";
    default:
      return "unknown";
  }
}

void ReportPort(const Library& library, ibv_context* context, const char* device, int number,
                std::vector<PortReport>* reports) {
  ibv_port_attr port{};
  const auto at = static_cast<std::uint8_t>(number);
  if (library.query_port(context, at, &port) != 0) return;
  PortReport report;
  report.device = device;
  report.port = number;
  report.link = port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
  report.state = NameOf(port.state);
  report.active = port.state == IBV_PORT_ACTIVE;
  report.mtu_bytes = 128u << port.active_mtu;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid gid{};
    if (library.query_gid(context, at, i, &gid) != 0) continue;
    if (gid.global.interface_id == 0 && gid.global.subnet_prefix == 0) continue;
    char text[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
    report.gids.push_back(absl::StrCat(i, ": ", text));
  }
  reports->push_back(std::move(report));
}

class SystemProvider final : public Provider {
 public:
  absl::StatusOr<std::unique_ptr<Verbs>> Open(const Options& options) override {
    LEEWAY_ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
    auto verbs = std::make_unique<SystemVerbs>(library, options);
    LEEWAY_RETURN_IF_ERROR(verbs->Start());
    return verbs;
  }

  absl::Status Viable() const override {
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<PortReport> ports, ReportPorts());
    bool active = false;
    for (const PortReport& port : ports) active = active || port.active;
    if (!active) {
      return absl::UnavailableError(absl::StrCat("port ", ports[0].port, " of rdma device ",
                                                 ports[0].device, " is ", ports[0].state));
    }
    LEEWAY_ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
    rdma_event_channel* const channel = library->create_event_channel();
    if (channel == nullptr) {
      return absl::UnavailableError(
          "the kernel makes no rdma connections (module rdma_ucm, /dev/infiniband/rdma_cm)");
    }
    library->destroy_event_channel(channel);
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::vector<PortReport>> ReportPorts() {
  LEEWAY_ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
  int count = 0;
  ibv_device** const devices = library->get_device_list(&count);
  std::vector<PortReport> reports;
  for (int i = 0; devices != nullptr && i < count; ++i) {
    ibv_context* const context = library->open_device(devices[i]);
    if (context == nullptr) continue;
    ibv_device_attr limits{};
    library->query_device(context, &limits);
    for (int port = 1; port <= limits.phys_port_cnt; ++port) {
      ReportPort(*library, context, library->get_device_name(devices[i]), port, &reports);
    }
    library->close_device(context);
  }
  if (devices != nullptr) library->free_device_list(devices);
  if (reports.empty()) {
    return absl::NotFoundError(
        "there is no rdma device (ibv_devices lists them; a network card without one can be used "
        "with the kernel's rdma_rxe)");
  }
  return reports;
}

std::unique_ptr<Provider> NewSystemProvider() { return std::make_unique<SystemProvider>(); }

}  // namespace leeway::van::verbs
