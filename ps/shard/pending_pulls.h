// The pending pulls of one shard: pulls that wait for other workers, by the clock that they wait
// for and by their deadlines. Charged to a budget that the shards of a thread share.
#ifndef LEEWAY_PS_SHARD_PENDING_PULLS_H_
#define LEEWAY_PS_SHARD_PENDING_PULLS_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ps/consistency/policy.h"
#include "ps/table/inbound.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

struct PendingPull {
  Inbound inbound;
  PullDecision decision;  // served when `needed` is reached
  absl::Time since;
  absl::Time deadline = absl::InfiniteFuture();
};

class PendingPulls {
 public:
  explicit PendingPulls(runtime::ByteBudget* budget) : budget_(budget) {}
  ~PendingPulls() { budget_->bytes -= bytes_; }
  PendingPulls(const PendingPulls&) = delete;
  PendingPulls& operator=(const PendingPulls&) = delete;

  void Add(PendingPull pull);

  // A pending request was sent again: its answer goes to the connection that it came from last.
  // False if no such request is pending.
  bool Redirect(const proto::RequestId& id, van::PeerId peer);

  // The smallest clock that is waited for, and everything that waits for it, in the order it came.
  std::optional<std::uint64_t> FirstNeeded() const;
  std::vector<PendingPull> TakeNeeding(std::uint64_t needed);

  // Everything that `may_go(pull)` is true of, in order.
  template <class F>
  std::vector<PendingPull> TakeIf(const F& may_go) {
    std::vector<PendingPull> taken;
    for (auto it = by_order_.begin(); it != by_order_.end();) {
      it = may_go(it->second) ? Erase(it, &taken.emplace_back()) : std::next(it);
    }
    return taken;
  }

  std::optional<absl::Time> FirstDeadline() const;
  std::vector<PendingPull> TakeExpired(absl::Time now);

  std::vector<PendingPull> TakeAll();

  void DropPeer(van::PeerId peer);
  void DropWorker(std::uint32_t rank);

  // In the order of the clocks that they wait for.
  template <class F>
  void ForEach(F f) const {
    for (const auto& [key, pull] : by_order_) f(pull);
  }
  std::size_t size() const { return by_order_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // needed, arrival
  struct IdLess {
    bool operator()(const proto::RequestId& a, const proto::RequestId& b) const;
  };

  std::map<Key, PendingPull>::iterator Erase(std::map<Key, PendingPull>::iterator it,
                                             PendingPull* taken);

  runtime::ByteBudget* budget_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t bytes_ = 0;
  std::map<Key, PendingPull> by_order_;
  std::map<proto::RequestId, Key, IdLess> by_id_;
  std::set<std::pair<absl::Time, Key>> by_deadline_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_PENDING_PULLS_H_
