#include "scheduler/tables/table_catalogue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/tables/table_difference.h"
#include "runtime/base/format_duration.h"
#include "scheduler/tables/known_codecs.h"
#include "scheduler/tables/table_changes.h"

namespace leeway::scheduler {

TableCatalogue::TableCatalogue(const MembershipTable* members, const TableChanges* changes,
                               absl::Duration resend_interval, absl::Duration install_timeout,
                               Send send, Prepared prepared)
    : members_(members),
      table_changes_(changes),
      resend_interval_(resend_interval),
      install_timeout_(install_timeout),
      send_(std::move(send)),
      prepared_(std::move(prepared)) {}

void TableCatalogue::Create(std::uint32_t node, const proto::CreateTable& create, absl::Time now) {
  const Request request{node, create.request, true};
  if (AnswerAgain(request)) return;
  if (absl::Status valid = create.spec.Validate(); !valid.ok()) {
    Refuse(request, valid);
    return;
  }
  const auto found = tables_.find(create.spec.name);
  if (found == tables_.end()) {
    StartInstall(request, create.spec, now);
  } else if (const absl::Status same = CheckSame(found->second.entry, create.spec); !same.ok()) {
    Refuse(request, same);
  } else if (found->second.entry.installed) {
    Give(request, found->second.entry);
  } else {
    Wait(request, &found->second);
  }
}

// A worker may give the table as it is, or as it was created, as the others have given it.
absl::Status TableCatalogue::CheckSame(const Entry& entry, const TableSpec& wanted) const {
  if (entry.given.value_or(entry.spec) == wanted) return absl::OkStatus();
  const std::vector<proto::FieldDifference> differences =
      proto::DifferencesOf(table_changes_->SpecOf(entry), wanted);
  if (differences.empty()) return absl::OkStatus();
  const bool shaped = std::any_of(differences.begin(), differences.end(),
                                  [](const auto& one) { return one.shapes_data; });
  return absl::AlreadyExistsError(absl::StrCat(
      "table '", wanted.name, "' exists, and differs: ", proto::DescribeDifferences(differences),
      shaped ? ""
             : " (Worker::ChangeTable and `leeway table` change rates, bounds on staleness and the "
               "NaN policy; a table of a checkpoint gets another consistency from the first worker "
               "that creates it)"));
}

std::uint32_t TableCatalogue::TakeId() {
  ++changes_;
  return next_id_++;
}

void TableCatalogue::Touch(const std::string& name, const std::optional<TableSpec>& given) {
  const auto found = tables_.find(name);
  if (found == tables_.end()) return;
  Entry& entry = found->second.entry;
  if (!std::exchange(entry.untouched, false)) return;
  if (given.has_value() && *given != entry.spec) {
    entry.given = given;
  }
  ++changes_;
}

void TableCatalogue::Open(std::uint32_t node, const proto::OpenTable& open) {
  const Request request{node, open.request, false};
  if (AnswerAgain(request)) return;
  const auto found = tables_.find(open.name);
  if (found == tables_.end()) {
    Refuse(request, NotFound(open.name));
  } else if (found->second.entry.installed) {
    Give(request, found->second.entry);
  } else {
    Wait(request, &found->second);
  }
}

void TableCatalogue::StartInstall(const Request& request, const TableSpec& spec, absl::Time now) {
  const std::vector<std::uint32_t> living = members_->AliveIds(Role::kServer);
  if (living.empty()) {
    Refuse(request, absl::UnavailableError(
                        absl::StrCat("cannot create table '", spec.name, "': no server is alive")));
    return;
  }
  if (const absl::Status known = CheckCodecsAreKnown(spec, members_->Alive()); !known.ok()) {
    Refuse(request, known);
    return;
  }
  if (tables_.size() >= kTablesMax) {
    Refuse(request, absl::ResourceExhaustedError(absl::StrCat("cannot create table '", spec.name,
                                                              "': there are ", kTablesMax)));
    return;
  }
  Table& table = tables_[spec.name];
  table.entry.id = next_id_++;
  ++changes_;
  table.entry.spec = spec;
  table.asked.insert(living.begin(), living.end());
  table.awaited = table.asked;
  table.resend_at = now + resend_interval_;
  table.deadline = now + install_timeout_;
  installing_[table.entry.id] = spec.name;
  Wait(request, &table);
  SendInstall(table);
}

void TableCatalogue::SendInstall(const Table& table) {
  proto::InstallTable install;
  install.table = table.entry.id;
  install.spec = table.entry.spec;
  for (std::uint32_t server : table.awaited) send_(server, install);
}

void TableCatalogue::OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply) {
  if (OnMissingInstalled(server, reply)) return;
  const auto name = installing_.find(reply.table);
  if (name == installing_.end()) return;
  Table& table = tables_.at(name->second);
  if (!table.awaited.contains(server)) return;
  if (!reply.result.ok()) {
    Fail(name->second,
         absl::Status(reply.result.code(),
                      absl::StrCat(members_->DescribeServer(server), " refuses table '",
                                   name->second, "': ", reply.result.message())));
    return;
  }
  if (!table.agreed.empty() && table.entry.combine != reply.combine) {
    Fail(name->second,
         absl::FailedPreconditionError(absl::StrCat(
             members_->DescribeServer(*table.agreed.begin()), " and ",
             members_->DescribeServer(server), " have different updaters named '",
             table.entry.spec.updater.name, "'; give all servers the same LEEWAY_PLUGINS")));
    return;
  }
  table.entry.combine = reply.combine;
  table.awaited.erase(server);
  table.agreed.insert(server);
  FinishIfInstalled(&table);
}

