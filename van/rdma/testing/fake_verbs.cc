#include "van/rdma/testing/fake_verbs.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "runtime/base/unique_fd.h"
#include "van/rdma/testing/fake_device.h"
#include "van/rdma/testing/fake_state.h"

namespace leeway::van::verbs {
namespace {

using Fabric = FakeFabric::State;
using Lock = Fabric::Lock;

constexpr std::uint64_t kMessageBytesMax = 1 << 30;

std::uint16_t PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// As with librdmacm, the private data are padded with zeros.
void SetPrivateData(std::span<const std::byte> data, Event* event) {
  event->private_data.assign(data.begin(), data.end());
  event->private_data.resize(kPrivateBytesMax);
}

absl::Status NoDevice() { return absl::UnavailableError("no rdma device is up"); }

class FakeVerbs final : public Verbs, public FakeOwner {
 public:
  FakeVerbs(std::shared_ptr<Fabric> fabric, const Options& options, FakeHooks hooks);
  ~FakeVerbs() override;

  // Calls of the user; they take the mutex.
  int fd() const override { return event_fd_.get(); }
  absl::StatusOr<std::uint16_t> Listen(const sockaddr_storage& address) override;
  absl::StatusOr<std::unique_ptr<Connection>> Dial(const sockaddr_storage& address) override;
  bool NextEvent(Event* event) override;
  std::span<Device* const> devices() const override { return known_; }

  // Calls of the fabric, under the mutex.
  void NoteWork() override;
  void NoteEvents() override;
  void Refresh() override;
  void BeginProgress() override;
  void Tell(Event event, std::shared_ptr<FakePair> pair) override;
  std::unique_ptr<Connection> NewConnection(std::shared_ptr<FakePair> pair) override;
  bool HasDevice() const override;
  bool readable() const override { return readable_; }
  const std::vector<std::unique_ptr<FakeDevice>>& all_devices() const override { return devices_; }
  const FakeHooks& hooks() const override { return hooks_; }
  void ForgetEventsOf(const Connection* connection);

  const std::shared_ptr<Fabric> fabric;

 private:
  struct Told {
    Event event;
    std::shared_ptr<FakePair> pair;
  };

  FakeDevice* NextDevice();
  void ShowDevices();
  void CheckNothingIsLeft();
  bool TakeEvent(Told* told);

  const FakeHooks hooks_;
  const runtime::UniqueFd event_fd_;
  std::vector<std::unique_ptr<FakeDevice>> devices_;
  std::vector<Device*> used_;
  // The ones of used_ that the user knows. Changed only within the user's own calls, because
  // devices() takes no mutex and a peer's request is carried out on the peer's thread.
  std::vector<Device*> known_;
  std::size_t turn_ = 0;  // which device is next
  std::deque<Told> events_;
  bool has_work_ = false;
  bool has_events_ = false;
  bool readable_ = false;
};

class FakeConnection final : public Connection {
 public:
  FakeConnection(FakeVerbs* verbs, std::shared_ptr<FakePair> pair)
      : verbs_(verbs), fabric_(*verbs->fabric), pair_(std::move(pair)) {}
  ~FakeConnection() override;

  Device* device() const override { return pair_->device; }
  std::uint32_t queue_pair() const override { return pair_->number; }
  std::string peer_address() const override {
    return absl::StrCat("10.0.0.1:", pair_->dialled ? pair_->port : 40000 + pair_->number);
  }
  absl::Status Connect(std::span<const std::byte> private_data) override;
  absl::Status Accept(std::span<const std::byte> private_data) override;
  absl::Status Post(std::span<const SendRequest> requests) override;
  void Disconnect() override;

 private:
  absl::Status CheckPost(std::span<const SendRequest> requests);
  void Request(FakeOwner& listener, std::span<const std::byte> private_data);
  void Fail(absl::string_view why) { fabric_.End(*pair_, absl::UnavailableError(why)); }

