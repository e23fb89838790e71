// TcpAttacker is a peer that sends arbitrary bytes over TCP, for tests.
#ifndef LEEWAY_VAN_TESTING_TCP_ATTACKER_H_
#define LEEWAY_VAN_TESTING_TCP_ATTACKER_H_

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/encoding/encoding.h"
#include "van/prefix.h"
#include "van/tcp/tcp_format.h"
#include "van/testing/dial_raw.h"

namespace leeway::van {

template <class T>
std::string Number(T value) {
  std::string bytes(sizeof(T), '\0');
  Put(value, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

inline std::string Greeting() {
  const auto greeting = TcpGreeting();
  return std::string(reinterpret_cast<const char*>(greeting.data()), greeting.size());
}

// Stands for "no checksum".
inline const std::string kNone(kTcpChecksumBytes, '\0');

inline std::string Record(std::uint32_t first_bytes, std::uint32_t frames) {
  return Number(first_bytes) + Number(frames) + kNone;
}

inline std::string Length(std::uint64_t bytes) { return Number(bytes) + kNone; }

// A first frame that is not a valid prefix.
inline std::string Head(char filling = 'p') { return std::string(kPrefixBytes, filling) + kNone; }

// A whole message: prefix and `header`, then `payload`.
inline std::string Framed(Kind kind, absl::string_view header,
                          const std::vector<std::string>& payload = {}, std::uint64_t sent = 0) {
  Prefix prefix;
  prefix.kind = kind;
  prefix.frames = static_cast<std::uint16_t>(payload.size() + 1);
  prefix.sent = sent;
  std::string head(kPrefixBytes, '\0');
  PutPrefix(prefix, reinterpret_cast<std::byte*>(head.data()));
  std::string bytes = Record(static_cast<std::uint32_t>(kPrefixBytes + header.size()),
                             static_cast<std::uint32_t>(payload.size()));
  absl::StrAppend(&bytes, head, header, kNone);
  for (const std::string& frame : payload) {
    absl::StrAppend(&bytes, Length(frame.size()), frame, kNone);
  }
  return bytes;
}

// The hello of a peer that knows this cluster's id; 0: of one that does not.
inline std::string HelloMessage(std::uint64_t cluster = 0) {
  proto::Hello hello;
  hello.cluster = cluster;
  hello.role = Role::kWorker;
  hello.node = 99;
  hello.incarnation = 1;
  return Framed(Kind::kSession, proto::Encode(hello).text());
}

struct TcpAttacker {
  explicit TcpAttacker(const std::string& address) : fd(DialRaw(address)) {}
  ~TcpAttacker() { ::close(fd); }
  TcpAttacker(const TcpAttacker&) = delete;
  TcpAttacker& operator=(const TcpAttacker&) = delete;

  void Say(absl::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) return;  // dropped by the server, or not read for now
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Resets the connection: the system drops unread bytes at both ends at once.
  void Reset() const {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  bool Gone() const {
    while (true) {
      char bytes[4096];
      const ssize_t got = ::recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
      if (got < 0) return false;
    }
  }

  const int fd;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_TCP_ATTACKER_H_
