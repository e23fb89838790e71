// Who is in the cluster: nodes, their ranks, incarnations and states.
#ifndef LEEWAY_SCHEDULER_MEMBERSHIP_TABLE_H_
#define LEEWAY_SCHEDULER_MEMBERSHIP_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "proto/messages.h"
#include "van/van.h"

namespace leeway::scheduler {

inline constexpr std::uint32_t kSchedulerNode = 1;
// Nodes ever admitted. Before the cluster is complete a rank whose node went is given again, so
// that nodes which die over and over could otherwise fill the memory.
inline constexpr std::size_t kNodesMax = 1 << 18;

struct Node {
  enum class State { kAlive, kLeft, kDead };

  std::uint32_t id = 0;
  Role role = Role::kUnknown;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  State state = State::kAlive;
  std::string gone_because;  // not alive: why
  std::string address;       // for people
  std::vector<std::string> endpoints;
  van::PeerId peer = 0;  // its newest connection that said Join; 0: none just now

  bool alive() const { return state == State::kAlive; }
  std::string Name() const;      // "worker 2"
  std::string FullName() const;  // "worker 2 (tcp://10.0.0.7:40123)"
};
absl::string_view Name(Node::State state);  // "alive", "left", "dead"

class MembershipTable {
 public:
  MembershipTable(std::uint32_t num_servers, std::uint32_t num_workers);

  // Takes in a node not known before, or says in one line why not.
  absl::StatusOr<Node*> Admit(const proto::Join& join, const van::Identity& identity);

  // The node has died or left. Before the cluster is complete its rank is free again, since nobody
  // has worked with it; afterwards it keeps it.
  void Retire(Node* node, Node::State state, std::string why);

  // Every announced server and worker is there. From the first time on, the table is closed.
  bool UpdateComplete();
  bool complete() const { return complete_; }

  Node* FindIncarnation(std::uint64_t incarnation);
  Node* Find(std::uint32_t id);
  // By rank; null where nobody is (before the cluster is complete).
  const std::vector<Node*>& servers() const { return servers_; }
  const std::vector<Node*>& workers() const { return workers_; }
  const std::vector<Node*>& Of(Role role) const {
    return role == Role::kServer ? servers_ : workers_;
  }
  // By rank; servers first.
  std::vector<Node*> Alive(Role role) const;
  std::vector<Node*> Alive() const;
  // Those that died since the cluster was complete.
  std::vector<const Node*> Dead() const;

 private:
  absl::StatusOr<std::uint32_t> ChooseRank(const proto::Join& join) const;

  std::map<std::uint32_t, Node> nodes_;         // by id
  std::map<std::uint64_t, std::uint32_t> ids_;  // by incarnation
  std::vector<Node*> servers_, workers_;
  std::uint32_t next_id_ = kSchedulerNode + 1;
  bool complete_ = false;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERSHIP_TABLE_H_
