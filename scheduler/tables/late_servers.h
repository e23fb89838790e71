// The installation of all tables on servers that joined late, before they are given shards. Knows
// no network. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_TABLES_LATE_SERVERS_H_
#define LEEWAY_SCHEDULER_TABLES_LATE_SERVERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "scheduler/tables/table_catalogue.h"

namespace leeway::scheduler {

class LateServers {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void SendTo(std::uint32_t node, const proto::InstallTable& install) = 0;
    // The server has all tables.
    virtual void OnPrepared(std::uint32_t node) = 0;
    // The server refuses a table, and can keep no shards. The status names the table.
    virtual void OnUnfit(std::uint32_t node, const absl::Status& why) = 0;
  };
  // `owner` may be called within Begin and OnInstalled.
  LateServers(absl::Duration resend_interval, Owner* owner)
      : resend_interval_(resend_interval), owner_(owner) {}

  void Begin(std::uint32_t node, const std::vector<TableCatalogue::Entry>& tables, absl::Time now);
  // True if it answers an installation that was asked for here.
  bool OnInstalled(std::uint32_t node, const proto::InstallTableReply& reply);
  void Forget(std::uint32_t node) { servers_.erase(node); }
  // Repeats installations that are not answered.
  void Tick(absl::Time now);

  bool preparing(std::uint32_t node) const { return servers_.contains(node); }

 private:
  struct Server {
    std::map<std::uint32_t, TableCatalogue::Entry> missing;  // by table
    absl::Time resend_at;
  };
  void Send(std::uint32_t node, const Server& server);

  const absl::Duration resend_interval_;
  Owner* const owner_;
  std::map<std::uint32_t, Server> servers_;  // by node
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_LATE_SERVERS_H_
