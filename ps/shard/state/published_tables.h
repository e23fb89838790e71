// The tables of one shard as they were frozen for publications (docs/publishing.md), at each of its
// replicas alike.
//
// Lives on the data thread's loop, as part of a ShardState. A dense table costs memory only for
// blocks that are pushed to later; rows are copied.
#ifndef LEEWAY_PS_SHARD_STATE_PUBLISHED_TABLES_H_
#define LEEWAY_PS_SHARD_STATE_PUBLISHED_TABLES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/shard/state/shard_stores.h"
#include "ps/store/shard_store.h"
#include "ps/table/table.h"
#include "runtime/memory/buffer.h"

namespace leeway::ps {

class PublishedTables {
 public:
  // Freezes the table as it is now.
  absl::Status Freeze(const Table& table, ShardStores* stores, std::uint64_t publication);
  // Forgets all publications but these; later ones than the newest of them are being made.
  void Keep(const std::set<std::uint64_t>& kept);
  // The number of publications that something is kept of.
  std::size_t size() const { return publications_.size(); }
  void Clear() { publications_.clear(); }

  // Pulls from the table as it was frozen. Where the reader has the block of publication
  // `view.have`, and it is the same, the reply is coded and has no part. NOT_FOUND: the publication
  // is not kept.
  absl::StatusOr<PullResult> Pull(const Table& table, ShardStores* stores, const PullView& view,
                                  std::uint64_t publication);

 private:
  struct Frozen {
    absl::flat_hash_map<std::uint64_t, runtime::Buffer> blocks = {};  // dense: those there were
    // Sparse, ragged: the rows. Dense: null, or a store without content, for the other blocks.
    std::unique_ptr<ShardStore> store = nullptr;
  };
  using ByTable = std::map<std::uint32_t, Frozen>;

  const runtime::Buffer* FindBlock(std::uint64_t publication, std::uint32_t table,
                                   std::uint64_t block) const;

  std::map<std::uint64_t, ByTable> publications_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_PUBLISHED_TABLES_H_
