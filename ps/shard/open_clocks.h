// The open clocks of one shard (BSP): the pushes that are held until their clock closes, and the
// closing, which adds up what a clock brought and applies it.
//
// Used by the head alone, on the data thread's loop. What is held is charged to
// ShardContext::held; Pushes asks for room before it calls Hold.
#ifndef LEEWAY_PS_SHARD_OPEN_CLOCKS_H_
#define LEEWAY_PS_SHARD_OPEN_CLOCKS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "ps/shard/state/shard_state.h"
#include "ps/table/contributions.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"

namespace leeway::ps {

class OpenClocks {
 public:
  // `state` outlives this.
  explicit OpenClocks(ShardState* state) : state_(state), contributions_(&state->context->held) {}
  OpenClocks(const OpenClocks&) = delete;
  OpenClocks& operator=(const OpenClocks&) = delete;

  // Holds `push`, which is that of the request, until `clock` closes. `bytes`: what it is charged.
  void Hold(const Table& table, std::uint64_t clock, const Inbound& inbound, PushView push,
            std::uint64_t bytes);
  // The first clock that pushes are held for.
  std::optional<std::uint64_t> First() const { return contributions_.FirstClock(); }
  // Applies what is held for that clock, and logs it. Pushes that do not fit the table any more are
  // counted and logged as errors; their workers have been told that they were accepted.
  void Close(std::uint64_t clock);
  // Whether pushes are held that their workers do not keep as well: a head that dies loses them.
  bool HoldsUnkept() const;

  // Drops what a worker gave to `clock` and later ones, which it had not ended. Returns how many
  // pushes that were.
  std::uint64_t Discard(const WorkerKey& worker, std::uint64_t clock) {
    return contributions_.Discard(worker.first, worker.second, clock);
  }
  // Another replica becomes the head: what is held, for it, as entries of kind kHeld. Nothing is
  // held here afterwards.
  std::vector<LogEntry> HandOver();
  // Such an entry, at the new head.
  void TakeHeld(const LogEntry& entry);

 private:
  void CloseTarget(std::uint64_t clock, const Target& target, std::vector<Contribution> list);
  void DropMisfits(const Table& table, std::uint64_t clock, std::span<const Contribution> list,
                   std::vector<PushView>* pushes);
  absl::Status ApplyAndLog(const Table& table, std::uint64_t clock,
                           const std::vector<PushView>& pushes, std::uint32_t contributors);

  ShardState* const state_;
  Contributions contributions_;
  std::uint64_t unkept_until_ = 0;  // workers may not keep pushes that are held for clocks below it
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_OPEN_CLOCKS_H_
