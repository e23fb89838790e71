// The table of members: servers and workers with their ranks, incarnations and states. It has the
// readers as well, apart from them. Lives on the scheduler's loop.
//
// A node that has gone stays in it as long as it has its rank; of those that have
// lost it to another process, or had gone before the cluster was complete, the newest kReplacedMax
// stay, so that they can still be told why. The durable state has all nodes of the table, so it
// does not grow with the cluster's age.
#ifndef LEEWAY_SCHEDULER_MEMBERS_MEMBERSHIP_TABLE_H_
#define LEEWAY_SCHEDULER_MEMBERS_MEMBERSHIP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "van/van.h"

namespace leeway::scheduler {

inline constexpr std::uint32_t kSchedulerNode = 1;
inline constexpr std::size_t kReplacedMax = 1024;
// How many names, of nodes or tables, the text of an error lists at most.
inline constexpr std::size_t kNamedMax = 8;

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
  // The codecs that the node has, by name; empty: it did not tell, or has gone.
  std::vector<proto::CodecVersion> codecs;
  bool late = false;  // came after the cluster was complete
  // Of a worker that has left: the version of the first map that says so, until every living server
  // has taken that map or a later one; 0 otherwise. Until then its rank is not given again: a
  // server that sees another process under a rank takes the one before for dead, and discards what
  // that one gave to clocks that are still open.
  std::uint64_t left_in = 0;
  van::PeerId peer = 0;   // its newest connection that said Join; 0: none just now
  van::PeerId pulse = 0;  // the connection its heartbeats come over; 0: none just now

  // From its last Heartbeat: how long it has been a member, when that came, and its RSS.
  absl::Duration uptime = absl::ZeroDuration();
  absl::Time uptime_told = absl::InfinitePast();
  std::uint64_t resident_bytes = 0;

  // When it was heard last, by Liveness; infinitely past: nobody watches it.
  absl::Time heard = absl::InfinitePast();

  bool alive() const { return state == State::kAlive; }
  // The time since it was heard; zero for a node that is not watched.
  absl::Duration SilentFor(absl::Time now) const;
  std::string LastHeard(absl::Time now) const;  // "last heard 3.1s ago"
  std::string Name() const;      // "worker 2"; of a reader its rank is for people only
  std::string FullName() const;  // "worker 2 (tcp://10.0.0.7:40123)"
};
absl::string_view Name(Node::State state);  // "alive", "left", "dead"

inline constexpr std::size_t kReadersMax = 4096;  // at a time, where there are files for so many
// At most a quarter of the process's file descriptors: the others are for members and guests.
std::size_t ReadersMax();
// Their node ids are far from those of members, which count up from 2.
inline constexpr std::uint32_t kFirstReaderNode = 1u << 31;

// The readers (Config::read_only): clients that only pull. They are no members: they have no rank,
// are in no map, take part in no barrier and no clock, are not in the durable state, and nothing
// waits for them. The scheduler knows those that are connected, so that they get new maps. One that
// it has forgotten joins again.
class Readers {
 public:
  explicit Readers(std::size_t most = ReadersMax()) : most_(most) {}

  // Takes in a reader that is not known. A reader that joins again after it was forgotten keeps its
  // node id. RESOURCE_EXHAUSTED: there are as many as there may be.
  absl::StatusOr<Node*> Admit(const van::Identity& identity);
  // It has left, its connections are gone, or it was not heard for long.
  void Forget(std::uint32_t id);

  // Null where there is none. Pointers hold until it is forgotten.
  Node* FindIncarnation(std::uint64_t incarnation);
  Node* Find(std::uint32_t id);
  std::vector<Node*> All();  // by id
  std::size_t size() const { return readers_.size(); }

 private:
  std::uint32_t FreeId(const van::Identity& identity) const;

  const std::size_t most_;
  std::map<std::uint32_t, Node> readers_;       // by id
  std::map<std::uint64_t, std::uint32_t> ids_;  // by incarnation
};

class MembershipTable {
 public:
  MembershipTable(std::uint32_t num_servers, std::uint32_t num_workers);

  // Takes in a node not known before. The error gives the reason in one line. UNAVAILABLE: its rank
  // is given again as soon as all servers know that the worker before has left (Node::left_in).
  absl::StatusOr<Node*> Admit(const proto::Join& join, const van::Identity& identity);

