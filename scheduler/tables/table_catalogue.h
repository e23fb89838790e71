// The catalogue of tables: each is created once, installed on every living server, and then open to
// all workers. When one server refuses a table, the others are told to forget it, and the name is
// free. A server that joins late installs all tables before it is given shards. Knows no network.
// Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_TABLES_TABLE_CATALOGUE_H_
#define LEEWAY_SCHEDULER_TABLES_TABLE_CATALOGUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/limits.h"
#include "proto/messages/messages.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

inline constexpr std::size_t kTablesMax = proto::kTablesMax;
inline constexpr std::size_t kRequestsWaitingMax = 1 << 18;

// The newest this many answers to each node. A worker numbers its requests in order.
inline constexpr std::size_t kRepliesRememberedMax = 64;

// The replies to the newest requests of each node, for requests that are repeated because the reply
// was lost. Limit: kRepliesRememberedMax a node.
class ReplyMemory {
 public:
  const proto::TableReply* Find(std::uint32_t node, std::uint64_t request, bool create) const {
    const auto of_node = replies_.find(node);
    if (of_node == replies_.end()) return nullptr;
    const auto reply = of_node->second.find({request, create});
    return reply == of_node->second.end() ? nullptr : &reply->second;
  }
  void Remember(std::uint32_t node, bool create, proto::TableReply reply) {
    auto& of_node = replies_[node];
    const std::uint64_t request = reply.request;
    of_node[{request, create}] = std::move(reply);
    if (of_node.size() > kRepliesRememberedMax) {
      of_node.erase(of_node.begin());
    }
  }
  void Forget(std::uint32_t node) { replies_.erase(node); }

 private:
  using Key = std::pair<std::uint64_t, bool>;                          // request, whether to create
  std::map<std::uint32_t, std::map<Key, proto::TableReply>> replies_;  // by node
};

class TableChanges;

class TableCatalogue {
 public:
  struct Entry {
    std::uint32_t id = 0;
    TableSpec spec;  // as it was created; of a checkpoint's table, as that has it
    Updater::Combine combine = Updater::Combine::kSum;
    bool installed = false;
    bool untouched = false;  // it comes from a checkpoint, and no worker has opened it
    // A checkpoint's table, as the first worker has given it, if not as the checkpoint has it.
    std::optional<TableSpec> given = std::nullopt;
  };

  using Send = std::function<void(std::uint32_t node, const proto::AnyMessage&)>;
  // OK: the late server has all tables. Otherwise it refuses a table, which the status names, and
  // can keep no shards.
  using Prepared = std::function<void(std::uint32_t server, const absl::Status& fit)>;

  // `changes` has what was changed of tables since they were created. `install_timeout`: how long
  // the servers may take, before the creation fails and names them. `prepared` may be called within
  // Prepare and OnInstalled.
  TableCatalogue(const MembershipTable* members, const TableChanges* changes,
                 absl::Duration resend_interval, absl::Duration install_timeout, Send send,
                 Prepared prepared);

  // From a worker. Each is answered with one TableReply, at once or once the table's creation has
  // ended; asked again, with the same one.
  void Create(std::uint32_t node, const proto::CreateTable& create, absl::Time now);
  void Open(std::uint32_t node, const proto::OpenTable& open);

  // From a server. Answers without a request are ignored.
  void OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply);
  // A server has joined late: it takes part in the creations under way.
  void ServerCame(std::uint32_t server);
  // Has the server install the tables that there are; calls Prepared in the end.
  void Prepare(std::uint32_t server, absl::Time now);
  void ServerGone(std::uint32_t server) { late_servers_.erase(server); }
  // A member has gone and is no longer waited for.
  void ServersChanged();
  void Forget(std::uint32_t worker_node);
  // Asks servers that have not answered again; ends creations whose time is up.
  void Tick(absl::Time now);

  std::vector<Entry> tables() const;  // by name
  // The table of that name that is open to all, if there is one.
  std::optional<Entry> Installed(const std::string& name) const;

  // For a catalogue to go on where another one was: the tables that were installed, and the next
  // id. Tables that were being created are created again when they are asked for again.
  void Restore(const std::vector<Entry>& tables, std::uint32_t next_id);
  std::uint32_t next_id() const { return next_id_; }
  // One that no table has, nor will have.
  std::uint32_t TakeId();
  // A worker is about to use the table, and has given it like this; nullopt: it takes it as it is.
  void Touch(const std::string& name, const std::optional<TableSpec>& given);
  // Grows whenever that changes.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Request {
    std::uint32_t node;
    std::uint64_t number;
    bool create;  // or open
    friend auto operator<=>(const Request&, const Request&) = default;
  };
  struct Table {
    Entry entry;
    std::set<std::uint32_t> asked;    // servers
    std::set<std::uint32_t> awaited;  // of which have not answered
    std::set<Request> waiting;        // answered once it is installed
    std::set<std::uint32_t> agreed;   // and have said yes
    absl::Time resend_at, deadline;
  };
  struct LateServer {
    std::map<std::uint32_t, Entry> missing;  // by table
    absl::Time resend_at;
  };

  absl::Status CheckSame(const Entry& entry, const TableSpec& wanted) const;
  bool AnswerAgain(const Request& request);
  void Answer(const Request& request, proto::TableReply reply);
  void Refuse(const Request& request, absl::Status why);
  void Give(const Request& request, const Entry& entry);
  void Wait(const Request& request, Table* table);
  void StartInstall(const Request& request, const TableSpec& spec, absl::Time now);
  void SendInstall(const Table& table);
  void SendMissing(std::uint32_t server, const LateServer& late);
  bool OnMissingInstalled(std::uint32_t server, const proto::InstallTableReply& reply);
  void FinishIfInstalled(Table* table);
  void Fail(const std::string& name, const absl::Status& why);
  absl::Status NotFound(const std::string& name) const;
  absl::Status Timeout(const Table& table, absl::Time now) const;

  const MembershipTable* const members_;
  const TableChanges* const table_changes_;
  const absl::Duration resend_interval_, install_timeout_;
  const Send send_;
  const Prepared prepared_;
  std::map<std::string, Table> tables_;               // by name
  std::map<std::uint32_t, std::string> installing_;   // id → name
  std::map<std::uint32_t, LateServer> late_servers_;  // by node
  ReplyMemory replies_;
  std::size_t requests_waiting_ = 0;
  std::uint32_t next_id_ = 1;
  std::uint64_t changes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_TABLE_CATALOGUE_H_
