// ZmqContext and ZmqSocket own a context of ZeroMQ and its sockets.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_CONTEXT_H_
#define LEEWAY_VAN_ZMQ_ZMQ_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway::van {

// Shared by the vans of a factory. Destroyed with the last of them, after ZeroMQ has sent what
// lingers (each socket has a limit for that).
class ZmqContext {
 public:
  explicit ZmqContext(int io_threads);
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  void* get() const { return context_; }

  // The inproc names that are listened on. ZeroMQ itself would let a socket connect to a name
  // without listener, and wait. Any thread.
  bool AddInproc(const std::string& name);
  void RemoveInproc(const std::string& name);
  bool HasInproc(const std::string& name) const;

  std::uint64_t NextNumber();  // for unique names; any thread

  // Takes over the reading end of the monitor of a socket that has been closed but lingers.
  void KeepMonitor(void* socket);

  // A new path for a Unix socket, in a folder of the context's own that is removed with it; empty
  // if the folder cannot be made.
  std::string NewIpcPath();

 private:
  void* context_;
  mutable std::mutex mutex_;
  std::set<std::string> inproc_;
  std::uint64_t next_number_ = 1;
  std::string ipc_folder_;
  std::vector<void*> monitors_;
};

// ZeroMQ's error `error` as a status, with `what` in front.
absl::Status ZmqError(const std::string& what, int error);

class ZmqSocket {
 public:
  static absl::StatusOr<ZmqSocket> New(const std::shared_ptr<ZmqContext>& context, int type);
  ZmqSocket() = default;
  ZmqSocket(ZmqSocket&& other) noexcept
      : context_(std::move(other.context_)), socket_(std::exchange(other.socket_, nullptr)) {}
  ZmqSocket& operator=(ZmqSocket&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~ZmqSocket();

  void GiveMonitorToContext();

  void* get() const { return socket_; }
  void Set(int option, int value);
  void Set(int option, std::int64_t value);
  int Get(int option) const;
  std::string GetString(int option) const;

 private:
  std::shared_ptr<ZmqContext> context_;  // kept at least as long as the socket
  void* socket_ = nullptr;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_CONTEXT_H_