void TableCatalogue::FinishIfInstalled(Table* table) {
  if (!table->awaited.empty()) return;
  if (table->agreed.empty()) {
    const std::string name = table->entry.spec.name;
    Fail(name, absl::UnavailableError(
                   absl::StrCat("table '", name, "' was not created: no server is alive")));
    return;
  }
  table->entry.installed = true;
  ++changes_;
  installing_.erase(table->entry.id);
  requests_waiting_ -= table->waiting.size();
  for (const Request& request : std::exchange(table->waiting, {})) Give(request, table->entry);
}

void TableCatalogue::Fail(const std::string& name, const absl::Status& why) {
  const auto node = tables_.extract(name);
  const Table& table = node.mapped();
  installing_.erase(table.entry.id);
  requests_waiting_ -= table.waiting.size();
  // Once: a server that misses it keeps a table whose id is never used again.
  for (std::uint32_t server : table.asked) {
    send_(server, proto::InstallTableReply{.table = table.entry.id, .result = why});
  }
  for (const Request& request : table.waiting) Refuse(request, why);
}

void TableCatalogue::ServerCame(std::uint32_t server) {
  for (const auto& [id, name] : installing_) {
    Table& table = tables_.at(name);
    table.asked.insert(server);
    table.awaited.insert(server);
    send_(server, proto::InstallTable{.table = id, .spec = table.entry.spec});
  }
}

// ---- servers that join late ----

void TableCatalogue::Prepare(std::uint32_t server, absl::Time now) {
  LateServer late{.missing = {}, .resend_at = now + resend_interval_};
  // Those that are being created: ServerCame.
  for (const auto& [name, table] : tables_) {
    if (table.entry.installed) late.missing.emplace(table.entry.id, table.entry);
  }
  if (late.missing.empty()) return prepared_(server, absl::OkStatus());
  SendMissing(server, late_servers_[server] = std::move(late));
}

void TableCatalogue::SendMissing(std::uint32_t server, const LateServer& late) {
  for (const auto& [id, table] : late.missing) {
    send_(server, proto::InstallTable{.table = id, .spec = table.spec});
  }
}

// True if it answers an installation that Prepare has asked for.
bool TableCatalogue::OnMissingInstalled(std::uint32_t server,
                                        const proto::InstallTableReply& reply) {
  const auto late = late_servers_.find(server);
  if (late == late_servers_.end()) return false;
  const auto table = late->second.missing.find(reply.table);
  if (table == late->second.missing.end()) return false;
  const Entry entry = table->second;
  absl::Status fit = reply.result;
  if (fit.ok() && reply.combine != entry.combine) {
    fit = absl::FailedPreconditionError(absl::StrCat(
        "it has another updater named '", entry.spec.updater.name, "' than the other servers"));
  }
  late->second.missing.erase(table);
  if (fit.ok() && !late->second.missing.empty()) return true;
  late_servers_.erase(late);
  if (!fit.ok()) {
    fit = absl::Status(
        fit.code(), absl::StrCat("it does not take table '", entry.spec.name, "': ", fit.message(),
                                 "; give all servers the same LEEWAY_PLUGINS"));
  }
  prepared_(server, fit);
  return true;
}

// ---- members go, time passes ----

void TableCatalogue::ServersChanged() {
  const std::vector<std::uint32_t> living = members_->AliveIds(Role::kServer);
  const std::map<std::uint32_t, std::string> installing = installing_;
  for (const auto& [id, name] : installing) {
    Table& table = tables_.at(name);
    const auto gone = [&](std::uint32_t server) {
      return std::find(living.begin(), living.end(), server) == living.end();
    };
    std::erase_if(table.awaited, gone);
    std::erase_if(table.agreed, gone);
    FinishIfInstalled(&table);
  }
}

