// The pushes of one shard: what is done to a push whose turn has come. It is checked, and then, as
// the table's policy decides, applied at once and logged, collected and logged, held until its
// clock closes (BSP), or dropped.
//
// Used by the head alone, on the data thread's loop. A push that fails has changed nothing, but
// where memory ran out in the middle (OutOfMemory).
#ifndef LEEWAY_PS_SHARD_PUSHES_H_
#define LEEWAY_PS_SHARD_PUSHES_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/shard/delay_compensation.h"
#include "ps/shard/open_clocks.h"
#include "ps/shard/shard_cut.h"
#include "ps/shard/state/shard_state.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"

namespace leeway::ps {

class Pushes {
 public:
  // All of them outlive this. `cuts`: the checkpoints that a push may have to be kept for.
  Pushes(ShardState* state, OpenClocks* open_clocks, ShardCuts* cuts,
         DelayCompensation* compensation)
      : state_(state), open_clocks_(open_clocks), cuts_(cuts), compensation_(compensation) {}

  // Whether the push has to wait until its clock opens, and is not to be admitted before.
  bool MustWait(const Table& table, const proto::Request& request) const;
  // Takes the push of a request. `held`: it waits for its clock. CANCELLED: dropped, since it is
  // late or too stale.
  absl::Status Take(const Table& table, const Inbound& inbound, bool* held);
  // Applies the updates of a handler, all or none, each at once and whatever its table's policy,
  // and logs them with `call`, the entry that tells of the call.
  absl::Status TakeCall(const std::vector<Inbound>& updates, LogEntry call);
  // Why an earlier head would have refused a push that it admitted: the same checks again.
  absl::Status CheckAgain(const Table& table, const Inbound& inbound);
  // Applies what is collected of the table, in clock `clock`: of each target at least so many
  // pushes.
  void ApplyCollected(const Table& table, std::uint64_t clock, std::uint32_t enough = 1);
  // A count of workers has ended the table's clocks from `open` up to but not including `closed`.
  void CloseByCount(const Table& table, std::uint64_t open, std::uint64_t closed);
  // Of a new head: applies what the head before has collected for clocks that it had closed.
  void FinishClosing();

 private:
  absl::Status Take(const Table& table, const Inbound& inbound, bool* held, bool* begun);
  absl::Status ApplyNow(const Table& table, const PreparedTableSettings& settings, bool checked,
                        double weight, const PushView& push, const Inbound& inbound, bool* begun);
  absl::Status ApplyCompensated(const Table& table, const PreparedTableSettings& settings,
                                bool nonfinite, double weight, const PushView& push,
                                const Inbound& inbound, bool* begun);
  absl::StatusOr<std::optional<DelayCompensation::Compensated>> Compensate(
      const Table& table, const PreparedTableSettings& settings, const PushView& push,
      const Inbound& inbound);
  absl::Status Collect(const Table& table, const PreparedTableSettings& settings, double weight,
                       const PushView& push, const Inbound& inbound, bool* begun);
  std::uint32_t MeanOf(const PreparedTableSettings& settings, std::uint32_t count) const;
  void ApplyCollectedOf(const Table& table, const PreparedTableSettings& settings,
                        std::uint64_t block, std::uint64_t clock);
  absl::StatusOr<std::uint64_t> StalenessOf(const Table& table,
                                            const proto::Request& request) const;
  absl::StatusOr<bool> CheckFinite(const Table& table, const proto::Request& request,
                                   const PushView& push, double weight);
  absl::Status NoteNonFinite(const Table& table, const proto::Request& request,
                             absl::string_view what);
  absl::Status NoteWrapped(const Table& table, const proto::Request& request);
  absl::Status CheckOverflow(const Table& table, const proto::Request& request,
                             const ShardStore& store, const PushView& push, double weight);
  absl::Status Dropped(const Table& table, const proto::Request& request,
                       const PushFacts& facts) const;
  absl::Status CheckEffect(const Table& table, const Inbound& update);
  absl::Status ApplyEffects(const std::vector<Inbound>& updates, LogEntry call, bool* begun);
  absl::Status OutOfMemory(const Table& table, const Inbound& inbound, bool begun);

  ShardState* const state_;
  OpenClocks* const open_clocks_;
  ShardCuts* const cuts_;
  DelayCompensation* const compensation_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_PUSHES_H_
