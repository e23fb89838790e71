#include "van/rdma/testing/fake_verbs.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/unique_fd.h"
#include "van/rdma/testing/fake_state.h"

namespace leeway::van::verbs {
namespace {

using Fabric = FakeFabric::State;
using Lock = std::lock_guard<std::mutex>;

struct Region {
  std::byte* data;
  std::size_t bytes;
  bool remote_write;
};
using Regions = std::map<std::uint32_t, Region>;

std::uint16_t PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

class FakeRegion final : public MemoryRegion {
 public:
  FakeRegion(std::shared_ptr<Fabric> fabric, Regions* regions, std::uint32_t key)
      : fabric_(std::move(fabric)), regions_(regions), key_(key) {}
  ~FakeRegion() override {
    const Lock lock(fabric_->mutex);
    const auto found = regions_->find(key_);
    --fabric_->counters.regions;
    fabric_->counters.registered_bytes -= found->second.bytes;
    regions_->erase(found);
  }
  std::uint32_t local_key() const override { return key_; }
  std::uint32_t remote_key() const override { return key_; }

 private:
  const std::shared_ptr<Fabric> fabric_;
  Regions* const regions_;
  const std::uint32_t key_;
};

class FakeVerbs final : public Verbs, public Device, public FakeOwner {
 public:
  FakeVerbs(std::shared_ptr<Fabric> fabric, const Options& options);
  ~FakeVerbs() override;

  int fd() const override { return event_.get(); }
  absl::StatusOr<std::uint16_t> Listen(const sockaddr_storage& address) override;
  absl::StatusOr<std::unique_ptr<Connection>> Dial(const sockaddr_storage& address) override;
  bool NextEvent(Event* event) override;
  std::span<Device* const> devices() const override { return devices_; }

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(std::byte* data, std::size_t bytes,
                                                         bool remote_write) override;
  absl::Status PostReceive(std::uint64_t id, const Segment& segment) override;
  std::size_t Poll(std::span<Completion> completions) override;
  void Arm() override;

  void Wake() override;
  void Complete(const Completion& completion) override;
  void Tell(Event event) override;
  Device* AsDevice() override { return this; }
  bool in_use() const override { return !devices_.empty(); }
  std::unique_ptr<Connection> NewConnection(std::shared_ptr<FakePair> pair) override;
  bool Covers(std::uint32_t key, const std::byte* data, std::uint64_t bytes,
              bool remote_write) const override;
  bool TakeReceive(std::pair<std::uint64_t, Segment>* receive) override;
  void ForgetEventsOf(const Connection* connection);

  const std::shared_ptr<Fabric> fabric;

 private:
  const runtime::UniqueFd event_;
  DeviceInfo info_;
  std::vector<Device*> devices_;
  std::deque<Event> events_;
  std::deque<Completion> completions_;
  std::deque<std::pair<std::uint64_t, Segment>> receives_;
  Regions regions_;
  bool armed_ = false;
};

class FakeConnection final : public Connection {
 public:
  FakeConnection(FakeVerbs* verbs, std::shared_ptr<FakePair> pair)
      : verbs_(verbs), pair_(std::move(pair)) {}
  ~FakeConnection() override;

  Device* device() const override { return verbs_; }
  std::uint32_t queue_pair() const override { return pair_->number; }
  std::string peer_address() const override { return absl::StrCat("fake:", pair_->number); }
  absl::Status Connect(std::span<const std::byte> private_data) override;
  absl::Status Accept(std::span<const std::byte> private_data) override;
  absl::Status Post(std::span<const SendRequest> requests) override;
  void Disconnect() override;

