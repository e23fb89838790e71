#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "harness/child.h"
#include "harness/stopwatch.h"
#include "raw/raw_limits.h"

namespace leeway::bench {
namespace {

bool SendAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

// False at the end of the stream.
bool ReceiveAll(int fd, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(fd, data, size, 0);
    if (got <= 0) return false;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void Prepare(int fd, const std::string& congestion) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (congestion.empty()) return;
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
             static_cast<socklen_t>(congestion.size()));
}

// Floats in pages of 2 MiB, if the system has them; zeros.
std::unique_ptr<float, decltype(&std::free)> InLargePages(std::size_t bytes) {
  constexpr std::size_t kPage = 2 << 20;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  void* const memory = std::aligned_alloc(kPage, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return {static_cast<float*>(memory), std::free};
}

// A minimal server: one thread, one piece of memory for received bytes.
void AddUp(int fd, const Command& command) {
  const std::size_t piece = std::min<std::size_t>(command.bytes, 1 << 20);
  const std::size_t tensors = command.bytes * static_cast<std::size_t>(command.in_flight);
  const auto received = InLargePages(piece), sums = InLargePages(tensors);
  const std::size_t elements = piece / sizeof(float), all = tensors / piece * elements;
  for (std::size_t at = 0; ReceiveAll(fd, reinterpret_cast<char*>(received.get()), piece);
       at = (at + elements) % all) {
    float* __restrict sum = sums.get() + at;
    const float* __restrict pushed = received.get();
    for (std::size_t i = 0; i < elements; ++i) sum[i] += pushed[i];
  }
}

// The other process: answers every message, or only the end of the stream.
int ReceiveTcp(int listener, const std::string& congestion, const Command& command) {
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) return 1;
  Prepare(fd, congestion);
  if (command.op == "add") {
    AddUp(fd, command);
    return SendAll(fd, "!", 1) ? 0 : 1;
  }
  std::vector<char> memory(command.bytes);
  const bool stream = command.op == "stream";
  const std::size_t answer = command.op == "rtt" ? command.bytes : 1;
  if (stream) {
    while (recv(fd, memory.data(), memory.size(), 0) > 0) {
    }
    return SendAll(fd, memory.data(), answer) ? 0 : 1;
  }
  while (ReceiveAll(fd, memory.data(), memory.size()) && SendAll(fd, memory.data(), answer)) {
  }
  return 0;
}

// A socket that listens on loopback; the address it got is written to `address`.
int Listen(sockaddr_in* address) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(*address);
  auto* generic = reinterpret_cast<sockaddr*>(address);
  if (listener < 0 || bind(listener, generic, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, generic, &size) != 0) {
    return -1;
  }
  return listener;
}

// Sends the same memory again and again, or the tensors in flight by turns.
void StreamTcp(int fd, const Command& command, const Stopwatch& watch, Measured* measured) {
  const std::size_t count = command.op == "add" ? static_cast<std::size_t>(command.in_flight) : 1;
  const std::vector<char> memory(command.bytes * count, 1);
  while ((measured->operations == 0 || watch.Seconds() < command.seconds) &&
         SendAll(fd, memory.data() + measured->operations % count * command.bytes, command.bytes)) {
    ++measured->operations;
  }
  shutdown(fd, SHUT_WR);
  char answer = 0;
  if (!ReceiveAll(fd, &answer, 1)) measured->error = "the connection broke";
}

void PingPongTcp(int fd, const Command& command, const Stopwatch& watch, Measured* measured) {
  std::vector<char> memory(command.bytes, 1);
  const std::size_t answer = command.op == "rtt" ? command.bytes : 1;
  for (double start = watch.Seconds(); measured->operations == 0 || start < command.seconds;) {
    if (!SendAll(fd, memory.data(), memory.size()) || !ReceiveAll(fd, memory.data(), answer)) {
      measured->error = "the connection broke";
      return;
    }
    const double end = watch.Seconds();
    measured->latencies_us.push_back(1e6 * (end - start));
    start = end;
    ++measured->operations;
  }
}

}  // namespace

Measured MeasureTcp(const std::string& congestion, const Command& command) {
  Measured measured;
  sockaddr_in address;
  const int listener = Listen(&address);
  Child receiver = Child::Fork([&] { return ReceiveTcp(listener, congestion, command); });
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    measured.error = "cannot connect to loopback";
    return measured;
  }
  Prepare(fd, congestion);
  if (command.op == "add") {  // so that the bytes on their way stay in the caches
    const int bytes = 768 << 10;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  }
  const Stopwatch watch({receiver.pid()});
  const bool one_way = command.op == "stream" || command.op == "add";
  one_way ? StreamTcp(fd, command, watch, &measured) : PingPongTcp(fd, command, watch, &measured);
  measured.seconds = watch.Seconds();
  measured.cpu_seconds = watch.Cpu();
  measured.bytes = measured.operations * command.bytes;
  close(fd);
  close(listener);
  return measured;
}

}  // namespace leeway::bench
