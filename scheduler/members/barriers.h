// The barriers of workers: each is released when every living worker has entered, or fails for all
// of them when the first deadline passes, so that all see the same end of the same barrier. Lives
// on the scheduler's loop.
//
// Workers number their entries into a name 1, 2, 3, …. A worker that joined late counts from 1 as
// well: its first entry joins the barrier of that name in which the others wait, or the next, and
// the numbers that follow are shifted alike.
#ifndef LEEWAY_SCHEDULER_MEMBERS_BARRIERS_H_
#define LEEWAY_SCHEDULER_MEMBERS_BARRIERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

inline constexpr std::size_t kBarriersWaitingMax = 1 << 16;
// The ends of barriers are remembered for workers whose answer was lost: for so many names, of
// which the longest unused is forgotten first, and for so many numbers of each.
inline constexpr std::size_t kBarrierNamesRememberedMax = 4096;
inline constexpr std::size_t kBarrierEndsRememberedMax = 16;
// Names that late workers have entered.
inline constexpr std::size_t kLateNamesMax = 1 << 18;

class Barriers {
 public:
  // Ranks of workers whose entry is needed: all but those that died or left.
  using Needed = std::function<std::vector<std::uint32_t>()>;
  using Send = std::function<void(const Node& worker, const proto::BarrierRelease&)>;

  // All outlive it.
  Barriers(runtime::Loop* loop, const MembershipTable* members, Needed needed, Send send);

  // The worker enters; a repeated entry changes nothing.
  void Enter(const Node& worker, const proto::BarrierEnter& enter);
  // The worker has gone and is no longer waited for. The next worker of its rank has entered
  // nothing yet.
  void Gone(const Node& worker);

  struct Waiting {
    std::string name;
    Group group;
    std::uint64_t number;
    std::vector<std::uint32_t> missing;  // ranks
  };
  std::vector<Waiting> waiting() const;

  using Name = std::pair<std::string, Group>;
  // The durable state: how barriers ended, and how late workers count. Workers that wait enter
  // again after a restart.
  struct State {
    std::map<Name, std::map<std::uint64_t, absl::Status>> ended;
    std::map<std::pair<std::uint64_t, Name>, std::uint64_t> shifts;
    friend bool operator==(const State&, const State&) = default;
  };
  State state() const;
  void Restore(State state);
  // Grows whenever that changes.
  std::uint64_t changes() const { return changes_; }

 private:
  using Key = std::tuple<std::string, Group, std::uint64_t>;
  struct Entry {
    absl::Time deadline;
    std::uint64_t number;  // as the worker counts
  };
  struct Pending {
    std::map<std::uint32_t, Entry> entered;  // by rank
    std::optional<std::uint32_t> awaited;    // one of those that are missing, as far as is known
    absl::Time since;
    absl::Time deadline = absl::InfiniteFuture();  // of the first member to lose patience
  };
  struct Ended {
    // By number.
    std::map<std::uint64_t, absl::Status> results;
    std::uint64_t used = 0;
  };

  void Expire();
  std::vector<std::uint32_t> Missing(const Pending& pending) const;
  std::string Describe(std::uint32_t rank) const;
  bool IsFull(Pending* pending) const;
  // The number that the other workers give to enter.number.
  std::uint64_t Translate(const Node& worker, const proto::BarrierEnter& enter);
  std::uint64_t OpenNumber(const proto::BarrierEnter& enter) const;
  bool AnswerIfEnded(std::uint32_t rank, const Key& key, std::uint64_t said);
  void Answer(std::uint32_t rank, const Key& key, std::uint64_t said, const absl::Status& result);
  void Finish(std::map<Key, Pending>::iterator pending, const absl::Status& result);
  void Remember(const Key& key, const absl::Status& result);

  runtime::Loop* const loop_;
  const MembershipTable* const members_;
  const Needed needed_;
  const Send send_;
  runtime::Timer timer_;  // rings at the first deadline at the latest
  std::map<Key, Pending> pending_;
  std::map<Name, Ended> ended_;
  // The difference between a late worker's numbers and the others'; by incarnation and name.
  std::map<std::pair<std::uint64_t, Name>, std::uint64_t> shifts_;
  std::uint64_t uses_ = 0, changes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_BARRIERS_H_
