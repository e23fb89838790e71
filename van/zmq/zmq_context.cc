#include "van/zmq/zmq_context.h"

#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/prefixed.h"
#include "van/zmq/zmq_api.h"

namespace leeway::van {
namespace {

constexpr long kStoppedWaitMs = 2000;  // longer than any socket lingers

void HearUntilStopped(void* monitor) {
  zmq_pollitem_t item{monitor, 0, ZMQ_POLLIN, 0};
  while (Zmq().zmq_poll(&item, 1, kStoppedWaitMs) > 0) {
    char frame[512];
    const int size = Zmq().zmq_recv(monitor, frame, sizeof(frame), ZMQ_DONTWAIT);
    std::uint16_t event = 0;
    if (size == sizeof(event) + sizeof(std::uint32_t)) std::memcpy(&event, frame, sizeof(event));
    if (size < 0 || event == ZMQ_EVENT_MONITOR_STOPPED) return;
  }
}

// ZeroMQ allocates each large message by malloc and frees it when the message has been used. By
// default malloc returns such memory to the system, and the next message costs a page fault for
// every 4 KiB, which takes longer than receiving it. So malloc is told to keep it; the amount is
// bounded by what may be under way (Limits::send_window_bytes). Settings of malloc in the
// environment have precedence.
void RecycleMessages() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr int kMmapThresholdMax = 32 << 20;  // the largest value that malloc accepts
    constexpr int kKept = 512 << 20;
    if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) {
      mallopt(M_MMAP_THRESHOLD, kMmapThresholdMax);
    }
    if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) mallopt(M_TRIM_THRESHOLD, kKept);
  });
}

}  // namespace

ZmqContext::ZmqContext(int io_threads) : context_(LoadZmq().ok() ? Zmq().zmq_ctx_new() : nullptr) {
  if (context_ == nullptr) return;
  RecycleMessages();
  Zmq().zmq_ctx_set(context_, ZMQ_IO_THREADS, std::max(1, io_threads));
  // Each connection needs three sockets: itself and both ends of its monitor.
  Zmq().zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, Zmq().zmq_ctx_get(context_, ZMQ_SOCKET_LIMIT));
}

ZmqContext::~ZmqContext() {
  for (void* monitor : monitors_) {
    // The watched socket must have ended first: ZeroMQ blocks until its events are read.
    HearUntilStopped(monitor);
    Zmq().zmq_close(monitor);
  }
  while (context_ != nullptr && Zmq().zmq_ctx_term(context_) != 0 && Zmq().zmq_errno() == EINTR) {
  }
  if (!ipc_folder_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(ipc_folder_, ignored);
  }
}

bool ZmqContext::AddInproc(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return inproc_.insert(name).second;
}

void ZmqContext::RemoveInproc(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  inproc_.erase(name);
}

bool ZmqContext::HasInproc(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return inproc_.contains(name);
}

std::uint64_t ZmqContext::NextNumber() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_number_++;
}

void ZmqContext::KeepMonitor(void* socket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  monitors_.push_back(socket);
}

std::string ZmqContext::NewIpcPath() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ipc_folder_.empty()) {
    std::error_code error;
    std::string folder = std::filesystem::temp_directory_path(error).string();
    if (error) folder = "/tmp";
    folder += "/leeway-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) return std::string();
    ipc_folder_ = folder;
  }
  return absl::StrCat(ipc_folder_, "/", next_number_++);
}

absl::Status ZmqError(const std::string& what, int error) {
  const std::string message = absl::StrCat(what, ": ", Zmq().zmq_strerror(error));
  if (runtime::IsOutOfDescriptors(error)) {
    return runtime::Prefixed(what, runtime::OutOfDescriptors(error));
  }
  return absl::InternalError(message);
}

absl::StatusOr<ZmqSocket> ZmqSocket::New(const std::shared_ptr<ZmqContext>& context, int type) {
  ZmqSocket socket;
  socket.context_ = context;
  socket.socket_ = Zmq().zmq_socket(context->get(), type);
  if (socket.socket_ == nullptr) return ZmqError("cannot make a ZeroMQ socket", Zmq().zmq_errno());
  // Memory is limited by credits in bytes, not by numbers of messages.
  socket.Set(ZMQ_SNDHWM, 0);
  socket.Set(ZMQ_RCVHWM, 0);
  socket.Set(ZMQ_LINGER, 0);
  // With a ZAP domain ZeroMQ refuses peers that speak ZMTP 1 or 2. Without one, random bytes that
  // look like their handshake can reach a socket that is being closed, where libzmq 4.3 aborts the
  // process (an assertion in zmtp_engine.cpp, process_routing_id_msg). No ZAP handler runs, so
  // nothing else changes.
  constexpr char kDomain[] = "leeway";
  Zmq().zmq_setsockopt(socket.socket_, ZMQ_ZAP_DOMAIN, kDomain, sizeof(kDomain) - 1);
  return socket;
}

ZmqSocket::~ZmqSocket() {
  if (socket_ != nullptr) Zmq().zmq_close(socket_);
}

void ZmqSocket::GiveMonitorToContext() {
  if (socket_ != nullptr) context_->KeepMonitor(std::exchange(socket_, nullptr));
}

void ZmqSocket::Set(int option, int value) {
  Zmq().zmq_setsockopt(socket_, option, &value, sizeof(value));
}

void ZmqSocket::Set(int option, std::int64_t value) {
  Zmq().zmq_setsockopt(socket_, option, &value, sizeof(value));
}

int ZmqSocket::Get(int option) const {
  int value = 0;
  std::size_t size = sizeof(value);
  Zmq().zmq_getsockopt(socket_, option, &value, &size);
  return value;
}

std::string ZmqSocket::GetString(int option) const {
  char text[1024];
  std::size_t size = sizeof(text);
  if (Zmq().zmq_getsockopt(socket_, option, text, &size) != 0 || size == 0) return std::string();
  return std::string(text, size - 1);
}

}  // namespace leeway::van
