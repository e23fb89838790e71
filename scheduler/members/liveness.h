// Liveness decides which nodes are dead: those that are silent for the failure timeout, and
// workers, and servers that another one can take over from, whose connections broke and that do not
// come back soon.
//
// When no server is heard any more, the scheduler takes itself for cut off and declares nobody dead
// for Config::scheduler_timeout. Owned by the scheduler; lives on its loop. Time in which the
// scheduler itself stood still does not count (FailureDetector).
#ifndef LEEWAY_SCHEDULER_MEMBERS_LIVENESS_H_
#define LEEWAY_SCHEDULER_MEMBERS_LIVENESS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "scheduler/members/failure_detector.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/readers.h"

namespace leeway::scheduler {

class Liveness {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual bool running() const = 0;
    // True if a shard has no member but the server of that rank.
    virtual bool IsLastReplica(std::uint32_t rank) const = 0;
    virtual void OnDead(Node* node, const std::string& why) = 0;
    virtual void OnReaderSilent(const Node& reader) = 0;
  };

  // All outlive it. `members` and `readers` are read only.
  Liveness(const Config* config, runtime::Loop* loop, MembershipTable* members, Readers* readers,
           Owner* owner);
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  // The node was heard. It is watched from the first time on, until Forget.
  void Heard(std::uint32_t node);
  void Forget(std::uint32_t node);
  // The last connection of a node may have broken.
  void Suspect(const Node& node);
  // To be called every heartbeat interval: calls Owner::OnDead for those that are silent.
  void FindDead();

  // After a restart: members are expected to come back. Until one does, silence of all without
  // connections means, too, that the scheduler is cut off.
  void ExpectReturn(bool expected) { nobody_came_back_ = expected; }

  absl::Duration SilentFor(std::uint32_t node) const;
  std::string LastHeard(std::uint32_t node) const;  // "last heard 3.1s ago"
  // The living worker that has not been heard for longest, and since when; empty: there is none.
  std::string MostSilentWorker() const;
  const FailureDetector& detector() const { return detector_; }

 private:
  bool HearsNobody() const;
  bool IsCutOff(bool somebody_is_silent);
  void SuspicionOver(std::uint32_t node);
  absl::Duration SuspicionPatience() const;
  bool CanBeSpared(const Node& node) const;
  void Trust(std::uint32_t node);
  absl::Time Now() const { return loop_->Now(); }

  const Config* const config_;
  runtime::Loop* const loop_;
  MembershipTable* const members_;
  Readers* const readers_;
  Owner* const owner_;
  FailureDetector detector_;
  std::map<std::uint32_t, runtime::Timer> suspects_;  // by node
  std::optional<absl::Time> cut_off_since_;
  bool nobody_came_back_ = false;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_LIVENESS_H_
