// The interface by which the scheduler's services ask about the cluster as a whole and end a member
// or all of it. The scheduler implements it; tests implement it without one.
#ifndef LEEWAY_SCHEDULER_MEMBERS_CLUSTER_LIFE_H_
#define LEEWAY_SCHEDULER_MEMBERS_CLUSTER_LIFE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

class ClusterLife {
 public:
  virtual ~ClusterLife() = default;
  // False once the cluster ends.
  virtual bool running() const = 0;
  // OK, or why tables and shards cannot be used yet.
  virtual absl::Status Ready() const = 0;
  // True while the servers load the checkpoint that the cluster starts from.
  virtual bool loading() const = 0;
  // True if a shard has no member but the server of that rank.
  virtual bool IsLastReplica(std::uint32_t rank) const = 0;
  // The member has left or is dead, for that reason: all services drop it.
  virtual void Retire(Node* node, Node::State state, const std::string& why) = 0;
  // The reader was not heard for long: it is forgotten.
  virtual void OnReaderSilent(const Node& reader) = 0;
  // Ends the cluster with that error.
  virtual void Fail(const absl::Status& why) = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_CLUSTER_LIFE_H_
