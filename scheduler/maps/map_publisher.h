// Who gets the newest map when: servers first, and workers once every living server that keeps
// shards has it, so that a worker never knows more than a server that it asks for something. One
// without shards, as one that has just joined, keeps nobody waiting; one that has lost its last
// ones does until it knows. After a death it is enough that the servers whose chains have changed
// have it: those who lost a server wait for nobody else, unless the map changes a table's settings,
// which every living server that keeps shards must know before any worker does.
// Readers get it when workers do, if it is of another epoch than the last that they were sent: of
// the rest of a map they have no use.
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
#include "scheduler/members/readers.h"

namespace leeway::scheduler {

// A map that is urgent goes to workers after this, even if one of its servers has not taken it: it
// may be as dead as the first, and will tell workers to wait.
inline constexpr absl::Duration kUrgentPatience = absl::Milliseconds(100);

class MapPublisher {
 public:
  using Send = std::function<void(const Node& node, const proto::ClusterMap& map)>;
  // What a node has not acknowledged is sent again after `resend_interval`, which doubles up to
  // sixteenfold, since a large map to a slow node must not become a flood.
  MapPublisher(const MembershipTable* members, Readers* readers, absl::Duration resend_interval,
               Send send);

  void Publish(std::shared_ptr<const proto::ClusterMap> map, absl::Time now);
  // The next map is one that workers wait for; only the servers of these ranks need have it first.
  void Hurry(const std::set<std::uint32_t>& concerned, absl::Time now);
  void OnAck(const Node& node, std::uint64_t version, absl::Time now);
  // The node has connected anew: what it was sent may be lost.
  void OnRejoin(const Node& node, absl::Time now);
  void Resend(absl::Time now);
  // Of a node that will not be heard of again.
  void Forget(std::uint32_t node) { progress_.erase(node); }
  // Sends the map to whoever may now have it and was not sent it yet.
  void Advance(absl::Time now);

  // Workers are not told of any map before this is taken back, however urgent.
  void HoldWorkers(bool hold, absl::Time now);

  // Every living server has taken the newest map, as far as workers wait for it.
  bool ServersHaveIt();
  // It has taken some map.
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
  // Likewise of a map of that version or a later one.
  bool ServersHave(std::uint64_t version);
  void SendTo(const Node& node, absl::Time now);

  const MembershipTable* const members_;
  Readers* const readers_;
  const absl::Duration resend_interval_;
  const Send send_;
  std::shared_ptr<const proto::ClusterMap> map_;
  std::uint64_t epoch_version_ = 0;             // of the first map of its epoch
  std::uint64_t settings_version_ = 0;          // of the first map with its tables' settings
  std::map<std::uint32_t, Progress> progress_;  // by node id
  std::set<std::uint32_t> keepers_;             // node ids: servers that have shards by the map
  std::set<std::uint32_t> concerned_;           // ranks, while the map is urgent
  absl::Time urgent_until_ = absl::InfiniteFuture();
  bool workers_held_ = false;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MAPS_MAP_PUBLISHER_H_
