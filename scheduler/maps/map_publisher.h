// The publisher of the newest map: sends it to servers first, and to workers once every living
// server that keeps shards has it, so that a worker never knows more than a server that it sends
// requests to. Lives on the scheduler's loop.
//
// Workers do not wait for a server without shards, such as one that has just joined; they do wait
// for one that has lost its last shards, until it knows. After a death only the servers whose
// chains have changed must have the map, unless it changes a table's settings, which every living
// server that keeps shards must know before any worker does. Readers get the map when workers do,
// if its epoch differs from the last one they were sent: the rest of a map does not concern them.
#ifndef LEEWAY_SCHEDULER_MAPS_MAP_PUBLISHER_H_
#define LEEWAY_SCHEDULER_MAPS_MAP_PUBLISHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

// An urgent map goes to workers after this, even if one of its servers has not taken it: that
// server may be dead, too, and if not, it tells workers to wait.
inline constexpr absl::Duration kUrgentPatience = absl::Milliseconds(100);

class MapPublisher {
 public:
  using Send = std::function<void(const Node& node, const proto::ClusterMap& map)>;
  // A map that is not acknowledged is resent after `resend_interval`, which doubles up to
  // sixteenfold, since a large map to a slow node must not become a flood.
  MapPublisher(MembershipTable* members, absl::Duration resend_interval, Send send);

  void Publish(std::shared_ptr<const proto::ClusterMap> map, absl::Time now);
  // The next map is one that workers wait for; only the servers of these ranks need have it first.
  void Hurry(const std::set<std::uint32_t>& concerned, absl::Time now);
  void OnAck(const Node& node, std::uint64_t version, absl::Time now);
  // The node has connected anew: the map that it was sent may be lost.
  void OnRejoin(const Node& node, absl::Time now);
  void Resend(absl::Time now);
  // The node does not come back.
  void Forget(std::uint32_t node) { progress_.erase(node); }
  // Sends the map to the nodes that may now have it and were not sent it yet.
  void Advance(absl::Time now);

  // While held, workers get no map, however urgent.
  void HoldWorkers(bool hold, absl::Time now);

  // True if every living server that workers wait for has taken the newest map.
  bool ServersHaveIt();
  // The newest version that every living server has taken, or a later one; 0: there is none.
  std::uint64_t VersionOfAllServers() const;
  // True if the node has taken some map.
  bool HasTakenOne(const Node& node) { return progress_[node.id].acknowledged > 0; }

 private:
  struct Progress {
    std::uint64_t acknowledged = 0;  // version
    std::uint64_t sent = 0;          // version
    std::uint64_t needed = 0;        // version: workers wait until this server has it
    absl::Time resend_at = absl::InfiniteFuture();
    absl::Duration interval;
  };

  std::vector<Node*> Audience() const;
  // The oldest version that is good enough for such a node.
  std::uint64_t VersionFor(const Node& node) const;
  bool Due(const Node& node, absl::Time now);  // may have the map, and has not acknowledged it
  bool WorkersMayHaveIt(absl::Time now);
  void NoteWhoKeepsShards();
  // Likewise for a map of that version or a later one.
  bool ServersHave(std::uint64_t version);
  void SendTo(const Node& node, absl::Time now);

  MembershipTable* const members_;
  const absl::Duration resend_interval_;
  const Send send_;
  std::shared_ptr<const proto::ClusterMap> map_;
  std::uint64_t epoch_version_ = 0;             // of the first map of its epoch
  std::uint64_t table_settings_version_ = 0;    // of the first map with its tables' settings
  std::map<std::uint32_t, Progress> progress_;  // by node id
  std::set<std::uint32_t> keepers_;             // node ids: servers that have shards by the map
  std::set<std::uint32_t> concerned_;           // ranks, while the map is urgent
  absl::Time urgent_until_ = absl::InfiniteFuture();
  bool workers_held_ = false;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MAPS_MAP_PUBLISHER_H_
