// A cut: the state of one shard at a clock, taken for a checkpoint while the shard goes on. It has
// of every table exactly the pushes of the clocks below its own; docs/checkpoint-format.md says why
// such cuts are consistent.
//
// Tables whose pushes are held (BSP) are frozen between the closing of two clocks. The others take
// pushes of several clocks at a time: such a table is frozen before the first push of the cut's
// clock or a later one, and the pushes of earlier clocks that come after that are kept, to be
// applied to the copy. Where none of those tables has a bound on its staleness (ASP) there is no
// clock to go by, and they are frozen at once. What is collected is frozen with its table.
//
// All of it lives on the data thread's loop, but what a cut results in (FrozenShard), which any
// thread may have.
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
#include "ps/shard/state/shard_state.h"
#include "ps/store/shard_store.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

// The scheduler's order to take a cut.
struct CutOrder {
  std::uint64_t checkpoint = 0;  // the number of the attempt
  std::uint64_t clock = 0;
  std::string folder;    // of the new checkpoint
  std::string base;      // the name of one beside it; empty: everything is to be saved
  bool bounded = false;  // the scheduler knows of a table with a bound on its staleness
};

// What became of a push that was not held.
struct PushedAs {
  double weight = 1;  // what it was multiplied by
  bool collected = false;
  std::uint32_t enough = 0;   // collected: so many make an update; 0: the end of a clock does
  std::uint32_t mean_of = 1;  // likewise: which is divided by that
};

// The result of a cut: one shard, to be written into a file.
struct FrozenShard {
  struct TrailingPush {
    std::uint32_t table = 0;
    proto::TableSettings settings;  // that hold in its clock
    PushedAs as;
    PushView push;
  };
  ShardContent content;
  std::vector<TrailingPush> trailing;  // in order; to be applied to the pieces of their tables
};

// The newest checkpoints that have this shard, and up to which generation of its stores: by the
// checkpoint's folder, then by table.
class SavedGenerations {
 public:
  using ByTable = std::map<std::uint32_t, std::uint64_t>;

  // Null for a folder that is not known: then everything has to be saved.
  const ByTable* Find(const std::string& folder) const;
  void Remember(const std::string& folder, ByTable generations);

 private:
  std::vector<std::pair<std::string, ByTable>> saved_;  // the newest last
};

// A cut that has begun.
class ShardCut {
 public:
  using Done = std::function<void(absl::StatusOr<FrozenShard>)>;
  // The highest number admitted of each worker (rank, incarnation), of pushes that are not held.
  using Admitted = std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t>;

  // `trailing`: the budget of pushes that are kept. `done` is called with the result, once.
  ShardCut(const CutOrder& order, Tables* tables, const ShardStores* stores,
           SavedGenerations* saved, runtime::ByteBudget* trailing, Admitted admitted, Done done);
  ~ShardCut();
  ShardCut(const ShardCut&) = delete;
  ShardCut& operator=(const ShardCut&) = delete;

  std::uint64_t clock() const { return order_.clock; }

  // Called before and after a push that is applied at once, or collected.
  void BeforePush(const Table& table, std::uint64_t clock);
  void AfterPush(const Table& table, const Inbound& push, const PushedAs& as);

  // Freezes what has not been frozen. Nothing of the clocks below the cut's will come any more, and
  // nothing of later ones has been applied to BSP tables. `sessions`: of the workers, now.
  void Finish(std::vector<proto::ClientSession> sessions, ShardContent place);
  // The cut fails: `done` is called with that error.
  void Fail(absl::Status why);

 private:
  struct Frozen {
    StoreSnapshot since;                // what is new since the base, or everything
    std::optional<StoreSnapshot> full;  // for pushes that are kept, where `since` is not everything
    std::vector<FrozenPiece> collected;
    bool has_trailing = false;
  };

  bool ByClock(const Table& table) const { return by_clock_ || table.is_bsp(); }
  void Freeze(std::uint32_t table, bool may_trail);

  const CutOrder order_;
  const std::string base_folder_;  // empty: none, or not known here
  Tables* const tables_;
  const ShardStores* const stores_;
  SavedGenerations* const saved_;
  runtime::ByteBudget* const trailing_budget_;
  bool by_clock_ = false;  // there is a table with a bound on its staleness
  Admitted admitted_;
  std::map<std::uint32_t, Frozen> frozen_;  // by table
  std::vector<FrozenShard::TrailingPush> trailing_;
  std::uint64_t trailing_bytes_ = 0;
  Done done_;  // null once it was called
};

// The pieces of each table with its trailing pushes. Any thread.
absl::StatusOr<ShardContent> ApplyTrailingPushes(FrozenShard frozen);

// The cuts of one shard, of which one at a time is under way. Used by the head alone.
class ShardCuts {
 public:
  explicit ShardCuts(ShardState* state) : state_(state) {}

  // Takes the cut when its clock has come; another one that is under way fails. OUT_OF_RANGE: the
  // clock has passed. ABORTED: it is not known yet whether it has.
  absl::Status Begin(const CutOrder& order, ShardCut::Done done);
  void Abandon(const absl::Status& why);
  // The cut that is under way; null: none.
  ShardCut* current() const { return cut_.get(); }

  // Clock `clock` closes now: a cut at it, or at an earlier one, is finished first.
  void BeforeClosing(std::uint64_t clock);
  // After clocks have closed.
  void FinishIfDue();
  // The stores begin anew: earlier checkpoints are of others.
  void ForgetSaved() { saved_ = SavedGenerations(); }

 private:
  void Finish();

  ShardState* const state_;
  SavedGenerations saved_;
  std::unique_ptr<ShardCut> cut_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_SHARD_CUT_H_
