#include "van/rdma/verbs/system_verbs.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::van::verbs {
namespace {

// Connect requests that may wait to be handled.
constexpr int kBacklog = 128;
constexpr int kReadyAtOnce = 16;
// Events of rdma_cm that are handled before other sources are polled.
constexpr int kCmEventsAtOnce = 16;

// User data of descriptors in the epoll set: one of these, or for a device kFirstDevice + 2 * its
// index, plus one for its asynchronous events.
enum Source : std::uint64_t { kCm = 0, kWake = 1, kFirstDevice = 2 };

// The error, which names the setting to change, by errno.
absl::Status CannotListenHere(int error) {
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          "it is in use; choose another port (LEEWAY_SCHEDULER or DMLC_PS_ROOT_PORT) or stop the "
          "process that holds it");
    case ENODEV:
    case EADDRNOTAVAIL:
      return absl::UnavailableError(
          "no rdma device of this machine has that address; check LEEWAY_HOST, LEEWAY_INTERFACE "
          "and "
          "`rdma link`");
    case EMFILE:
    case ENFILE:
      return runtime::OutOfDescriptors(error);
    default:
      return absl::UnavailableError(std::strerror(error));
  }
}

int DestroyChannel(rdma_event_channel* channel) {
  if (const auto& library = SystemLibrary(); library.ok()) library->destroy_event_channel(channel);
  return 0;
}

}  // namespace

SystemVerbs::SystemVerbs(const Library& library, const Options& options, const Path& path)
    : library_(library),
      options_(options),
      path_(path),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      channel_(nullptr, DestroyChannel) {}

// Refuses connect requests that were not accepted.
SystemVerbs::~SystemVerbs() {
  std::exchange(pending_, {}).clear();
  listeners_.clear();
  owned_devices_.clear();
}

absl::Status SystemVerbs::Start() {
  channel_.reset(library_.create_event_channel());
  if (channel_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("rdma_cm gives no event channel: ", std::strerror(errno),
                     "; is the kernel module rdma_ucm loaded, and may "
                     "this user open /dev/infiniband/rdma_cm?"));
  }
  const int cm = channel_->fd;
  if (::fcntl(cm, F_SETFL, ::fcntl(cm, F_GETFL) | O_NONBLOCK) != 0) {
    return absl::UnavailableError(absl::StrCat("rdma_cm: ", std::strerror(errno)));
  }
  closed_in_children_.emplace(cm);
  LEEWAY_RETURN_IF_ERROR(Watch(cm, kCm));
  return Watch(wake_.get(), kWake);
}

absl::Status SystemVerbs::Watch(int fd, std::uint64_t source) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = source;
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &wanted) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("rdma: epoll: ", std::strerror(errno), " (file descriptors: ulimit -n)"));
}

// ---- listening and dialling ----

absl::StatusOr<std::uint16_t> SystemVerbs::Listen(const sockaddr_storage& address) {
  sockaddr_storage here = address;
  rdma_cm_id* made = nullptr;
  if (library_.create_id(channel_.get(), &made, nullptr, RDMA_PS_TCP) != 0) {
    return CannotListenHere(errno);
  }
  Owned<rdma_cm_id> id(made, library_.destroy_id);
  if (library_.bind_addr(made, reinterpret_cast<sockaddr*>(&here)) != 0 ||
      library_.listen(made, kBacklog) != 0) {
    return CannotListenHere(errno);
  }
  listeners_.push_back(std::move(id));
  return ntohs(library_.get_src_port(made));
}

absl::StatusOr<std::unique_ptr<Connection>> SystemVerbs::Dial(const sockaddr_storage& address) {
  return SystemConnection::Dial(this, channel_.get(), address);
}

// ---- devices ----

absl::StatusOr<SystemDevice*> SystemVerbs::DeviceOf(const rdma_cm_id* id) {
  for (const auto& device : owned_devices_) {
    if (device->IsThatOf(id) && !device->lost()) return device.get();
  }
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<SystemDevice> device,
                          SystemDevice::Open(library_, id, options_));
  const std::uint64_t source = kFirstDevice + 2 * owned_devices_.size();
  LEEWAY_RETURN_IF_ERROR(Watch(device->notices_fd(), source));
  LEEWAY_RETURN_IF_ERROR(Watch(device->news_fd(), source + 1));
  devices_.push_back(device.get());
  owned_devices_.push_back(std::move(device));
  return owned_devices_.back().get();
}

void SystemVerbs::ReadNews(SystemDevice* device) {
  if (absl::Status why = device->ReadNews(); !why.ok()) Lose(device, std::move(why));
}

// A lost device would keep its descriptors readable for ever, so they are removed.
void SystemVerbs::Lose(SystemDevice* device, absl::Status why) {
  device->SetLost();
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, device->notices_fd(), nullptr);
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, device->news_fd(), nullptr);
  Event lost;
  lost.kind = EventKind::kDeviceLost;
  lost.device = device;
  lost.why = std::move(why);
  pending_.push_back(std::move(lost));
}

