#include "cluster/workers.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "cluster/work.h"

namespace leeway::bench {
namespace {

// Both ends run the same program, so the bytes are sent as they lie.
struct Order {
  char op[32];
  std::uint64_t bytes;
  std::int32_t in_flight;
  double seconds;
};
struct Report {
  std::uint64_t operations;
  std::uint64_t bytes;
  double seconds;
  bool failed;
};

template <class T>
bool Get(int fd, T* value) {
  return recv(fd, value, sizeof(*value), MSG_WAITALL) == sizeof(*value);
}
template <class T>
bool Put(int fd, const T& value) {
  return send(fd, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value);
}

int Serve(int fd, const Config& config, const std::string& transport) {
  const absl::StatusOr<ClusterWorker> worker = ClusterWorker::Connect(config, transport);
  if (!worker.ok()) return 1;
  Work work(worker->get(), {}, Allocates(transport));
  for (Order order; Get(fd, &order);) {
    const Measured measured = work.Measure({.op = order.op,
                                            .bytes = order.bytes,
                                            .in_flight = order.in_flight,
                                            .seconds = order.seconds});
    const Report report{measured.operations, measured.bytes, measured.seconds,
                        !measured.error.empty()};
    if (!Put(fd, report)) break;
  }
  return 0;
}

}  // namespace

OtherWorkers::OtherWorkers(int count, const Config& config, const std::string& transport) {
  for (int i = 0; i < count; ++i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
    others_.push_back({Child::Fork([&] {
                         close(ends[0]);
                         return Serve(ends[1], config, transport);
                       }),
                       ends[0]});
    close(ends[1]);
  }
}

OtherWorkers::~OtherWorkers() {
  for (Other& other : others_) close(other.fd);
}

std::vector<pid_t> OtherWorkers::pids() const {
  std::vector<pid_t> pids;
  for (const Other& other : others_) pids.push_back(other.child.pid());
  return pids;
}

void OtherWorkers::Begin(const Command& command) {
  Order order{
      .op = {}, .bytes = command.bytes, .in_flight = command.in_flight, .seconds = command.seconds};
  std::strncpy(order.op, command.op.c_str(), sizeof(order.op) - 1);
  for (const Other& other : others_) Put(other.fd, order);
}

void OtherWorkers::AddTo(Measured* measured) {
  for (const Other& other : others_) {
    Report report{};
    if (!Get(other.fd, &report) || report.failed) {
      measured->error = "another worker failed";
      return;
    }
    measured->operations += report.operations;
    measured->bytes += report.bytes;
    measured->seconds = std::max(measured->seconds, report.seconds);
  }
}

}  // namespace leeway::bench
