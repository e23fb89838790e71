// ShmOwnSegment and ShmPeerSegment are the two segments of a connection
// (van/shm/memory/shm_format.h defines their contents).
#ifndef LEEWAY_VAN_SHM_MEMORY_SHM_SEGMENT_H_
#define LEEWAY_VAN_SHM_MEMORY_SHM_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/memory/sealed_memory.h"
#include "van/shm/memory/shm_format.h"

namespace leeway::van {

using runtime::UniqueFd;
using ShmMapping = runtime::MemoryMapping;

// This side's segment, which only this process writes.
class ShmOwnSegment {
 public:
  static absl::StatusOr<std::shared_ptr<ShmOwnSegment>> New(const ShmSizes& sizes);

  const ShmSizes& sizes() const { return sizes_; }
  int fd() const { return fd_.get(); }
  void CloseFd() { fd_ = UniqueFd(); }  // to be called when the other side has it

  ShmControl& control() const { return *reinterpret_cast<ShmControl*>(mapping_.data()); }
  std::atomic<std::uint32_t>& released(std::uint32_t unit) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(mapping_.data() +
                                                         ShmSizes::kReleasedAt)[unit];
  }
  // The export slots of the other side: the generation of an export is written here to give it
  // back.
  std::atomic<std::uint32_t>& given_back(std::uint32_t exported) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(mapping_.data() +
                                                         ShmSizes::kGivenBackAt)[exported];
  }
  std::byte* ring() const { return mapping_.data() + ShmSizes::kRingAt; }
  std::byte* arena() const { return mapping_.data() + sizes_.ArenaAt(); }

 private:
  ShmOwnSegment(const ShmSizes& sizes, UniqueFd fd, ShmMapping mapping)
      : sizes_(sizes), fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  const ShmSizes sizes_;
  UniqueFd fd_;
  const ShmMapping mapping_;
};

// The other side's segment: mapped read-only; any of its bytes may change at any moment.
class ShmPeerSegment {
 public:
  // INVALID_ARGUMENT: the memory could be taken away while it is read, or is smaller than `sizes`.
  static absl::StatusOr<std::shared_ptr<ShmPeerSegment>> Map(UniqueFd fd, const ShmSizes& sizes);

  const ShmSizes& sizes() const { return sizes_; }
  const ShmControl& control() const {
    return *reinterpret_cast<const ShmControl*>(mapping_.data());
  }
  std::uint32_t released(std::uint32_t unit) const {
    return reinterpret_cast<const std::atomic<std::uint32_t>*>(mapping_.data() +
                                                               ShmSizes::kReleasedAt)[unit]
        .load(std::memory_order_acquire);
  }
  std::uint32_t given_back(std::uint32_t exported) const {
    return reinterpret_cast<const std::atomic<std::uint32_t>*>(mapping_.data() +
                                                               ShmSizes::kGivenBackAt)[exported]
        .load(std::memory_order_acquire);
  }
  const std::byte* ring() const { return mapping_.data() + ShmSizes::kRingAt; }
  const std::byte* arena() const { return mapping_.data() + sizes_.ArenaAt(); }

 private:
  ShmPeerSegment(const ShmSizes& sizes, ShmMapping mapping)
      : sizes_(sizes), mapping_(std::move(mapping)) {}

  const ShmSizes sizes_;
  const ShmMapping mapping_;
};

// OK if this system supports such segments.
absl::Status ShmViable();

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_MEMORY_SHM_SEGMENT_H_
