// The dense tables of one shard as they were frozen for publications (docs/publishing.md), at each
// of its replicas alike.
//
// Lives on the data thread's loop, as part of a ShardState. They cost memory only for blocks
// that are pushed to later.
#ifndef LEEWAY_PS_SHARD_STATE_PUBLISHED_TABLES_H_
#define LEEWAY_PS_SHARD_STATE_PUBLISHED_TABLES_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/replication/log/log_entry.h"
#include "ps/shard/state/shard_stores.h"
#include "ps/store/shard_store.h"
#include "ps/table/table.h"
#include "runtime/memory/buffer.h"

namespace leeway::ps {

// The differences that were made lately, each once for all readers that ask for it; the oldest go
// when all have more than kBytesMax.
class KeptDifferences {
 public:
  static constexpr std::uint64_t kBytesMax = 8 << 20;
  struct Key {
    std::uint64_t from = 0, to = 0;  // publications
    std::uint32_t table = 0;
    std::uint64_t block = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // Empty: the block itself is shorter. Null: it is not known.
  const runtime::Buffer* Find(const Key& key) const;
  void Keep(const Key& key, runtime::Buffer difference);
  // Those of a publication that is forgotten.
  void Forget(std::uint64_t publication);
  void Clear();

 private:
  void Drop(const Key& key);

  std::map<Key, runtime::Buffer> kept_;
  std::deque<Key> in_turn_;
  std::uint64_t bytes_ = 0;
};

class PublishedTables {
 public:
  // Freezes the table as it is now.
  void Freeze(const Table& table, ShardStores* stores, std::uint64_t publication);
  // Forgets all publications but these; later ones than the newest of them are being made.
  void Keep(const std::set<std::uint64_t>& kept);
  // The number of publications that something is kept of.
  std::size_t size() const { return publications_.size(); }
  void Clear() {
    publications_.clear();
    differences_.Clear();
  }

  // All that is frozen, for a replica that joins, which has the stores' content already.
  std::vector<LogEntry> Export(Tables* tables, ShardStores* stores);
  // Such an entry, there. `table` is that of the entry.
  absl::Status Import(const LogEntry& entry, const Table& table, ShardStores* stores);

  // Pulls from the table as it was frozen. Where the reader has the block of publication
  // `view.have`, the reply is coded: its only part is what has changed since; it has none where
  // nothing has. It is the block where that is shorter. NOT_FOUND: the publication is not kept.
  absl::StatusOr<PullResult> Pull(const Table& table, ShardStores* stores, const PullView& view,
                                  std::uint64_t publication);

 private:
  struct Block {
    runtime::Buffer values;
    std::optional<std::uint64_t> digest = {};  // once it was asked for
  };
  struct Frozen {
    absl::flat_hash_map<std::uint64_t, Block> blocks = {};  // those there were
    std::unique_ptr<ShardStore> blank = nullptr;  // for the others, once one was asked for
  };
  using ByTable = std::map<std::uint32_t, Frozen>;

  absl::StatusOr<PullResult> PullBlock(const Table& table, const PullView& view,
                                       std::uint64_t publication, Block* now);
  Block* FindBlock(std::uint64_t publication, std::uint32_t table, std::uint64_t block);

  std::map<std::uint64_t, ByTable> publications_;
  KeptDifferences differences_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_PUBLISHED_TABLES_H_