  FakeVerbs* const verbs_;
  Fabric& fabric_;
  const std::shared_ptr<FakePair> pair_;
};

// ---- a connection begins ----

absl::Status FakeConnection::Connect(std::span<const std::byte> private_data) {
  const Lock lock(fabric_.mutex);
  if (pair_->link == FakeLink::kEnded) return absl::UnavailableError("the connection has failed");
  if (!pair_->resolved || pair_->link != FakeLink::kNew) {
    return absl::FailedPreconditionError("Connect comes once, after kResolved");
  }
  if (private_data.size() > kPrivateBytesMax) {
    return absl::InvalidArgumentError("too many private bytes");
  }
  pair_->link = FakeLink::kConnecting;
  if (fabric_.Draw(fabric_.faults.lose_dial_rate)) {
    pair_->fails_in = std::max(fabric_.faults.lost_dial_polls, 1u);
    fabric_.Activate(*pair_);
    return absl::OkStatus();
  }
  const auto listener = fabric_.listeners.find(pair_->port);
  if (listener == fabric_.listeners.end() || fabric_.Draw(fabric_.faults.refuse_dial_rate)) {
    Fail("connection refused");
    return absl::OkStatus();
  }
  if (!listener->second->HasDevice()) {
    Fail("the other side has no rdma device that is up");
    return absl::OkStatus();
  }
  Request(*listener->second, private_data);
  return absl::OkStatus();
}

void FakeConnection::Request(FakeOwner& listener, std::span<const std::byte> private_data) {
  auto peer = std::make_shared<FakePair>();
  Event event;
  event.kind = EventKind::kRequest;
  event.accepted = listener.NewConnection(peer);
  event.connection = event.accepted.get();
  SetPrivateData(private_data, &event);
  peer->link = FakeLink::kConnecting;
  peer->peer = pair_;
  pair_->peer = peer;
  listener.Tell(std::move(event), peer);
}

absl::Status FakeConnection::Accept(std::span<const std::byte> private_data) {
  const Lock lock(fabric_.mutex);
  const std::shared_ptr<FakePair> peer = pair_->peer;
  if (pair_->dialled || pair_->link == FakeLink::kUp) {
    return absl::FailedPreconditionError("Accept comes once, after kRequest");
  }
  if (private_data.size() > kPrivateBytesMax) {
    return absl::InvalidArgumentError("too many private bytes");
  }
  if (peer == nullptr || pair_->link != FakeLink::kConnecting ||
      peer->link != FakeLink::kConnecting) {
    return absl::UnavailableError("the other side has gone");
  }
  if (fabric_.Draw(fabric_.faults.fail_accept_rate)) {
    Fail("the other side does not answer");
    fabric_.End(*peer, absl::UnavailableError("the other side does not answer"));
    return absl::OkStatus();
  }
  for (FakePair* end : {pair_.get(), peer.get()}) {
    end->link = FakeLink::kUp;
    Event event;
    event.kind = EventKind::kEstablished;
    event.connection = end->handle;
    if (end == peer.get()) SetPrivateData(private_data, &event);
    end->owner->Tell(std::move(event), fabric_.pairs.at(end->number));
  }
  return absl::OkStatus();
}

// ---- a connection works and ends ----

absl::Status FakeConnection::Post(std::span<const SendRequest> requests) {
  const Lock lock(fabric_.mutex);
  if (absl::Status status = CheckPost(requests); !status.ok()) return status;
  const bool fails = fabric_.Draw(fabric_.faults.fail_post_rate);
  if (fails) requests = requests.first(requests.size() / 2);
  for (const SendRequest& request : requests) {
    if (pair_->posted - pair_->retired >= pair_->device->info().send_depth) {
      ++fabric_.counters.overposted;
      return absl::ResourceExhaustedError("the send queue is full");
    }
    FakeRequest posted;
    posted.request = request;
    posted.request.segments = {};
    posted.segments.assign(request.segments.begin(), request.segments.end());
    posted.index = pair_->posted++;
    pair_->pending.push_back(std::move(posted));
    ++fabric_.counters.posted;
  }
  if (!requests.empty()) fabric_.Activate(*pair_);
  return fails ? absl::UnavailableError("the device does not take it") : absl::OkStatus();
}

absl::Status FakeConnection::CheckPost(std::span<const SendRequest> requests) {
  if (!pair_->may_post && pair_->link != FakeLink::kEnded) {
    return absl::FailedPreconditionError("Post comes after kEstablished");
  }
  if (pair_->device == nullptr || pair_->device->lost) return NoDevice();
  for (const SendRequest& request : requests) {
    std::uint64_t bytes = 0;
    for (const Segment& segment : request.segments) bytes += segment.bytes;
    if (request.segments.size() > kSegmentsMax || bytes > kMessageBytesMax) {
      return absl::InvalidArgumentError("a request that is too long");
    }
  }
  return absl::OkStatus();
}

void FakeConnection::Disconnect() {
  const Lock lock(fabric_.mutex);
  if (pair_->link != FakeLink::kUp) return;
  const std::shared_ptr<FakePair> peer = pair_->peer;
  fabric_.End(*pair_, absl::OkStatus());
  if (peer != nullptr && peer->handle != nullptr) fabric_.End(*peer, absl::OkStatus());
}

FakeConnection::~FakeConnection() {
  const Lock lock(fabric_.mutex);
  verbs_->ForgetEventsOf(this);
  fabric_.Destroy(*pair_);
}

// ---- a Verbs ----

FakeVerbs::FakeVerbs(std::shared_ptr<Fabric> on, const Options& options, FakeHooks its_hooks)
    : fabric(std::move(on)),
      hooks_(std::move(its_hooks)),
      event_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const Lock lock(fabric->mutex);
  const FakeFaults& faults = fabric->faults;
  DeviceInfo info;
  info.gid_index = 0;
  info.mtu_bytes = 4096;
  info.send_depth = std::min(options.send_depth, faults.send_depth_max);
  info.receive_depth = std::min(options.receive_depth, faults.receive_depth_max);
  for (std::uint32_t i = 0; i < faults.devices; ++i) {
    info.name = absl::StrCat("fake", i);
    devices_.push_back(std::make_unique<FakeDevice>(fabric, this, info));
  }
  fabric->owners.push_back(this);
}

FakeVerbs::~FakeVerbs() {
  std::deque<Told> left;
  {
    const Lock lock(fabric->mutex);
    std::erase_if(fabric->listeners, [this](const auto& one) { return one.second == this; });
    left.swap(events_);
  }
  left.clear();  // destroys connections that were not taken, which takes the mutex
  const Lock lock(fabric->mutex);
  CheckNothingIsLeft();
  std::erase(fabric->owners, this);
  devices_.clear();
}

void FakeVerbs::CheckNothingIsLeft() {
  for (const auto& [number, pair] : fabric->pairs) {
    if (pair->owner != this) continue;
    std::fprintf(stderr, "fake verbs: connection %u outlives its Verbs\n", number);
    std::abort();
  }
}

absl::StatusOr<std::uint16_t> FakeVerbs::Listen(const sockaddr_storage& address) {
  const Lock lock(fabric->mutex);
  std::uint16_t port = PortOf(address);
  while (port == 0) {
    const std::uint16_t next = fabric->next_port++;
    if (next != 0 && !fabric->listeners.contains(next)) port = next;
  }
  if (!fabric->listeners.emplace(port, this).second) {
    return absl::AlreadyExistsError(absl::StrCat("port ", port, " is in use"));
  }
  return port;
}

absl::StatusOr<std::unique_ptr<Connection>> FakeVerbs::Dial(const sockaddr_storage& address) {
  const Lock lock(fabric->mutex);
  if (fabric->Draw(fabric->faults.fail_dial_rate)) return NoDevice();
  auto pair = std::make_shared<FakePair>();
  pair->dialled = true;
  pair->port = PortOf(address);
  std::unique_ptr<Connection> connection = NewConnection(pair);
  ShowDevices();
  if (pair->device == nullptr || fabric->Draw(fabric->faults.fail_resolve_rate)) {
    fabric->End(*pair, pair->device == nullptr
                           ? NoDevice()
                           : absl::UnavailableError("there is no way to that address"));
    return connection;
  }
  Event event;
  event.kind = EventKind::kResolved;
  event.connection = connection.get();
  Tell(std::move(event), pair);
  return connection;
}

std::unique_ptr<Connection> FakeVerbs::NewConnection(std::shared_ptr<FakePair> pair) {
  pair->number = fabric->next_number++;
  pair->owner = this;
  pair->device = NextDevice();
  fabric->pairs[pair->number] = pair;
  ++fabric->counters.connections;
  auto connection = std::make_unique<FakeConnection>(this, pair);
  pair->handle = connection.get();
  return connection;
}

bool FakeVerbs::HasDevice() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const auto& one) { return !one->lost; });
}

