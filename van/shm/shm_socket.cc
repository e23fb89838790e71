#include "van/shm/shm_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/descriptors.h"
#include "van/transport.h"

namespace leeway::van {
namespace {

constexpr absl::string_view kNamePrefix = "leeway/";

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
};

Name NameOf(const std::string& name) {
  Name result;
  result.address.sun_family = AF_UNIX;
  const std::string full = absl::StrCat(kNamePrefix, name);
  // The first byte is 0, which makes the name abstract.
  std::memcpy(result.address.sun_path + 1, full.data(), full.size());
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
  return result;
}
static_assert(kNamePrefix.size() + kShmNameBytesMax < sizeof(sockaddr_un::sun_path));

UniqueFd NewSocket() {
  return UniqueFd::ClosedInChildren(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

absl::Status SocketError(absl::string_view what) {
  const int error = errno;
  if (runtime::IsOutOfDescriptors(error)) return runtime::OutOfDescriptors(error);
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

// Takes all descriptors that came with a message, so that none of them stays open by mistake.
void TakeDescriptors(msghdr* message, std::vector<UniqueFd>* taken) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      taken->emplace_back(fd);
    }
  }
}

ssize_t SendWithDescriptor(int socket, void* data, std::size_t size, int descriptor) {
  iovec bytes{data, size};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Reads the bytes and descriptors that have come. An empty UniqueFd stands for descriptors that did
// not fit or exceeded this process's limit; the kernel has closed them.
ssize_t ReceiveWithDescriptors(int socket, void* data, std::size_t size,
                               std::vector<UniqueFd>* descriptors) {
  iovec bytes{data, size};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got > 0) TakeDescriptors(&message, descriptors);
  if (got > 0 && (message.msg_flags & MSG_CTRUNC) != 0) descriptors->emplace_back();
  return got;
}

}  // namespace

absl::StatusOr<UniqueFd> ListenOnShmName(const std::string& name) {
  UniqueFd fd = NewSocket();
  if (!fd) return SocketError("socket");
  const Name local = NameOf(name);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&local.address), local.size) != 0) {
    if (errno == EADDRINUSE) return absl::AlreadyExistsError("it is in use");
    return SocketError("bind");
  }
  if (::listen(fd.get(), kAcceptBacklog) != 0) return SocketError("listen");
  return fd;
}

std::optional<UniqueFd> AcceptShm(int listener, bool* out_of_descriptors) {
  UniqueFd fd = UniqueFd::ClosedInChildren(
      ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  *out_of_descriptors =
      !fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS);
  if (!fd) return std::nullopt;
  return fd;
}

absl::StatusOr<std::shared_ptr<ShmSocket>> ShmSocket::Connect(const std::string& name) {
  UniqueFd fd = NewSocket();
  if (!fd) return SocketError("socket");
  const Name remote = NameOf(name);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&remote.address), remote.size) != 0) {
    if (errno == ECONNREFUSED) return absl::UnavailableError("connection refused");
    return SocketError("connect");
  }
  return std::make_shared<ShmSocket>(std::move(fd));
}

absl::StatusOr<pid_t> ShmSocket::CheckPeer() const {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return SocketError("SO_PEERCRED");
  }
  if (peer.uid != ::geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("process ", peer.pid, " belongs to another user (", peer.uid,
                     "): memory is shared only between processes of one user; set LEEWAY_VAN=tcp"));
  }
  return peer.pid;
}

absl::Status ShmSocket::SendGreeting(const ShmSizes& sizes, int segment) const {
  ShmGreeting greeting{};
  std::memcpy(greeting.magic, kShmMagic, sizeof(kShmMagic));
  greeting.version = kShmVersion;
  greeting.ring_bytes = sizes.ring_bytes;
  greeting.arena_units = sizes.arena_units;
  // Nothing was sent before, so the socket has room for it.
  if (SendWithDescriptor(fd(), &greeting, sizeof(greeting), segment) !=
      static_cast<ssize_t>(sizeof(greeting))) {
    return SocketError("cannot send the descriptor of shared memory");
  }
  return absl::OkStatus();
}

bool ShmSocket::HandOver(int descriptor) const {
  char byte = 0;
  return SendWithDescriptor(fd(), &byte, 1, descriptor) == 1;
}

absl::StatusOr<std::optional<ShmSocket::Greeted>> ShmSocket::ReceiveGreeting() const {
  ShmGreeting greeting{};
  std::vector<UniqueFd> descriptors;
  const ssize_t got = ReceiveWithDescriptors(fd(), &greeting, sizeof(greeting), &descriptors);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got < 0) return SocketError("recvmsg");
  if (got == 0) return absl::UnavailableError("it accepted the connection and closed it");
  if (got != static_cast<ssize_t>(sizeof(greeting)) || descriptors.size() != 1 ||
      std::memcmp(greeting.magic, kShmMagic, sizeof(kShmMagic)) != 0) {
    return absl::InvalidArgumentError("it does not speak our protocol");
  }
  if (greeting.version != kShmVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it shares memory in version ", greeting.version, " of the layout, this side in ",
        kShmVersion, "; run the same release of leeway on both sides"));
  }
  Greeted greeted;
  greeted.sizes.ring_bytes = greeting.ring_bytes;
  greeted.sizes.arena_units = greeting.arena_units;
  greeted.segment = std::move(descriptors[0]);
  return greeted;
}

void ShmSocket::Wake() const {
  // If the socket is full of unread bytes, it is readable already.
  [[maybe_unused]] const ssize_t sent = ::send(fd(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ShmSocket::Drained ShmSocket::Drain(std::vector<UniqueFd>* descriptors) const {
  std::array<char, 512> bytes;
  const ssize_t got = ReceiveWithDescriptors(fd(), bytes.data(), bytes.size(), descriptors);
  if (got > 0) return Drained::kSome;  // the rest is read the next time
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Drained::kNothing;
  return Drained::kClosed;
}

void ShmSocket::Shut() const { ::shutdown(fd(), SHUT_RDWR); }

}  // namespace leeway::van
