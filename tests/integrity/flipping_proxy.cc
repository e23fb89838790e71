#include "tests/integrity/flipping_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace leeway::tests {
namespace {

constexpr std::size_t kBytesAtOnce = 256 << 10;

sockaddr_in Loopback(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

void SetUp(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool IsBusy(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// A van that its peers reach through the proxy.
class ProxiedVan final : public van::Van {
 public:
  ProxiedVan(std::unique_ptr<van::Van> inner, FlippingProxy* proxy, VanTotals* totals)
      : inner_(std::move(inner)), proxy_(proxy), totals_(totals) {}
  ~ProxiedVan() override {
    totals_->checksums_failed += inner_->counters().checksums_failed;
    totals_->handshakes_failed += inner_->counters().handshakes_failed;
  }

  absl::StatusOr<std::string> Listen(absl::string_view address) override {
    absl::StatusOr<std::string> own = inner_->Listen(address);
    if (!own.ok()) return own;
    return proxy_->InFrontOf(*own);
  }
  absl::StatusOr<van::PeerId> Connect(absl::string_view address, absl::Duration timeout) override {
    return inner_->Connect(address, timeout);
  }
  absl::Status Send(van::PeerId peer, van::Message message, van::SendDone done) override {
    return inner_->Send(peer, std::move(message), std::move(done));
  }
  van::ReceiveHandle PostReceive(van::PeerId peer, std::uint64_t token,
                                 std::span<std::byte> into) override {
    return inner_->PostReceive(peer, token, into);
  }
  void Disconnect(van::PeerId peer, absl::Status why) override {
    inner_->Disconnect(peer, std::move(why));
  }
  void Admit(van::PeerId peer) override { inner_->Admit(peer); }
  bool Writable(van::PeerId peer) const override { return inner_->Writable(peer); }
  std::string AddressOf(van::PeerId peer) const override { return inner_->AddressOf(peer); }
  van::Identity identity() const override { return inner_->identity(); }
  void SetIdentity(const van::Identity& identity) override { inner_->SetIdentity(identity); }
  van::Counters counters() const override { return inner_->counters(); }

 private:
  const std::unique_ptr<van::Van> inner_;
  FlippingProxy* const proxy_;
  VanTotals* const totals_;
};

class ProxiedFactory final : public van::Factory {
 public:
  ProxiedFactory(std::unique_ptr<van::Factory> inner, FlippingProxy* proxy, VanTotals* totals)
      : inner_(std::move(inner)), proxy_(proxy), totals_(totals) {}

  std::unique_ptr<van::Van> New(runtime::Loop* loop, const van::Identity& identity,
                                const van::Limits& limits, van::Handler* handler) override {
    return std::make_unique<ProxiedVan>(inner_->New(loop, identity, limits, handler), proxy_,
                                        totals_);
  }
  std::string AnyAddress(absl::string_view host) const override { return inner_->AnyAddress(host); }
  absl::Status Viable() const override { return inner_->Viable(); }

 private:
  const std::unique_ptr<van::Factory> inner_;
  FlippingProxy* const proxy_;
  VanTotals* const totals_;
};

}  // namespace

FlippingProxy::FlippingProxy()
    : wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), thread_([this] { Run(); }) {}

FlippingProxy::~FlippingProxy() {
  over_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

std::string FlippingProxy::InFrontOf(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  Listener listener;
  listener.host = std::string(absl::StripPrefix(address.substr(0, colon), "tcp://"));
  if (!absl::SimpleAtoi(address.substr(colon + 1), &listener.port)) return address;
  listener.fd = runtime::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in own = Loopback("127.0.0.1", 0);
  socklen_t size = sizeof(own);
  auto* const name = reinterpret_cast<sockaddr*>(&own);
  if (::bind(listener.fd.get(), name, size) != 0 || ::listen(listener.fd.get(), 128) != 0 ||
      ::getsockname(listener.fd.get(), name, &size) != 0) {
    return address;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  listeners_.push_back(std::move(listener));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  return absl::StrCat("tcp://127.0.0.1:", ntohs(own.sin_port));
}

void FlippingProxy::FlipAfter(std::uint64_t offset, int bit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  flip_after_ = offset;
  bit_ = bit;
  crossed_ = 0;
  flipped_ = false;
}

std::string FlippingProxy::Where() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return where_;
}

// ---- its thread ----

void FlippingProxy::Run() {
  while (!over_) {
    std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}};
    std::size_t listeners = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      listeners = listeners_.size();
      for (const Listener& listener : listeners_) watched.push_back({listener.fd.get(), POLLIN, 0});
    }
    for (const auto& link : links_) {
      for (const Direction* way : {&link->forth, &link->back}) {
        // Bytes that could not be written yet are not overtaken.
        const bool writes = !way->waiting.empty();
        watched.push_back({writes ? way->to : way->from,
                           static_cast<short>(writes          ? POLLOUT
                                              : way->read_end ? 0
                                                              : POLLIN),
                           0});
      }
    }
    ::poll(watched.data(), watched.size(), -1);
    if (watched[0].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof(count));
    }
    std::erase_if(links_, [this](const std::unique_ptr<Link>& link) {
      return !Pump(&link->forth) || !Pump(&link->back) ||
             (link->forth.write_end && link->back.write_end);
    });
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < listeners; ++i) {
      if (watched[1 + i].revents != 0) Accept(listeners_[i]);
    }
  }
}