FakeDevice* FakeVerbs::NextDevice() {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    FakeDevice* const device = devices_[turn_++ % devices_.size()].get();
    if (device->lost) continue;
    if (!std::exchange(device->was_used, true)) used_.push_back(device);
    return device;
  }
  return nullptr;
}

void FakeVerbs::ShowDevices() {
  known_.insert(known_.end(), used_.begin() + known_.size(), used_.end());
}

// ---- events ----

bool FakeVerbs::NextEvent(Event* event) {
  *event = Event();  // destroying what the last event holds takes the mutex
  const Lock lock(fabric->mutex);
  BeginProgress();
  fabric->Progress();
  ShowDevices();
  Told told;
  const bool found = TakeEvent(&told);
  Refresh();
  if (!found) return false;
  if (told.event.kind == EventKind::kResolved) told.pair->resolved = true;
  if (told.event.kind == EventKind::kEstablished) told.pair->may_post = true;
  *event = std::move(told.event);
  return true;
}

// Takes the first event that is not held back, nor behind one of the same connection that is.
bool FakeVerbs::TakeEvent(Told* told) {
  has_events_ = false;
  std::set<const FakePair*> held;
  for (auto it = events_.begin(); it != events_.end(); ++it) {
    const FakePair* const pair = it->pair.get();
    if (pair != nullptr && held.contains(pair)) continue;
    if (pair != nullptr &&
        fabric->Held(*pair, pair->event_gate, fabric->faults.delayed_event_rate)) {
      held.insert(pair);
      continue;
    }
    *told = std::move(*it);
    events_.erase(it);
    if (!events_.empty()) has_events_ = true;
    return true;
  }
  return false;
}

