// ShmSocket is the Unix socket beside the shared memory: it proves that both ends are on one
// machine, carries the descriptors of the segments, wakes a side that sleeps, and its end is the
// end of the connection.
//
// Its name is abstract: there is no file, the name vanishes with its owner, and it is visible only
// within a network namespace.
#ifndef LEEWAY_VAN_SHM_SHM_SOCKET_H_
#define LEEWAY_VAN_SHM_SHM_SOCKET_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "van/shm/memory/shm_format.h"
#include "van/shm/memory/shm_segment.h"

namespace leeway::van {

inline constexpr std::size_t kShmNameBytesMax = 90;

// ALREADY_EXISTS: the name is in use.
absl::StatusOr<UniqueFd> ListenOnShmName(const std::string& name);
// nullopt: no connection waits to be accepted.
std::optional<UniqueFd> AcceptShm(int listener, bool* out_of_descriptors);

class ShmSocket {
 public:
  // UNAVAILABLE: no process listens on that name, or its queue of connections is full.
  static absl::StatusOr<std::shared_ptr<ShmSocket>> Connect(const std::string& name);
  explicit ShmSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // The id of the process at the other end; PERMISSION_DENIED if it belongs to another user.
  absl::StatusOr<pid_t> CheckPeer() const;

  absl::Status SendGreeting(const ShmSizes& sizes, int segment) const;
  struct Greeted {
    ShmSizes sizes;
    UniqueFd segment;
  };
  // nullopt: it has not come yet.
  absl::StatusOr<std::optional<Greeted>> ReceiveGreeting() const;

  // Sends a byte, which makes fd() readable at the other end. Any thread.
  void Wake() const;
  // Sends a descriptor with a byte like those of Wake. False: the socket is full for now.
  bool HandOver(int fd) const;
  // Reads some of what Wake and HandOver have sent.
  enum class Drained { kSome, kNothing, kClosed };
  Drained Drain(std::vector<UniqueFd>* descriptors) const;
  // Ends the connection. The other end sees that at once, even if this object is still held.
  void Shut() const;

 private:
  const UniqueFd fd_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_SOCKET_H_
