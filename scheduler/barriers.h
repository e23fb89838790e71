// Barriers among workers: counted, released when every living member has entered, failed for
// everyone when the first deadline passes, so that all see the same end of the same barrier.
#ifndef LEEWAY_SCHEDULER_BARRIERS_H_
#define LEEWAY_SCHEDULER_BARRIERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages.h"

namespace leeway::scheduler {

inline constexpr std::size_t kBarriersWaitingMax = 1 << 16;
// How barriers ended is remembered for members whose answer was lost: for so many names, the
// longest unused is forgotten first, and so many numbers of each.
inline constexpr std::size_t kBarrierNamesRememberedMax = 4096;
inline constexpr std::size_t kBarrierEndsRememberedMax = 16;

class Barriers {
 public:
  // What the barriers ask about the workers.
  class Workers {
   public:
    virtual ~Workers() = default;
    // Ranks whose entry is needed: the announced ones but for those that died or left.
    virtual std::vector<std::uint32_t> Needed() const = 0;
    // "worker 2 (tcp://10.0.0.7:40123), last heard 3.1s ago".
    virtual std::string Describe(std::uint32_t rank, absl::Time now) const = 0;
  };
  using Send = std::function<void(std::uint32_t rank, const proto::BarrierRelease&)>;

  Barriers(const Workers* workers, Send send) : workers_(workers), send_(std::move(send)) {}

  // The worker of that rank has entered, perhaps not for the first time.
  void Enter(std::uint32_t rank, const proto::BarrierEnter& enter, absl::Time now);
  // Someone has gone and is no longer waited for.
  void WorkersChanged();
  // Fails the barriers whose time is up.
  void Expire(absl::Time now);
  absl::Time NextDeadline() const;

  struct Waiting {
    std::string name;
    Group group;
    std::uint64_t number;
    std::vector<std::uint32_t> missing;  // ranks
  };
  std::vector<Waiting> waiting() const;

 private:
  using Name = std::pair<std::string, Group>;
  using Key = std::tuple<std::string, Group, std::uint64_t>;
  struct Pending {
    std::map<std::uint32_t, absl::Time> entered;  // rank → deadline
    absl::Time since;
    absl::Time deadline = absl::InfiniteFuture();  // of the first member to lose patience
  };
  struct Ended {
    std::map<std::uint64_t, absl::Status> results;  // by number
    std::uint64_t used = 0;
  };

  std::vector<std::uint32_t> Missing(const Pending& pending) const;
  bool AnswerIfEnded(std::uint32_t rank, const proto::BarrierEnter& enter);
  void Answer(std::uint32_t rank, const Key& key, const absl::Status& result);
  void Finish(std::map<Key, Pending>::iterator pending, const absl::Status& result);
  void Remember(const Key& key, const absl::Status& result);

  const Workers* const workers_;
  const Send send_;
  std::map<Key, Pending> pending_;
  std::map<Name, Ended> ended_;
  std::uint64_t uses_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_BARRIERS_H_
