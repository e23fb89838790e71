// Liveness decides which nodes are dead: those that are silent for the failure timeout, and
// workers, and servers that another one can take over from, whose connections broke and that do not
// come back soon.
//
// When no server is heard any more, the scheduler takes itself for cut off and declares nobody dead
// for Config::scheduler_timeout. Time in which the scheduler itself stood still does not count: the
// messages that it missed wait in its queues. Owned by the scheduler; lives on its loop.
#ifndef LEEWAY_SCHEDULER_MEMBERS_LIVENESS_H_
#define LEEWAY_SCHEDULER_MEMBERS_LIVENESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

class Liveness {
 public:
  // All outlive it. Of the nodes only Node::heard is changed.
  Liveness(const Config* config, runtime::Loop* loop, MembershipTable* members, ClusterLife* life);
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  // The node was heard. It is watched from the first time on, until Forget.
  void Heard(Node* node);
  void Forget(Node* node);
  // The last connection of a node may have broken. It is suspected until it is heard or dead.
  void Suspect(const Node& node);
  // To be called every heartbeat interval: tells the ClusterLife which nodes are dead.
  void FindDead();

  // After a restart: members are expected to come back. Until one does, silence of all without
  // connections means, too, that the scheduler is cut off.
  void ExpectReturn(bool expected) { nobody_came_back_ = expected; }

 private:
  struct Suspicion {
    Suspicion(runtime::Loop* loop, std::function<void()> ask) : over(loop, std::move(ask)) {}
    runtime::Timer over;
    bool may_die = true;  // when it was asked last
  };

  std::vector<std::uint32_t> Silent();
  bool HearsNobody() const;
  bool IsCutOff(bool somebody_is_silent);
  void SuspicionOver(std::uint32_t node);
  absl::Duration SuspicionPatience() const;
  bool MayDieSoon(const Node& node) const;
  absl::Time Now() const { return loop_->Now(); }

  const Config* const config_;
  runtime::Loop* const loop_;
  MembershipTable* const members_;
  ClusterLife* const life_;
  const absl::Duration interval_;                // between calls of FindDead
  absl::Time asked_ = absl::InfinitePast();      // when that was called last
  std::map<std::uint32_t, Suspicion> suspects_;  // by node
  std::optional<absl::Time> cut_off_since_;
  bool nobody_came_back_ = false;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_LIVENESS_H_
