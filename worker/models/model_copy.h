// A reader's copy of a published model: the values of its tables, all of one version, and what has
// been fetched of another one, apart from them until it is applied.
//
// Fetching ends on the core's loop (the sinks of the pulls), all else is the user's thread; a sink
// that is late writes into memory of its own.
#ifndef LEEWAY_WORKER_MODELS_MODEL_COPY_H_
#define LEEWAY_WORKER_MODELS_MODEL_COPY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "worker/slicing/slice.h"
#include "worker/slicing/table_info.h"

namespace leeway::worker {

class ModelCopy {
 public:
  // What one pull of a table has brought.
  struct Fetched {
    struct Block {
      runtime::Buffer whole;       // empty: it is what there was, with the difference
      runtime::Buffer difference;  // empty: none
      std::uint64_t digest = 0;    // of the block with it
    };
    std::vector<Block> blocks;
    std::uint64_t bytes_received = 0;
  };

  // Dense tables, which are open.
  explicit ModelCopy(std::vector<std::shared_ptr<const TableInfo>> tables);

  std::size_t size() const { return tables_.size(); }
  const TableInfo& table(std::size_t i) const { return *tables_[i]; }
  std::span<const std::byte> values(std::size_t i) const { return values_[i]; }
  // The version that values() are of; 0: of none yet.
  const proto::PublishedVersion& version() const { return version_; }

  // The pulls that fetch a version, one for each table. Those of an earlier call count no more.
  std::vector<Sliced> Fetch(const proto::PublishedVersion& version);
  // All of them have succeeded: values() become those that were fetched, in one pass over what has
  // changed.
  void Apply();
  // Whether values() are the version's, by the digests of what the last Apply has changed; to be
  // called before the next Fetch. DATA_LOSS: they are not, and the next Fetch fetches all of it.
  absl::Status Verify();
  // compress::DigestOfBlock, summed up over all blocks, of the version; of no values: 0.
  std::uint64_t digest() const { return digest_; }

  // Of all fetches.
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  std::span<std::byte> BlockOf(std::size_t table, std::size_t block, std::uint64_t block_bytes);

  const std::vector<std::shared_ptr<const TableInfo>> tables_;
  std::vector<std::vector<std::byte>> values_;
  proto::PublishedVersion version_;
  proto::PublishedVersion fetched_version_;
  std::vector<std::shared_ptr<Fetched>> fetched_;
  std::uint64_t bytes_received_ = 0;
  std::uint64_t digest_ = 0;
  std::vector<std::shared_ptr<Fetched>> unverified_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_MODELS_MODEL_COPY_H_