  // The node has died or left. Before the cluster is complete its rank is free again at once;
  // afterwards the node keeps it until a new process takes it.
  void Retire(Node* node, Node::State state, std::string why);

  // A map of that version is the first that shows `worker`, which has left, as such; after a
  // restart of the scheduler, the first map of it that does. Nothing before the cluster is
  // complete.
  void LeavingIsIn(Node* worker, std::uint64_t version);
  // Every living server has taken a map of that version or a later one.
  void ServersHave(std::uint64_t version);

  // True once every announced server and worker has joined, and from then on. Nodes that join later
  // are late: they take the ranks of nodes that have gone, or come on top as elastic nodes.
  bool UpdateComplete();
  bool complete() const { return complete_; }

  Node* FindIncarnation(std::uint64_t incarnation);
  const Node* FindIncarnation(std::uint64_t incarnation) const {
    return const_cast<MembershipTable*>(this)->FindIncarnation(incarnation);
  }
  Node* Find(std::uint32_t id);  // a reader, too
  const Node* Find(std::uint32_t id) const { return const_cast<MembershipTable*>(this)->Find(id); }
  // A process that was told that id was a member once, and is not in the table any more.
  bool IsForgotten(std::uint32_t id) const {
    return id > kSchedulerNode && id < next_id_ && !nodes_.contains(id);
  }
  Readers& readers() { return readers_; }
  const Readers& readers() const { return readers_; }
  // By rank; null where no node has joined (before the cluster is complete). More than were
  // announced, once elastic nodes have joined.
  const std::vector<Node*>& servers() const { return servers_; }
  const std::vector<Node*>& workers() const { return workers_; }
  const std::vector<Node*>& Of(Role role) const {
    return role == Role::kServer ? servers_ : workers_;
  }
  // By rank; servers first.
  std::vector<Node*> Alive(Role role) const;
  std::vector<Node*> Alive() const;
  std::vector<Node*> AllById();  // readers last
  // The ids of the living nodes, by rank.
  std::vector<std::uint32_t> AliveIds(Role role) const;
  // Ranks of workers: all but those that died or left.
  std::vector<std::uint32_t> AwaitedWorkers() const;
  // Those that died since the cluster was complete, and whose rank no node has taken.
  std::vector<const Node*> Dead() const;

  // "server 1 (tcp://…)" for the id of a server; "node 7" for any other.
  std::string DescribeServer(std::uint32_t id) const;
  std::string LastHeard(std::uint32_t id, absl::Time now) const;
  // The living worker that has not been heard for longest, and since when; empty: there is none.
  std::string MostSilentWorker(absl::Time now) const;

  // The durable state: all nodes of the table, by id.
  const std::map<std::uint32_t, Node>& nodes() const { return nodes_; }
  std::uint32_t next_id() const { return next_id_; }
  // Grows whenever that changes.
  std::uint64_t changes() const { return changes_; }
  void Restore(const std::vector<Node>& nodes, std::uint32_t next_id, bool complete);

 private:
  absl::Status CheckAnnounced(const proto::Join& join) const;
  absl::StatusOr<std::uint32_t> ChooseRank(const proto::Join& join) const;
  absl::StatusOr<std::uint32_t> CheckRank(const proto::Join& join, std::uint32_t rank) const;
  absl::Status CheckLeavingIsKnown(Role role, std::uint32_t rank) const;
  std::optional<std::uint32_t> FreeRank(Role role) const;
  absl::Status Full(const proto::Join& join) const;
  std::vector<Node*>& Ranks(Role role) { return role == Role::kServer ? servers_ : workers_; }
  // The node has no rank any more.
  void NoteReplaced(const Node& node);

  const std::uint32_t num_servers_, num_workers_;  // announced
  std::map<std::uint32_t, Node> nodes_;            // by id
  std::map<std::uint64_t, std::uint32_t> ids_;     // by incarnation
  std::vector<Node*> servers_, workers_;
  Readers readers_;
  std::deque<std::uint32_t> replaced_;  // ids, in the order of their replacement
  std::uint32_t next_id_ = kSchedulerNode + 1;
  bool complete_ = false;
  std::uint64_t changes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_MEMBERSHIP_TABLE_H_