void TableCatalogue::Forget(std::uint32_t worker_node) {
  replies_.Forget(worker_node);
  for (const auto& [id, name] : installing_) {
    requests_waiting_ -= std::erase_if(tables_.at(name).waiting, [&](const Request& request) {
      return request.node == worker_node;
    });
  }
}

void TableCatalogue::Tick(absl::Time now) {
  const std::map<std::uint32_t, std::string> installing = installing_;
  for (const auto& [id, name] : installing) {
    Table& table = tables_.at(name);
    if (now >= table.deadline) {
      Fail(name, Timeout(table, now));
    } else if (now >= table.resend_at) {
      table.resend_at = now + resend_interval_;
      SendInstall(table);
    }
  }
  for (auto& [server, late] : late_servers_) {
    if (now < late.resend_at) continue;
    late.resend_at = now + resend_interval_;
    SendMissing(server, late);
  }
}

absl::Status TableCatalogue::Timeout(const Table& table, absl::Time now) const {
  std::vector<std::string> names;
  for (std::uint32_t server : table.awaited) {
    if (names.size() < kNamedMax) {
      names.push_back(
          absl::StrCat(members_->DescribeServer(server), ", ", members_->LastHeard(server, now)));
    }
  }
  return absl::DeadlineExceededError(
      absl::StrCat("table '", table.entry.spec.name, "' was not created: waited ",
                   runtime::FormatDuration(install_timeout_), " (LEEWAY_REQUEST_TIMEOUT_MS) for ",
                   absl::StrJoin(names, ", "),
                   table.awaited.size() > kNamedMax
                       ? absl::StrCat(" and ", table.awaited.size() - kNamedMax, " more")
                       : ""));
}

absl::Status TableCatalogue::NotFound(const std::string& name) const {
  std::vector<std::string> names;
  std::size_t installed = 0;
  for (const auto& [table_name, table] : tables_) {
    if (!table.entry.installed) continue;
    ++installed;
    if (names.size() < kNamedMax) names.push_back(absl::StrCat("'", table_name, "'"));
  }
  std::string text = absl::StrCat("there is no table '", name, "'; ");
  if (installed == 0) {
    absl::StrAppend(&text, "there are none yet");
  } else {
    absl::StrAppend(&text, "there are ", absl::StrJoin(names, ", "));
    if (installed > names.size())
      absl::StrAppend(&text, " and ", installed - names.size(), " more");
  }
  return absl::NotFoundError(text);
}

bool TableCatalogue::AnswerAgain(const Request& request) {
  const proto::TableReply* reply = replies_.Find(request.node, request.number, request.create);
  if (reply == nullptr) return false;
  send_(request.node, *reply);
  return true;
}

void TableCatalogue::Answer(const Request& request, proto::TableReply reply) {
  reply.request = request.number;
  send_(request.node, reply);
  replies_.Remember(request.node, request.create, std::move(reply));
}

void TableCatalogue::Refuse(const Request& request, absl::Status why) {
  proto::TableReply reply;
  reply.result = std::move(why);
  Answer(request, std::move(reply));
}

void TableCatalogue::Give(const Request& request, const Entry& entry) {
  proto::TableReply reply;
  reply.table = entry.id;
  reply.spec = entry.spec;
  reply.combine = entry.combine;
  reply.table_settings = table_changes_->EntriesOf(entry.id);
  Answer(request, std::move(reply));
}

void TableCatalogue::Wait(const Request& request, Table* table) {
  if (requests_waiting_ >= kRequestsWaitingMax) {
    Refuse(request, absl::ResourceExhaustedError(
                        absl::StrCat(kRequestsWaitingMax, " requests wait for tables already")));
    return;
  }
  if (table->waiting.insert(request).second) ++requests_waiting_;
}

void TableCatalogue::Restore(const std::vector<Entry>& tables, std::uint32_t next_id) {
  for (const Entry& entry : tables) tables_[entry.spec.name].entry = entry;
  next_id_ = next_id;
}

std::optional<TableCatalogue::Entry> TableCatalogue::Installed(const std::string& name) const {
  const auto found = tables_.find(name);
  if (found == tables_.end() || !found->second.entry.installed) return std::nullopt;
  return found->second.entry;
}

std::vector<TableCatalogue::Entry> TableCatalogue::tables() const {
  std::vector<Entry> all;
  for (const auto& [name, table] : tables_) all.push_back(table.entry);
  return all;
}

}  // namespace leeway::scheduler
