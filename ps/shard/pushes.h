// The pushes of one shard: what is done to a push whose turn has come. It is checked, then applied
// at once and logged, or held until its clock closes (BSP).
//
// Used by the head alone, on the data thread's loop. A push that fails has changed nothing, but
// where memory ran out in the middle (OutOfMemory).
#ifndef LEEWAY_PS_SHARD_PUSHES_H_
#define LEEWAY_PS_SHARD_PUSHES_H_

#include "absl/status/status.h"
#include "ps/shard/open_clocks.h"
#include "ps/shard/shard_cut.h"
#include "ps/shard/state/shard_state.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"

namespace leeway::ps {

class Pushes {
 public:
  // All of them outlive this. `cuts`: the checkpoints that a push may have to be kept for.
  Pushes(ShardState* state, OpenClocks* open_clocks, ShardCuts* cuts)
      : state_(state), open_clocks_(open_clocks), cuts_(cuts) {}

  // Takes the push of a request. `held`: it waits for its clock.
  absl::Status Take(const Table& table, const Inbound& inbound, bool* held);
  // Why an earlier head would have refused a push that it admitted: the same checks again.
  absl::Status CheckAgain(const Table& table, const Inbound& inbound);

 private:
  absl::Status Take(const Table& table, const Inbound& inbound, bool* held, bool* begun);
  absl::Status ApplyNow(const Table& table, const PreparedTableSettings& settings,
                        ShardStore* store, bool checked, const PushView& push,
                        const Inbound& inbound, bool* begun);
  absl::Status CheckFinite(const Table& table, const proto::Request& request, const PushView& push);
  absl::Status CheckOverflow(const Table& table, const proto::Request& request,
                             const ShardStore& store, const PushView& push);
  absl::Status OutOfMemory(const Table& table, const Inbound& inbound, bool begun);

  ShardState* const state_;
  OpenClocks* const open_clocks_;
  ShardCuts* const cuts_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_PUSHES_H_
