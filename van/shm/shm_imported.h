// ShmImported is the receiver's side of zero-copy exports: it maps the memory files of the other
// side, and makes Buffers of the frames that lie in them. Lives on the transport's loop.
#ifndef LEEWAY_VAN_SHM_SHM_IMPORTED_H_
#define LEEWAY_VAN_SHM_SHM_IMPORTED_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "van/shm/shm_link.h"
#include "van/van.h"

namespace leeway::van {

class ShmImported {
 public:
  explicit ShmImported(std::shared_ptr<ShmLink> link) : link_(std::move(link)) {}

  // Handles some of what has come over the socket. UNAVAILABLE: the socket has ended.
  // RESOURCE_EXHAUSTED: this process can map no more. INVALID_ARGUMENT: a descriptor is not such
  // memory.
  absl::Status ReadSocket();

  // The frame, in place. INVALID_ARGUMENT: `place` does not lie in exported memory.
  absl::StatusOr<Buffer> Take(const ShmPlace& place);
  // Unmaps that file. Frames in it that are still held stay valid.
  absl::Status Drop(std::uint32_t file);

 private:
  class Export;

  absl::Status ReadSocketOnce(bool* nothing);
  absl::Status Add(UniqueFd descriptor);

  const std::shared_ptr<ShmLink> link_;
  std::map<std::uint32_t, std::shared_ptr<const ShmMapping>> files_;
  std::uint64_t bytes_ = 0;  // sum over files_
  std::uint32_t next_file_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_IMPORTED_H_
