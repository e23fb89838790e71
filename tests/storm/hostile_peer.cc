#include "tests/storm/hostile_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/encoding/encoding.h"
#include "van/tcp/tcp_format.h"

namespace leeway::storm {
namespace {

constexpr absl::Duration kDialPatience = absl::Seconds(2);

int Milliseconds(absl::Duration time) {
  return static_cast<int>(absl::ToInt64Milliseconds(std::max(time, absl::ZeroDuration())));
}

template <class Number>
Number NumberAt(const std::string& bytes, std::size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// Takes the first whole message out of `*bytes`; empty: it has not come yet.
tests::Frames TakeFrames(std::string* bytes) {
  if (bytes->size() < van::kTcpRecordBytes) return {};
  const std::size_t payloads = NumberAt<std::uint32_t>(*bytes, sizeof(std::uint32_t));
  std::size_t at = van::kTcpRecordBytes, size = NumberAt<std::uint32_t>(*bytes, 0);
  tests::Frames frames;
  while (true) {
    if (bytes->size() < at + size + van::kTcpChecksumBytes) return {};
    frames.push_back(bytes->substr(at, size));
    at += size + van::kTcpChecksumBytes;
    if (frames.size() == 1 + payloads) break;
    if (bytes->size() < at + van::kTcpLengthBytes) return {};
    size = NumberAt<std::uint64_t>(*bytes, at);
    at += van::kTcpLengthBytes;
  }
  bytes->erase(0, at);
  return frames;
}

}  // namespace

std::string Framed(const tests::Frames& frames) {
  const auto number = [](auto value) {
    std::string bytes(sizeof(value), '\0');
    van::Put(value, reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
  };
  const std::string none(van::kTcpChecksumBytes, '\0');
  std::string bytes =
      absl::StrCat(number(static_cast<std::uint32_t>(frames[0].size())),
                   number(static_cast<std::uint32_t>(frames.size() - 1)), none, frames[0], none);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    absl::StrAppend(&bytes, number(std::uint64_t{frames[i].size()}), none, frames[i], none);
  }
  return bytes;
}

std::uint64_t NewIncarnation() {
  static std::uint64_t last = static_cast<std::uint64_t>(::getpid()) << 32;
  return ++last;
}

std::string Opening(const Guise& as, std::uint64_t incarnation) {
  const auto greeting = van::TcpGreeting();
  return std::string(reinterpret_cast<const char*>(greeting.data()), greeting.size()) +
         Framed(
             {tests::Hello({.role = as.role, .incarnation = incarnation, .cluster = as.cluster})});
}

runtime::UniqueFd Dial(const std::string& address) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::StripPrefix(address, "tcp://"), absl::MaxSplits(':', 1));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  std::uint32_t port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) return {};
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, parts[0].c_str(), &to.sin_addr);
  runtime::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  return fd;
}

HostilePeer::HostilePeer(const std::string& address, const Guise& as, std::uint64_t incarnation)
    : fd_(Dial(address)) {
  pollfd up = {fd_.get(), POLLOUT, 0};
  ::poll(&up, 1, Milliseconds(kDialPatience));
  Say(Opening(as, incarnation));
}

bool HostilePeer::Say(const std::string& bytes) {
  return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool HostilePeer::Read() {
  char bytes[65536];
  while (true) {
    const ssize_t got = ::recv(fd_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    heard_.append(bytes, static_cast<std::size_t>(got));
  }
}

std::optional<proto::AnyMessage> HostilePeer::Take() {
  if (!greeted_ && heard_.size() >= van::kTcpGreetingBytes) {
    heard_.erase(0, van::kTcpGreetingBytes);
    greeted_ = true;
  }
  const tests::Frames frames = greeted_ ? TakeFrames(&heard_) : tests::Frames();
  if (frames.empty()) return std::nullopt;
  std::vector<runtime::Buffer> payload;
  for (std::size_t i = 1; i < frames.size(); ++i) {
    payload.push_back(runtime::Buffer::CopyOf(frames[i]));
  }
  auto message = proto::Decode(
      runtime::Buffer::CopyOf(absl::string_view(frames[0]).substr(van::kPrefixBytes)), payload);
  return message.ok() ? *std::move(message) : proto::AnyMessage();
}

void HostilePeer::AwaitAny(absl::Duration patience,
                           const std::function<bool(const proto::AnyMessage&)>& wanted) {
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    while (const auto message = Take()) {
      if (wanted(*message)) return;
    }
    pollfd in = {fd_.get(), POLLIN, 0};
    if (absl::Now() >= deadline || ::poll(&in, 1, Milliseconds(deadline - absl::Now())) <= 0)
      return;
    if (!Read() && heard_.empty()) return;
  }
}

}  // namespace leeway::storm
