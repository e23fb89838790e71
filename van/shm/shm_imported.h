// The receiver's part of what is exported: the memory files of the other side that are mapped here,
// and frames that lie in them.
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

  // Takes some of what has come over the socket. UNAVAILABLE once that has ended;
  // RESOURCE_EXHAUSTED when this process can map no more; INVALID_ARGUMENT for what is no memory.
  absl::Status ReadSocket();

  // The frame where it lies. INVALID_ARGUMENT where nothing is.
  absl::StatusOr<Buffer> Take(const ShmPlace& place);
  // No frame lies in that file any more. What was taken stays as long as it is held.
  absl::Status Drop(std::uint32_t file);

 private:
  class Export;

  absl::Status ReadSocketOnce(bool* nothing);
  absl::Status Add(UniqueFd descriptor);

  const std::shared_ptr<ShmLink> link_;
  std::map<std::uint32_t, std::shared_ptr<const ShmMapping>> files_;
  std::uint64_t bytes_ = 0;  // of files_
  std::uint32_t next_file_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_IMPORTED_H_