// ---- events ----

bool SystemVerbs::NextEvent(Event* event) {
  if (pending_.empty()) Look();
  const bool found = !pending_.empty();
  if (found) {
    *event = std::move(pending_.front());
    pending_.pop_front();
  }
  SetAwake(!pending_.empty());
  return found;
}

// Finds by one system call whether any source has events.
void SystemVerbs::Look() {
  std::array<epoll_event, kReadyAtOnce> ready;
  const int count = ::epoll_wait(poll_.get(), ready.data(), kReadyAtOnce, /*timeout=*/0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t source = ready[i].data.u64;
    if (source == kCm) ReadCmEvents();
    if (source < kFirstDevice) continue;
    SystemDevice* const device = owned_devices_[(source - kFirstDevice) / 2].get();
    if (device->lost()) continue;
    if ((source - kFirstDevice) % 2 == 0) {
      device->TakeNotices();
    } else {
      ReadNews(device);
    }
  }
}

void SystemVerbs::ReadCmEvents() {
  CmEvent event;
  for (int i = 0; i < kCmEventsAtOnce && TakeCmEvent(&event); ++i) OnCmEvent(event);
}

bool SystemVerbs::TakeCmEvent(CmEvent* event) {
  rdma_cm_event* taken = nullptr;
  if (library_.get_cm_event(channel_.get(), &taken) != 0) return false;
  event->type = taken->event;
  event->id = taken->id;
  event->status = taken->status;
  event->private_data.clear();
  const bool has_data = taken->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
                        taken->event == RDMA_CM_EVENT_CONNECT_RESPONSE;
  if (has_data && taken->param.conn.private_data != nullptr) {
    const auto* const data = static_cast<const std::byte*>(taken->param.conn.private_data);
    const std::size_t bytes =
        std::min<std::size_t>(taken->param.conn.private_data_len, kPrivateBytesMax + 4);
    event->private_data.assign(data, data + bytes);
  }
  library_.ack_cm_event(taken);
  return true;
}

// A listening id has no connection.
void SystemVerbs::OnCmEvent(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) return OnRequest(event);
  auto* const connection = static_cast<SystemConnection*>(event.id->context);
  if (connection == nullptr) return;
  auto* const device = static_cast<SystemDevice*>(connection->device());
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL && device != nullptr) {
    if (device->lost()) return;
    return Lose(device, absl::UnavailableError(
                            absl::StrCat("the rdma device ", device->info().name, " was removed")));
  }
  if (std::optional<Event> made = connection->OnEvent(event)) pending_.push_back(*std::move(made));
}

void SystemVerbs::OnRequest(const CmEvent& event) {
  absl::StatusOr<std::unique_ptr<SystemConnection>> connection =
      SystemConnection::Requested(this, event.id, event.private_data);
  if (!connection.ok()) {
    return runtime::LogWarning("rdma: refusing a connection: ",
                               std::string(connection.status().message()));
  }
  Event request;
  request.kind = EventKind::kRequest;
  request.connection = connection->get();
  request.accepted = *std::move(connection);
  request.private_data = event.private_data;
  request.private_data.resize(std::min(request.private_data.size(), kPrivateBytesMax));
  pending_.push_back(std::move(request));
}

void SystemVerbs::Report(Event event) {
  pending_.push_back(std::move(event));
  SetAwake(true);
}

void SystemVerbs::Forget(const SystemConnection* connection) {
  std::erase_if(pending_, [connection](const Event& event) {
    return event.connection == connection && event.accepted == nullptr;
  });
}

void SystemVerbs::SetAwake(bool awake) {
  if (std::exchange(awake_, awake) == awake) return;
  if (awake) {
    ::eventfd_write(wake_.get(), 1);
  } else {
    eventfd_t unused = 0;
    ::eventfd_read(wake_.get(), &unused);
  }
}

// ---- the provider ----

namespace {

class SystemProvider final : public Provider {
 public:
  explicit SystemProvider(const Path& path) : path_(path) {}
  absl::StatusOr<std::unique_ptr<Verbs>> Open(const Options& options) override {
    LEEWAY_RETURN_IF_ERROR(Usable(path_));
    auto verbs = std::make_unique<SystemVerbs>(*SystemLibrary(), options, path_);
    LEEWAY_RETURN_IF_ERROR(verbs->Start());
    return verbs;
  }
  absl::Status Viable() const override { return Usable(path_); }

 private:
  const Path path_;
};

}  // namespace

std::unique_ptr<Provider> NewSystemProvider(const Path& path) {
  return std::make_unique<SystemProvider>(path);
}

}  // namespace leeway::van::verbs
