// The start of a cluster from a checkpoint. Once the cluster is complete, every server installs the
// checkpoint's tables and takes the map; then each loads the rows of its shards, and only then do
// the workers get the map. A server that fails meanwhile ends the cluster: nothing has been trained
// yet, and a part of a model is of no use.
//
// Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CHECKPOINTS_RESTORATION_H_
#define LEEWAY_SCHEDULER_CHECKPOINTS_RESTORATION_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "checkpoint/manifest.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"
#include "scheduler/tables/table_service.h"

namespace leeway::scheduler {

class Restoration {
 public:
  // The durable state.
  struct State {
    std::string path;            // of the checkpoint; empty: the cluster started with nothing
    std::uint64_t checksum = 0;  // of its manifest
    std::uint64_t clock = 0;     // where it starts
    bool loaded = false;         // by all servers
    friend bool operator==(const State&, const State&) = default;
  };
  // All outlive it.
  Restoration(const Config* config, runtime::Host* host, runtime::Loop* loop,
              const MembershipTable* members, NodeSender* sender, ClusterMaps* maps,
              TableService* tables, ClusterLife* life);

  // Goes on where another scheduler was.
  void GoOnFrom(State state) { state_ = std::move(state); }
  // Before any node can connect: opens LEEWAY_RESTORE or, if the scheduler was `restarted`, the
  // checkpoint that the servers had not loaded. The error names the setting or the file.
  absl::Status Open(bool restarted);
  // The cluster is complete, or goes on after a restart: servers are asked to load, if they have
  // not done so. Workers get no map meanwhile.
  void LoadIfWanted();
  void ServerPrepared(std::uint32_t server);  // it has all tables
  void LoadIfPrepared();                      // servers may have the newest map
  void OnLoaded(std::uint32_t server, const proto::RestoreShardsReply& reply);
  // A server has gone, for that reason: ends the cluster if it was loading. False: it was not.
  bool FailIfLoading(const std::string& why);
  // To be called often: asks again, and ends the cluster once the time is up.
  void Tick();

  const State& state() const { return state_; }
  bool loading() const { return loading_; }
  // How many servers have loaded, of how many: for people.
  std::string Progress() const;

 private:
  bool wanted() const { return !state_.path.empty() && !state_.loaded; }
  void TakeTables(const checkpoint::Manifest& manifest);
  void Ask();
  absl::Status TimedOut() const;
  void Fail(const absl::Status& why);
  absl::Time Now() const { return loop_->Now(); }

  const Config* const config_;
  runtime::Host* const host_;
  runtime::Loop* const loop_;
  const MembershipTable* const members_;
  NodeSender* const sender_;
  ClusterMaps* const maps_;
  TableService* const tables_;
  ClusterLife* const life_;
  State state_;
  bool loading_ = false;
  std::uint64_t request_ = 0;
  std::size_t servers_ = 0;
  std::set<std::uint32_t> preparing_;  // servers that lack tables
  std::set<std::uint32_t> waiting_;    // servers that have not loaded
  absl::Time deadline_,
      resend_at_ = absl::InfiniteFuture();  // of the request; infinite: there is none
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHECKPOINTS_RESTORATION_H_
