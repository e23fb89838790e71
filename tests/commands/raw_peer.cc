#include "tests/commands/raw_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/encoding/encoding.h"
#include "runtime/config/address.h"
#include "tests/commands/command.h"
#include "van/prefix.h"
#include "van/tcp/tcp_format.h"

namespace leeway::tests {
namespace {

constexpr std::size_t kFrameMax = 4096;

// Limits a test's waiting for bytes that never come.
void BePatient(int fd) {
  const timeval patience = absl::ToTimeval(Patience());
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int Connect(const std::string& address) {
  const sockaddr_in to = Loopback(runtime::PortOf(address));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BePatient(fd);
  connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  return fd;
}

void Say(int fd, const std::string& bytes) {
  [[maybe_unused]] const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Sends the transport's greeting, and a message with that frame.
void SayFrame(int fd, const std::string& frame) {
  const auto greeting = van::TcpGreeting();
  std::string bytes(reinterpret_cast<const char*>(greeting.data()), greeting.size());
  std::string record(van::kTcpRecordBytes, '\0');
  van::Put(static_cast<std::uint32_t>(frame.size()), reinterpret_cast<std::byte*>(record.data()));
  Say(fd, bytes + record + frame + std::string(van::kTcpChecksumBytes, '\0'));
}

bool Read(int fd, std::string* bytes) {
  return recv(fd, bytes->data(), bytes->size(), MSG_WAITALL) == static_cast<ssize_t>(bytes->size());
}

// The first frame that comes; "" if none does.
std::string ReceiveFrame(int fd) {
  std::string greeting(van::kTcpGreetingBytes, '\0'), record(van::kTcpRecordBytes, '\0');
  if (!Read(fd, &greeting) || !Read(fd, &record)) return "";
  const auto size = van::Get<std::uint32_t>(reinterpret_cast<const std::byte*>(record.data()));
  std::string frame(std::min<std::size_t>(size, kFrameMax), '\0');
  return Read(fd, &frame) ? frame : "";
}

absl::Status ReasonIn(const std::string& frame) {
  if (frame.size() <= van::kPrefixBytes) return absl::OkStatus();
  const auto message = proto::Decode(
      runtime::Buffer::CopyOf(absl::string_view(frame).substr(van::kPrefixBytes)), {});
  if (!message.ok()) return message.status();
  const auto* reject = std::get_if<proto::Reject>(&*message);
  return reject == nullptr ? absl::OkStatus() : reject->why;
}

}  // namespace

std::string Greeting(Role role, std::uint32_t protocol) {
  proto::Hello hello;
  hello.role = role;
  hello.node = 9;
  hello.incarnation = 99;
  hello.protocol = hello.protocol_min = protocol;
  van::Prefix prefix;
  prefix.kind = van::Kind::kSession;
  std::string frame(van::kPrefixBytes, '\0');
  van::PutPrefix(prefix, reinterpret_cast<std::byte*>(frame.data()));
  const runtime::Buffer header = proto::Encode(hello);
  return frame.append(header.text().data(), header.size());
}

absl::Status RejectionOf(const std::string& address, const std::string& frame) {
  const int fd = Connect(address);
  SayFrame(fd, frame);
  const absl::Status reason = ReasonIn(ReceiveFrame(fd));
  close(fd);
  return reason;
}

void SendBytes(const std::string& address, const std::string& bytes) {
  const int fd = Connect(address);
  Say(fd, bytes);
  close(fd);
}

FakeScheduler::FakeScheduler() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  bind(listener_, generic, size);
  listen(listener_, SOMAXCONN);
  getsockname(listener_, generic, &size);
  BePatient(listener_);
  address_ = absl::StrCat("tcp://127.0.0.1:", ntohs(address.sin_port));
}

FakeScheduler::~FakeScheduler() {
  if (accepted_ >= 0) close(accepted_);
  close(listener_);
}

bool FakeScheduler::AnswerOne(const std::string& frame) {
  accepted_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted_ < 0) return false;
  BePatient(accepted_);
  // The other side says nothing before it has been greeted.
  SayFrame(accepted_, frame);
  return !ReceiveFrame(accepted_).empty();
}

}  // namespace leeway::tests
