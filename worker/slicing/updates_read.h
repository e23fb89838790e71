// How often each part of a table had been updated when this worker last pulled it: what the
// staleness of its next pushes is counted from (Consistency::Weight).
//
// One for each table with weights that a worker has opened. Lives on the core's loop, in Tables.
#ifndef LEEWAY_WORKER_SLICING_UPDATES_READ_H_
#define LEEWAY_WORKER_SLICING_UPDATES_READ_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "worker/slicing/slice.h"

namespace leeway::worker {

class UpdatesRead {
 public:
  explicit UpdatesRead(bool dense) : dense_(dense) {}

  // The values of a pull of that piece. Answers may overtake each other.
  void Note(const Piece& piece, std::uint64_t updates) {
    std::uint64_t& known = by_part_[PartOf(piece)];
    known = std::max(known, updates);
  }
  // 0 before the first pull.
  std::uint64_t Of(const Piece& piece) const {
    const auto found = by_part_.find(PartOf(piece));
    return found == by_part_.end() ? 0 : found->second;
  }

 private:
  std::uint64_t PartOf(const Piece& piece) const { return dense_ ? piece.block : piece.shard; }

  const bool dense_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> by_part_;  // by block or shard
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_UPDATES_READ_H_