void FlippingProxy::Accept(const Listener& listener) {
  auto link = std::make_unique<Link>();
  link->client = runtime::UniqueFd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  link->server = runtime::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in target = Loopback(listener.host, listener.port);
  if (!link->client || ::connect(link->server.get(), reinterpret_cast<const sockaddr*>(&target),
                                 sizeof(target)) != 0) {
    return;
  }
  SetUp(link->client.get());
  SetUp(link->server.get());
  link->forth = {.from = link->client.get(), .to = link->server.get()};
  link->back = {.from = link->server.get(), .to = link->client.get()};
  links_.push_back(std::move(link));
}

bool FlippingProxy::Pump(Direction* way) {
  if (way->waiting.empty() && !way->read_end) {
    way->waiting.resize(kBytesAtOnce);
    const ssize_t got = ::recv(way->from, way->waiting.data(), way->waiting.size(), 0);
    const int error = errno;
    way->waiting.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (got < 0 && !IsBusy(error)) return false;
    if (got == 0) way->read_end = true;
    Count(way, &way->waiting);
  }
  if (!way->waiting.empty()) {
    const ssize_t sent = ::send(way->to, way->waiting.data(), way->waiting.size(), MSG_NOSIGNAL);
    if (sent < 0 && !IsBusy(errno)) return false;
    if (sent > 0) way->waiting.erase(0, static_cast<std::size_t>(sent));
  }
  if (way->read_end && way->waiting.empty() && !std::exchange(way->write_end, true)) {
    ::shutdown(way->to, SHUT_WR);
  }
  return true;
}

void FlippingProxy::Count(Direction* way, std::string* bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t before = crossed_.load();
  crossed_ = before + bytes->size();
  if (!flipped_ && flip_after_ >= before && flip_after_ - before < bytes->size()) {
    const auto at = static_cast<std::size_t>(flip_after_ - before);
    (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << bit_));
    flipped_ = true;
    where_ = absl::StrCat("bit ", bit_, " of byte ", way->passed + at, " from descriptor ",
                          way->from, " to ", way->to);
  }
  way->passed += bytes->size();
}

std::unique_ptr<van::Factory> NewProxiedFactory(std::unique_ptr<van::Factory> inner,
                                                FlippingProxy* proxy, VanTotals* totals) {
  return std::make_unique<ProxiedFactory>(std::move(inner), proxy, totals);
}

}  // namespace leeway::tests
