// The catalogue of tables: each is created once, installed on every living server, and then open to
// all workers. When one server refuses a table, the others are told to forget it, and the name is
// free. Knows no network. Lives on the scheduler's loop.
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
#include "scheduler/tables/reply_memory.h"

namespace leeway::scheduler {

inline constexpr std::size_t kTablesMax = proto::kTablesMax;
inline constexpr std::size_t kRequestsWaitingMax = 1 << 18;

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

  // The members, as the catalogue sees them.
  class Members {
   public:
    virtual ~Members() = default;
    virtual std::vector<std::uint32_t> LivingServers() const = 0;  // their nodes
    virtual std::string Describe(std::uint32_t node) const = 0;    // "server 1 (tcp://…)"
    virtual std::string LastHeard(std::uint32_t node) const = 0;   // "last heard 3s ago"
    // FAILED_PRECONDITION names the living node without one of the table's codecs.
    virtual absl::Status CheckCodecs(const TableSpec& spec) const = 0;
    // The table's description with all changes since it was created (table_changes.h).
    virtual TableSpec SpecOf(const Entry& table) const { return table.spec; }
    virtual std::vector<proto::TableSettings> TableSettingsOf(std::uint32_t /*table*/) const {
      return {};
    }
  };
  using Send = std::function<void(std::uint32_t node, const proto::AnyMessage&)>;

  // `install_timeout`: how long the servers may take, before the creation fails and names them.
  TableCatalogue(const Members* members, absl::Duration resend_interval,
                 absl::Duration install_timeout, Send send);

  // From a worker. Each is answered with one TableReply, at once or once the table's creation has
  // ended; asked again, with the same one.
  void Create(std::uint32_t node, const proto::CreateTable& create, absl::Time now);
  void Open(std::uint32_t node, const proto::OpenTable& open);

  // From a server. Answers without a request are ignored.
  void OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply);
  // A server has joined late: it takes part in the creations under way.
  void ServerCame(std::uint32_t server);
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

  absl::Status CheckSame(const Entry& entry, const TableSpec& wanted) const;
  bool AnswerAgain(const Request& request);
  void Answer(const Request& request, proto::TableReply reply);
  void Refuse(const Request& request, absl::Status why);
  void Give(const Request& request, const Entry& entry);
  void Wait(const Request& request, Table* table);
  void StartInstall(const Request& request, const TableSpec& spec, absl::Time now);
  void SendInstall(const Table& table);
  void FinishIfInstalled(Table* table);
  void Fail(const std::string& name, const absl::Status& why);
  absl::Status NotFound(const std::string& name) const;
  absl::Status Timeout(const Table& table) const;

  const Members* const members_;
  const absl::Duration resend_interval_, install_timeout_;
  const Send send_;
  std::map<std::string, Table> tables_;              // by name
  std::map<std::uint32_t, std::string> installing_;  // id → name
  ReplyMemory replies_;
  std::size_t requests_waiting_ = 0;
  std::uint32_t next_id_ = 1;
  std::uint64_t changes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_TABLE_CATALOGUE_H_
