#include "van/shm/memory/shm_segment.h"

#include "runtime/base/descriptors.h"
#include "runtime/base/status_macros.h"

namespace leeway::van {

absl::StatusOr<std::shared_ptr<ShmOwnSegment>> ShmOwnSegment::New(const ShmSizes& sizes) {
  LEEWAY_ASSIGN_OR_RETURN(runtime::SealedMemory memory, runtime::SealedMemory::New(sizes.Total()));
  return std::shared_ptr<ShmOwnSegment>(
      new ShmOwnSegment(sizes, std::move(memory.fd), std::move(memory.mapping)));
}

absl::StatusOr<std::shared_ptr<ShmPeerSegment>> ShmPeerSegment::Map(UniqueFd fd,
                                                                    const ShmSizes& sizes) {
  if (!fd) return runtime::OutOfDescriptors();  // for the one that came
  if (!sizes.Valid()) return absl::InvalidArgumentError("it offers a segment of invalid size");
  LEEWAY_ASSIGN_OR_RETURN(const std::size_t bytes, runtime::SealedSize(fd.get()));
  if (bytes < sizes.Total()) {
    return absl::InvalidArgumentError("it offers a segment that is smaller than it announces");
  }
  LEEWAY_ASSIGN_OR_RETURN(ShmMapping mapping, runtime::MapToRead(fd.get(), sizes.Total()));
  return std::shared_ptr<ShmPeerSegment>(new ShmPeerSegment(sizes, std::move(mapping)));
}

absl::Status ShmViable() {
  ShmSizes small;
  small.ring_bytes = kShmRingBytesMin;
  small.arena_units = 1;
  return ShmOwnSegment::New(small).status();
}

}  // namespace leeway::van
