// The two segments of a connection (shm_format.h has what lies in them).
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

// This side's segment: what only we write.
class ShmOwnSegment {
 public:
  static absl::StatusOr<std::shared_ptr<ShmOwnSegment>> New(const ShmSizes& sizes);

  const ShmSizes& sizes() const { return sizes_; }
  int fd() const { return fd_.get(); }
  void CloseFd() { fd_ = UniqueFd(); }  // once the other side has it

  ShmControl& control() const { return *reinterpret_cast<ShmControl*>(mapping_.data()); }
  std::atomic<std::uint32_t>& released(std::uint32_t unit) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(mapping_.data() +
                                                         ShmSizes::kReleasedAt)[unit];
  }
  // Of what the other side has exported: the generation it was exported with, once we are done with
  // it.
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

// The other side's: read-only here, and whatever it holds may change at any moment.
class ShmPeerSegment {
 public:
  // Refuses memory that could be taken away under our hands, or is less than `sizes` says.
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

// Whether this system can do it at all.
absl::Status ShmViable();

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_MEMORY_SHM_SEGMENT_H_
