// The checkpoints of the cluster: saves them on command, periodically and at the end, and starts
// the cluster from one.
//
// Owns Checkpoints (how one is saved) and Restoration (how servers load one), and answers what they
// ask about the cluster. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINT_SERVICE_H_
#define LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINT_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "scheduler/admin/admin_service.h"
#include "scheduler/chains/chain_controller.h"
#include "scheduler/checkpoints/checkpoints.h"
#include "scheduler/checkpoints/restoration.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/liveness.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"
#include "scheduler/tables/table_service.h"

namespace leeway::scheduler {

class CheckpointService final : private Checkpoints::Cluster {
 public:
  // The objects that it uses; all outlive it.
  struct Parts {
    const Config* config;
    runtime::Host* host;
    runtime::Loop* loop;
    const van::Identity* identity;  // the scheduler's: the cluster's id
    MembershipTable* members;
    NodeSender* sender;
    const Liveness* liveness;
    ClusterMaps* maps;
    TableService* tables;
    const ChainController* chains;
    ClusterLife* life;
  };
  explicit CheckpointService(const Parts& parts);

  // ---- saving ----
  // checkpoint-save [FOLDER [incremental] [at:CLOCK]]. Answered once it is saved.
  void SaveCommand(const AdminService::Arguments& arguments, const AdminService::Answer& answer);
  // All workers have left.
  void SaveAtEnd(std::function<void(const absl::Status&)> done);
  // From servers.
  void OnPrepared(std::uint32_t server, const proto::CheckpointPrepared& prepared);
  void OnWritten(std::uint32_t server, const proto::CheckpointWritten& written);
  // The cluster ends: nothing more is begun.
  void Stop() { checkpoints_.Stop(); }
  // To be called often.
  void TickSaving();

  // ---- starting from one ----
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
  void TickLoading();
  bool loading() const { return restoration_.loading(); }

  const Restoration& restoration() const { return restoration_; }
  const Checkpoints& checkpoints() const { return checkpoints_; }
  // Goes on where another scheduler was.
  void Restore(Restoration::State state) { restoration_.GoOnFrom(std::move(state)); }
  void NumberFrom(std::uint64_t generation) { checkpoints_.NumberFrom(generation); }

 private:
  // ---- Checkpoints::Cluster ----
  Checkpoints::Facts GetFacts() const override;
  std::string Describe(std::uint32_t node) const override;
  std::string LastHeard(std::uint32_t node) const override;
  std::string MostSilentWorker() const override;
  void Tell(std::uint32_t node, const proto::AnyMessage& message) override;

  void Fail(const absl::Status& why);
  absl::Time Now() const { return parts_.loop->Now(); }

  const Parts parts_;
  Restoration restoration_;
  Checkpoints checkpoints_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINT_SERVICE_H_
