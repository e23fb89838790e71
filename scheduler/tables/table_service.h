// The tables of the cluster: answers workers that create or open them, changes them by the command
// `table`, and gives them to servers that join late.
//
// Owns the TableCatalogue and the TableChanges. Tables that come from a checkpoint get the settings
// with which a worker creates them again ("renewal"): that worker is answered once all servers know
// the settings. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_TABLES_TABLE_SERVICE_H_
#define LEEWAY_SCHEDULER_TABLES_TABLE_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "scheduler/admin/admin_service.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"
#include "scheduler/tables/table_catalogue.h"
#include "scheduler/tables/table_changes.h"

namespace leeway::scheduler {

class TableService {
 public:
  struct Options {
    absl::Duration resend_interval;
    absl::Duration install_timeout;  // how long servers may take to install or to change a table
    std::function<std::uint64_t()> start_clock;  // of the checkpoint the cluster started from
    // A late server has all tables.
    std::function<void(std::uint32_t server)> on_prepared;
  };

  // All outlive it.
  TableService(runtime::Loop* loop, MembershipTable* members, NodeSender* sender, ClusterMaps* maps,
               ClusterLife* life, Options options);

  // From workers, and OpenTable from readers too; refused while the cluster is not ready.
  void OnCreate(const Node& worker, const proto::CreateTable& create);
  void OnOpen(const Node& node, const proto::OpenTable& open);
  // From servers.
  void OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply);
  // table NAME [FIELD=VALUE …]. Answered once it is decided from which clock on the changes hold.
  void Command(const AdminService::Arguments& arguments, const AdminService::Answer& answer);

  // A server that came late is asked to install all tables before it gets shards.
  void PrepareServer(std::uint32_t server);
  // A late server takes part in the creations under way, too.
  void ServerCame(std::uint32_t server);
  void ServerGone(std::uint32_t server) { catalogue_.ServerGone(server); }
  // A worker or a reader has gone: its requests are dropped.
  void ClientGone(std::uint32_t client) { catalogue_.Forget(client); }
  // A worker has gone: changes no longer wait for it.
  void WorkersChanged();
  // Some member has gone: creations and changes no longer wait for it.
  void MembersChanged();

  // To be called often: asks servers that have not answered again, and ends what takes too long.
  void Tick();
  // The servers have the newest map: workers whose tables were renewed get their answers.
  void FinishRenewals();

  TableCatalogue* catalogue() { return &catalogue_; }
  TableChanges* table_changes() { return &table_changes_; }
  const TableCatalogue& catalogue() const { return catalogue_; }
  const TableChanges& table_changes() const { return table_changes_; }

 private:
  void OnPrepared(std::uint32_t server, const absl::Status& fit);
  bool IsReady(const Node& node, std::uint64_t request);
  bool Renews(const Node& worker, const proto::CreateTable& create);
  bool IsRenewed(const std::string& name) const;
  void AnswerLater(std::uint32_t worker, const proto::CreateTable& create);
  absl::Time Now() const { return loop_->Now(); }

  runtime::Loop* const loop_;
  MembershipTable* const members_;
  NodeSender* const sender_;
  ClusterMaps* const maps_;
  ClusterLife* const life_;
  const Options options_;
  TableCatalogue catalogue_;
  TableChanges table_changes_;
  // Creations of tables that are being renewed, with the worker's node.
  std::vector<std::pair<std::uint32_t, proto::CreateTable>> renewals_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_TABLE_SERVICE_H_