 private:
  FakeVerbs* const verbs_;
  const std::shared_ptr<FakePair> pair_;
};

// ---- connections ----

FakeConnection::~FakeConnection() {
  const std::shared_ptr<Fabric> fabric = verbs_->fabric;
  const Lock lock(fabric->mutex);
  verbs_->ForgetEventsOf(this);
  pair_->handle = nullptr;
  pair_->pending.clear();
  const bool was_up = pair_->state == FakePair::State::kUp;
  pair_->state = FakePair::State::kBroken;
  if (FakePair* peer = pair_->peer.get(); peer != nullptr && peer->handle != nullptr) {
    if (was_up || peer->state == FakePair::State::kConnecting) fabric->Break(*peer);
  }
  if (pair_->peer != nullptr) pair_->peer->peer = nullptr;
  pair_->peer = nullptr;
  pair_->owner = nullptr;
  fabric->pairs.erase(pair_->number);
  --fabric->counters.connections;
}

absl::Status FakeConnection::Connect(std::span<const std::byte> private_data) {
  Fabric& fabric = *verbs_->fabric;
  const Lock lock(fabric.mutex);
  Event event;
  const auto listener = fabric.listeners.find(pair_->port);
  if (listener == fabric.listeners.end() || fabric.Draw(fabric.faults.refuse_dial_rate)) {
    event.kind = EventKind::kFailed;
    event.connection = this;
    event.why = absl::UnavailableError("connection refused");
    pair_->state = FakePair::State::kBroken;
    verbs_->Tell(std::move(event));
    return absl::OkStatus();
  }
  pair_->state = FakePair::State::kConnecting;
  auto peer = std::make_shared<FakePair>();
  peer->state = FakePair::State::kConnecting;
  peer->peer = pair_;
  pair_->peer = peer;
  event.kind = EventKind::kRequest;
  event.accepted = listener->second->NewConnection(peer);
  event.connection = event.accepted.get();
  event.private_data.assign(private_data.begin(), private_data.end());
  listener->second->Tell(std::move(event));
  return absl::OkStatus();
}

absl::Status FakeConnection::Accept(std::span<const std::byte> private_data) {
  const Lock lock(verbs_->fabric->mutex);
  const std::shared_ptr<FakePair> peer = pair_->peer;
  if (peer == nullptr || peer->handle == nullptr || peer->state != FakePair::State::kConnecting) {
    return absl::UnavailableError("the other side has gone");
  }
  for (FakePair* end : {pair_.get(), peer.get()}) {
    end->state = FakePair::State::kUp;
    Event event;
    event.kind = EventKind::kEstablished;
    event.connection = end->handle;
    if (end == peer.get()) event.private_data.assign(private_data.begin(), private_data.end());
    end->owner->Tell(std::move(event));
  }
  return absl::OkStatus();
}

absl::Status FakeConnection::Post(std::span<const SendRequest> requests) {
  const Lock lock(verbs_->fabric->mutex);
  if (pair_->state == FakePair::State::kNew || pair_->state == FakePair::State::kConnecting) {
    return absl::FailedPreconditionError("posted before the connection was established");
  }
  if (pair_->pending.size() + requests.size() > verbs_->info().send_depth) {
    return absl::ResourceExhaustedError("the send queue is full");
  }
  for (const SendRequest& request : requests) {
    if (request.segments.size() > kSegmentsMax) {
      return absl::InvalidArgumentError("too many segments");
    }
    pair_->pending.push_back({request, {request.segments.begin(), request.segments.end()}});
  }
  verbs_->Wake();
  return absl::OkStatus();
}

void FakeConnection::Disconnect() {
  const Lock lock(verbs_->fabric->mutex);
  if (pair_->state != FakePair::State::kUp) return;
  const std::shared_ptr<FakePair> peer = pair_->peer;
  verbs_->fabric->Break(*pair_);
  if (peer != nullptr && peer->handle != nullptr) verbs_->fabric->Break(*peer);
}

// ---- a Verbs ----

FakeVerbs::FakeVerbs(std::shared_ptr<Fabric> on, const Options& options)
    : fabric(std::move(on)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  info_.name = "fake0";
  info_.link = "memory";
  info_.mtu_bytes = 4096;
  info_.send_depth = options.send_depth;
  info_.receive_depth = options.receive_depth;
  const Lock lock(fabric->mutex);
  fabric->owners.insert(this);
}

FakeVerbs::~FakeVerbs() {
  std::deque<Event> left;
  {
    const Lock lock(fabric->mutex);
    left.swap(events_);
    std::erase_if(fabric->listeners, [this](const auto& one) { return one.second == this; });
    fabric->owners.erase(this);
  }
  left.clear();  // connections that nobody has taken, which take the mutex
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
  auto pair = std::make_shared<FakePair>();
  pair->port = PortOf(address);
  std::unique_ptr<Connection> connection = NewConnection(pair);
  Event event;
  event.kind = EventKind::kResolved;
  event.connection = connection.get();
  Tell(std::move(event));
  return connection;
}

bool FakeVerbs::NextEvent(Event* event) {
  *event = Event();  // what nobody has taken of the last one takes the mutex
  const Lock lock(fabric->mutex);
  fabric->Progress();
  if (events_.empty()) return false;
  *event = std::move(events_.front());
  events_.pop_front();
  return true;
}

std::unique_ptr<Connection> FakeVerbs::NewConnection(std::shared_ptr<FakePair> pair) {
  pair->number = fabric->next_number++;
  pair->owner = this;
  fabric->pairs[pair->number] = pair;
  ++fabric->counters.connections;
  auto connection = std::make_unique<FakeConnection>(this, pair);
  pair->handle = connection.get();
  if (devices_.empty()) devices_.push_back(this);
  return connection;
}

void FakeVerbs::Wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(event_.get(), &one, sizeof(one));
}

void FakeVerbs::Complete(const Completion& completion) {
  completions_.push_back(completion);
  if (std::exchange(armed_, false)) Wake();
}

void FakeVerbs::Tell(Event event) {
  events_.push_back(std::move(event));
  Wake();
}

void FakeVerbs::ForgetEventsOf(const Connection* connection) {
  std::erase_if(events_, [&](const Event& event) { return event.connection == connection; });
}

// ---- a device ----

absl::StatusOr<std::unique_ptr<MemoryRegion>> FakeVerbs::Register(std::byte* data,
                                                                  std::size_t bytes,
                                                                  bool remote_write) {
  const Lock lock(fabric->mutex);
  std::uint64_t registered = bytes;
  for (const auto& [key, region] : regions_) registered += region.bytes;
  if (registered > fabric->faults.registered_bytes_max ||
      fabric->Draw(fabric->faults.refuse_register_rate)) {
    return absl::ResourceExhaustedError("no more memory may be locked (ulimit -l)");
  }
  const std::uint32_t key = fabric->next_key++;
  regions_[key] = {data, bytes, remote_write};
  ++fabric->counters.regions;
  fabric->counters.registered_bytes += bytes;
  return std::make_unique<FakeRegion>(fabric, &regions_, key);
}

bool FakeVerbs::Covers(std::uint32_t key, const std::byte* data, std::uint64_t bytes,
                       bool remote_write) const {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return false;
  const Region& region = found->second;
  return (region.remote_write || !remote_write) && data >= region.data && bytes <= region.bytes &&
         data + bytes <= region.data + region.bytes;
}

absl::Status FakeVerbs::PostReceive(std::uint64_t id, const Segment& segment) {
  const Lock lock(fabric->mutex);
  if (receives_.size() >= info_.receive_depth) {
    return absl::ResourceExhaustedError("the receive queue is full");
  }
  receives_.emplace_back(id, segment);
  Wake();
  return absl::OkStatus();
}

bool FakeVerbs::TakeReceive(std::pair<std::uint64_t, Segment>* receive) {
  if (receives_.empty()) return false;
  *receive = receives_.front();
  receives_.pop_front();
  return true;
}

std::size_t FakeVerbs::Poll(std::span<Completion> completions) {
  const Lock lock(fabric->mutex);
  std::uint64_t woken = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &woken, sizeof(woken));
  fabric->Progress();
  const std::size_t count = std::min(completions.size(), completions_.size());
  std::copy_n(completions_.begin(), count, completions.begin());
  completions_.erase(completions_.begin(),
                     completions_.begin() + static_cast<std::ptrdiff_t>(count));
  if (!events_.empty()) Wake();
  return count;
}

void FakeVerbs::Arm() {
  const Lock lock(fabric->mutex);
  armed_ = completions_.empty();
  if (!armed_) Wake();
}

class FakeProvider final : public Provider {
 public:
  explicit FakeProvider(std::shared_ptr<Fabric> fabric) : fabric_(std::move(fabric)) {}
  absl::StatusOr<std::unique_ptr<Verbs>> Open(const Options& options) override {
    return std::make_unique<FakeVerbs>(fabric_, options);
  }
  absl::Status Viable() const override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<Fabric> fabric_;
};

}  // namespace

std::unique_ptr<Provider> NewFakeProvider(const FakeFabric& fabric) {
  return std::make_unique<FakeProvider>(fabric.state());
}

}  // namespace leeway::van::verbs
