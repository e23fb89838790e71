// Grants over an rdma connection: memory that one side has posted for an answer and the other side
// writes that answer's payload into (docs/rdma.md, "Receiving in place").
//
// Each grant is a registration of its own, which ends with it: a peer can write only where it was
// granted, and only until the answer has come or the receive was revoked. What it tries afterwards
// breaks the connection.
//
// Both classes live on the transport's loop, one of each for a connection.
#ifndef LEEWAY_VAN_RDMA_MEMORY_RDMA_GRANTS_H_
#define LEEWAY_VAN_RDMA_MEMORY_RDMA_GRANTS_H_

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
#include "van/rdma/memory/rdma_format.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

// Those that this side gives.
class RdmaGrantsGiven {
 public:
  // Nothing is granted where kRdmaGrantsOpenMax are open, or the memory cannot be registered: the
  // answer then comes by the arena.
  void Give(verbs::Device* device, std::uint64_t token, std::span<std::byte> into);
  // The device lets go of the memory, and the other side is told, unless the answer was written.
  void End(std::uint64_t token);
  // Of all, without telling: nothing is written any more.
  void EndAll() { open_.clear(); }

  // The other side has written the answer with this token to this grant: the memory, to which
  // nothing more is written. UNAVAILABLE: the grant has ended meanwhile, and what was written is
  // not to be trusted. INVALID_ARGUMENT: it is of another length, or another answer's.
  absl::StatusOr<runtime::Buffer> Take(std::uint32_t number, std::uint64_t token,
                                       std::uint64_t bytes);

  // What the other side is still to be told, of grants and their ends, in this order.
  std::size_t untold() const { return untold_.size(); }
  bool ends_untold() const { return ends_untold_ > 0; }
  // How many were moved into `grants`.
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

// Those that this side has got.
class RdmaGrantsGot {
 public:
  // INVALID_ARGUMENT: more of them than may be open.
  absl::Status OnGrant(const RdmaGrant& grant);
  // The grant for an answer with this token and a payload of so many bytes; it is used up, whether
  // it fits or not.
  std::optional<RdmaGrant> Use(std::uint64_t token, std::uint64_t bytes);

 private:
  absl::flat_hash_map<std::uint64_t, RdmaGrant> by_token_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_MEMORY_RDMA_GRANTS_H_
