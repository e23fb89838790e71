#include "tests/commands/raw_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cstdlib>
#include <variant>

#include "proto/codec.h"
#include "tests/commands/command.h"
#include "van/prefix.h"

namespace leeway::tests {
namespace {

constexpr std::size_t kFrameMax = 4096;

void SetOption(void* socket, int option, int value) {
  zmq_setsockopt(socket, option, &value, sizeof(value));
}

int PatienceMs() { return static_cast<int>(absl::ToInt64Milliseconds(Patience())); }

// "" if nothing comes.
std::string Receive(void* socket) {
  std::string frame(kFrameMax, '\0');
  const int got = zmq_recv(socket, frame.data(), frame.size(), 0);
  frame.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return frame;
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
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_DEALER);
  SetOption(socket, ZMQ_LINGER, 0);
  SetOption(socket, ZMQ_RCVTIMEO, PatienceMs());
  zmq_connect(socket, address.c_str());
  zmq_send(socket, frame.data(), frame.size(), 0);
  const absl::Status reason = ReasonIn(Receive(socket));
  zmq_close(socket);
  zmq_ctx_term(context);
  return reason;
}

void SendBytes(const std::string& address, const std::string& bytes) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
    [[maybe_unused]] const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  close(fd);
}

FakeScheduler::FakeScheduler()
    : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_ROUTER)) {
  SetOption(socket_, ZMQ_LINGER, 0);
  SetOption(socket_, ZMQ_RCVTIMEO, PatienceMs());
  zmq_bind(socket_, "tcp://127.0.0.1:*");
  char address[256] = {};
  std::size_t size = sizeof(address);
  zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, address, &size);
  address_ = address;
}

FakeScheduler::~FakeScheduler() {
  zmq_close(socket_);
  zmq_ctx_term(context_);
}

bool FakeScheduler::AnswerOne(const std::string& frame) {
  const std::string who = Receive(socket_);
  if (who.empty() || Receive(socket_).empty()) return false;
  zmq_send(socket_, who.data(), who.size(), ZMQ_SNDMORE);
  return zmq_send(socket_, frame.data(), frame.size(), 0) >= 0;
}

}  // namespace leeway::tests
