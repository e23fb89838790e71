// The Unix socket beside the shared memory: it proves that both ends share a machine, carries each
// side's segment to the other, wakes a side that sleeps, and its end is the end of the connection.
//
// Its name is abstract: no file, gone with its owner, and seen only within a network namespace.
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

// ALREADY_EXISTS when somebody has that name.
absl::StatusOr<UniqueFd> ListenOnShmName(const std::string& name);
// None when nobody is waiting.
std::optional<UniqueFd> AcceptShm(int listener, bool* out_of_descriptors);

class ShmSocket {
 public:
  // UNAVAILABLE when nobody listens, or more wait to be accepted than may.
  static absl::StatusOr<std::shared_ptr<ShmSocket>> Connect(const std::string& name);
  explicit ShmSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // The process at the other end; PERMISSION_DENIED if it belongs to another user.
  absl::StatusOr<pid_t> CheckPeer() const;

  absl::Status SendGreeting(const ShmSizes& sizes, int segment) const;
  struct Greeted {
    ShmSizes sizes;
    UniqueFd segment;
  };
  // nullopt: not yet.
  absl::StatusOr<std::optional<Greeted>> ReceiveGreeting() const;

  // Makes fd() readable at the other end. Any thread.
  void Wake() const;
  // Hands over one more descriptor, as a byte like those of Wake. False: it takes no more for now.
  bool HandOver(int fd) const;
  // Takes some of what Wake and HandOver have sent.
  enum class Drained { kSome, kNothing, kClosed };
  Drained Drain(std::vector<UniqueFd>* descriptors) const;
  // The other end sees the end at once, whoever still holds this object.
  void Shut() const;

 private:
  const UniqueFd fd_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_SOCKET_H_
