#include <malloc.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "harness/child.h"
#include "harness/stopwatch.h"
#include "raw/raw_limits.h"

namespace leeway::bench {
namespace {

constexpr std::uint64_t kQueuedBytes = 16 << 20;  // on their way, at either side
constexpr std::uint64_t kLendFrom = 4096;         // larger messages are not copied

// Keeps freed buffers instead of returning them to the system, page by page.
void RecycleMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int Queued(const Command& command) {
  return static_cast<int>(
      std::max<std::uint64_t>(4, kQueuedBytes / std::max<std::uint64_t>(command.bytes, 64)));
}

class Socket {
 public:
  Socket(int type, int queued) : context_(zmq_ctx_new()), socket_(zmq_socket(context_, type)) {
    const int linger = 0;
    zmq_setsockopt(socket_, ZMQ_SNDHWM, &queued, sizeof(queued));
    zmq_setsockopt(socket_, ZMQ_RCVHWM, &queued, sizeof(queued));
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof(linger));
  }
  ~Socket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  void* get() const { return socket_; }

 private:
  void* context_;
  void* socket_;
};

bool Take(void* socket, std::size_t* size) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  const bool got = zmq_msg_recv(&message, socket, 0) >= 0;
  *size = zmq_msg_size(&message);
  zmq_msg_close(&message);
  return got;
}

bool Give(void* socket, const std::vector<char>& memory) {
  if (memory.size() < kLendFrom) return zmq_send(socket, memory.data(), memory.size(), 0) >= 0;
  zmq_msg_t message;
  zmq_msg_init_data(
      &message, const_cast<char*>(memory.data()), memory.size(), [](void*, void*) {}, nullptr);
  return zmq_msg_send(&message, socket, 0) >= 0;
}

// The other process: answers every message, or, in a stream, an empty one.
int ReceiveZmq(const std::string& endpoint, int ready, const Command& command) {
  RecycleMemory();
  const Socket socket(ZMQ_PAIR, Queued(command));
  if (zmq_bind(socket.get(), endpoint.c_str()) != 0) return 1;
  char bound[256];
  std::size_t size = sizeof(bound);
  zmq_getsockopt(socket.get(), ZMQ_LAST_ENDPOINT, bound, &size);
  if (write(ready, bound, size) != static_cast<ssize_t>(size)) return 1;
  const bool stream = command.op == "stream";
  const std::vector<char> answer(command.op == "rtt" ? command.bytes : 1);
  while (Take(socket.get(), &size)) {
    if ((!stream || size == 0) && !Give(socket.get(), answer)) return 1;
  }
  return 0;
}

void StreamZmq(void* socket, const Command& command, const Stopwatch& watch, Measured* measured) {
  constexpr int kLook = 32;
  const std::uint64_t buffers = std::max<std::uint64_t>(1, kQueuedBytes / command.bytes);
  const std::vector<std::vector<char>> memory(std::min<std::uint64_t>(buffers, 16),
                                              std::vector<char>(command.bytes, 1));
  const std::uint64_t look = command.bytes < kLendFrom ? kLook : 1;
  for (; measured->operations == 0 || measured->operations % look != 0 ||
         watch.Seconds() < command.seconds;
       ++measured->operations) {
    if (!Give(socket, memory[measured->operations % memory.size()])) {
      measured->error = zmq_strerror(zmq_errno());
      return;
    }
  }
  std::size_t size = 0;
  zmq_send(socket, nullptr, 0, 0);
  Take(socket, &size);
}

void PingPongZmq(void* socket, const Command& command, const Stopwatch& watch, Measured* measured) {
  const std::vector<char> memory(command.bytes, 1);
  std::size_t size = 0;
  for (double start = watch.Seconds(); measured->operations == 0 || start < command.seconds;) {
    if (!Give(socket, memory) || !Take(socket, &size)) {
      measured->error = zmq_strerror(zmq_errno());
      return;
    }
    const double end = watch.Seconds();
    measured->latencies_us.push_back(1e6 * (end - start));
    start = end;
    ++measured->operations;
  }
}

}  // namespace

Measured MeasureZmq(const std::string& transport, const Command& command) {
  Measured measured;
  int ready[2];
  if (pipe(ready) != 0) {
    measured.error = "no pipe";
    return measured;
  }
  const std::string endpoint = transport == "ipc" ? "ipc://*" : "tcp://127.0.0.1:*";
  Child receiver = Child::Fork([&] { return ReceiveZmq(endpoint, ready[1], command); });
  close(ready[1]);  // so that the end of the receiver is seen
  char bound[256] = {};
  const bool up = read(ready[0], bound, sizeof(bound) - 1) > 0;
  close(ready[0]);
  const Socket socket(ZMQ_PAIR, Queued(command));
  if (!up || zmq_connect(socket.get(), bound) != 0) {
    measured.error = "cannot connect to " + endpoint;
    return measured;
  }
  const auto run = command.op == "stream" ? StreamZmq : PingPongZmq;
  Command warm_up = command;
  warm_up.seconds = 0.02;
  Measured ignored;
  run(socket.get(), warm_up, Stopwatch(), &ignored);
  const Stopwatch watch({receiver.pid()});
  run(socket.get(), command, watch, &measured);
  measured.seconds = watch.Seconds();
  measured.cpu_seconds = watch.Cpu();
  measured.bytes = measured.operations * command.bytes;
  return measured;
}

}  // namespace leeway::bench
