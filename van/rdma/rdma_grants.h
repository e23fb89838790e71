// RdmaGrantsGiven and RdmaGrantsGot are the grants of an rdma connection: memory that one side has
// posted for an answer, and that the other side writes the answer's payload into (docs/rdma.md,
// "Receiving in place").
//
// Each grant is a memory registration of its own, which ends with the grant. So a peer can write
// only where it was granted, and only until the answer has come or the receive was revoked. A write
// after that breaks the connection.
//
// Both classes live on the transport's loop, one of each for a connection.
#ifndef LEEWAY_VAN_RDMA_RDMA_GRANTS_H_
#define LEEWAY_VAN_RDMA_RDMA_GRANTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/memory/buffer.h"
#include "van/rdma/rdma_format.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

// The grants that this side gives.
class RdmaGrantsGiven {
 public:
  // Grants memory. If kRdmaGrantsOpenMax grants are open, or the memory cannot be registered,
  // nothing is granted and the answer comes through the arena.
  void Give(verbs::Device* device, std::uint64_t token, std::span<std::byte> into);
  // Ends a grant: the registration ends, and the other side is told, unless the answer was written.
  void End(std::uint64_t token);
  // Ends all grants without telling the other side: nothing is written any more.
  void EndAll() { open_.clear(); }

  // The other side has written the answer with this token to this grant. Returns the memory, which
  // is not written to any more. UNAVAILABLE: the grant has ended meanwhile, so the bytes cannot be
  // trusted. INVALID_ARGUMENT: wrong length, or the grant is for another answer.
  absl::StatusOr<runtime::Buffer> Take(std::uint32_t number, std::uint64_t token,
                                       std::uint64_t bytes);

  // The grants, and ends of grants, that the other side has not been told yet, in this order.
  std::size_t untold() const { return untold_.size(); }
  bool ends_untold() const { return ends_untold_ > 0; }
  // Moves some of them into `grants`, and returns how many.
  std::size_t Tell(std::span<RdmaGrant> grants);

 private:
  struct Open {
    std::uint64_t token = 0;
    std::span<std::byte> into;
    std::unique_ptr<verbs::MemoryRegion> region;
  };

  std::uint32_t next_number_ = 1;
  std::map<std::uint32_t, Open> open_;  // by number
  std::deque<RdmaGrant> untold_;
  std::size_t ends_untold_ = 0;
};

// The grants that this side has got.
class RdmaGrantsGot {
 public:
  // INVALID_ARGUMENT: more grants than may be open.
  absl::Status OnGrant(const RdmaGrant& grant);
  // The grant for an answer with this token and a payload of `bytes` bytes. The grant is used up,
  // whether it fits or not.
  std::optional<RdmaGrant> Use(std::uint64_t token, std::uint64_t bytes);

 private:
  absl::flat_hash_map<std::uint64_t, RdmaGrant> by_token_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_GRANTS_H_
