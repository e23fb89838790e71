// Takes what one shard is at a clock, while the shard goes on: of every table exactly the pushes of
// the clocks below it. docs/checkpoint-format.md says why this is consistent.
//
// Tables whose pushes are held (BSP) are frozen between the closing of two clocks. The others take
// pushes of several clocks at a time: such a table is frozen before the first push of the cut's
// clock or a later one, and the pushes of earlier clocks that come after that are kept, to be
// applied to the copy. Where all of those have no bound (ASP) there is no clock to go by, and they
// are frozen at once.
#ifndef LEEWAY_PS_SHARD_SHARD_CUT_H_
#define LEEWAY_PS_SHARD_SHARD_CUT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/store/shard_store.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

// What the scheduler asks for.
struct CutOrder {
  std::uint64_t checkpoint = 0;  // the number of the attempt
  std::uint64_t clock = 0;
  std::string folder;    // of the new checkpoint
  std::string base;      // the name of one beside it; empty: everything is to be saved
  bool bounded = false;  // the scheduler knows of a table with a bound on its staleness
};

// One shard, on its way into a file.
struct FrozenShard {
  struct LatePush {
    std::uint32_t table = 0;
    proto::TableSettings settings;  // that hold in its clock
    PushView push;
  };
  ShardContent content;
  std::vector<LatePush> late;  // in order; to be applied to the pieces of their tables
};

// Up to which point earlier checkpoints have a shard's tables: the store's generations by the
// checkpoint's folder, then by table.
class SavedGenerations {
 public:
  using ByTable = std::map<std::uint32_t, std::uint64_t>;

  // Null where it is not known: then everything has to be saved.
  const ByTable* Find(const std::string& folder) const;
  void Remember(const std::string& folder, ByTable generations);

 private:
  std::vector<std::pair<std::string, ByTable>> saved_;  // the newest last
};

class ShardCut {
 public:
  using Stores = std::map<std::uint32_t, std::unique_ptr<ShardStore>>;
  using Done = std::function<void(absl::StatusOr<FrozenShard>)>;
  // The highest number admitted of each worker (rank, incarnation), of pushes that are not held.
  using Admitted = std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t>;

  // `late`: what pushes that are kept are charged to; `done` is given the result once.
  ShardCut(const CutOrder& order, Tables* tables, const Stores* stores, SavedGenerations* saved,
           runtime::ByteBudget* late, Admitted admitted, Done done);
  ~ShardCut();
  ShardCut(const ShardCut&) = delete;
  ShardCut& operator=(const ShardCut&) = delete;

  std::uint64_t clock() const { return order_.clock; }

  // Around a push that is applied at once.
  void BeforePush(const Table& table, std::uint64_t clock);
  void AfterPush(const Table& table, const Inbound& push);

  // Nothing of the clocks below will come any more, and nothing of later ones has been applied to
  // the tables that are held: freezes what has not been frozen. `sessions`: of the workers, now.
  void Finish(std::vector<proto::ClientSession> sessions, ShardContent place);
  // It will not come to that.
  void Fail(absl::Status why);

 private:
  struct Frozen {
    StoreSnapshot since;                // what is new since the base, or everything
    std::optional<StoreSnapshot> full;  // for pushes that are kept, where `since` is not everything
    bool has_late = false;
  };

  bool ByClock(const Table& table) const;
  void Freeze(std::uint32_t table, bool may_be_late);

  const CutOrder order_;
  const std::string base_folder_;  // empty: none, or not known here
  Tables* const tables_;
  const Stores* const stores_;
  SavedGenerations* const saved_;
  runtime::ByteBudget* const late_budget_;
  bool by_clock_ = false;  // there is a table with a bound on its staleness
  Admitted admitted_;
  std::map<std::uint32_t, Frozen> frozen_;  // by table
  std::vector<FrozenShard::LatePush> late_;
  std::uint64_t late_bytes_ = 0;
  Done done_;  // null once it was called
};

// The pieces of each table with the pushes that came late. On whatever thread.
absl::StatusOr<ShardContent> ApplyLatePushes(FrozenShard frozen);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_SHARD_CUT_H_