void FakeVerbs::Tell(Event event, std::shared_ptr<FakePair> pair) {
  events_.push_back({std::move(event), std::move(pair)});
  NoteEvents();
}

void FakeVerbs::ForgetEventsOf(const Connection* connection) {
  std::erase_if(events_, [&](const Told& told) { return told.event.connection == connection; });
}

void FakeVerbs::NoteWork() {
  has_work_ = true;
  Refresh();
}

void FakeVerbs::NoteEvents() {
  has_events_ = true;
  Refresh();
}

void FakeVerbs::BeginProgress() {
  has_work_ = false;
  Refresh();
}

void FakeVerbs::Refresh() {
  const bool readable =
      has_work_ || has_events_ ||
      std::any_of(devices_.begin(), devices_.end(), [](const auto& one) { return one->has_news; });
  if (std::exchange(readable_, readable) == readable) return;
  std::uint64_t count = 1;
  if (!readable) {
    [[maybe_unused]] const ssize_t got = ::read(event_fd_.get(), &count, sizeof(count));
    return;
  }
  [[maybe_unused]] const ssize_t put = ::write(event_fd_.get(), &count, sizeof(count));
  if (hooks_.news) hooks_.news();
}

class FakeProvider final : public Provider {
 public:
  FakeProvider(std::shared_ptr<Fabric> fabric, FakeHooks hooks)
      : fabric_(std::move(fabric)), hooks_(std::move(hooks)) {}
  absl::StatusOr<std::unique_ptr<Verbs>> Open(const Options& options) override {
    return std::make_unique<FakeVerbs>(fabric_, options, hooks_);
  }
  absl::Status Viable() const override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<Fabric> fabric_;
  const FakeHooks hooks_;
};

}  // namespace

std::unique_ptr<Provider> NewFakeProvider(const FakeFabric& fabric, FakeHooks hooks) {
  return std::make_unique<FakeProvider>(fabric.state(), std::move(hooks));
}

}  // namespace leeway::van::verbs
