#include "scheduler/tables/late_servers.h"

#include "absl/strings/str_cat.h"

namespace leeway::scheduler {

void LateServers::Begin(std::uint32_t node, const std::vector<TableCatalogue::Entry>& tables,
                        absl::Time now) {
  Server server;
  // Tables that are being created are the catalogue's (TableCatalogue::ServerCame).
  for (const TableCatalogue::Entry& table : tables) {
    if (table.installed) server.missing.emplace(table.id, table);
  }
  if (server.missing.empty()) {
    owner_->OnPrepared(node);
    return;
  }
  server.resend_at = now + resend_interval_;
  Send(node, servers_[node] = std::move(server));
}

bool LateServers::OnInstalled(std::uint32_t node, const proto::InstallTableReply& reply) {
  const auto server = servers_.find(node);
  if (server == servers_.end()) return false;
  const auto table = server->second.missing.find(reply.table);
  if (table == server->second.missing.end()) return false;
  const TableCatalogue::Entry entry = table->second;
  absl::Status fit = reply.result;
  if (fit.ok() && reply.combine != entry.combine) {
    fit = absl::FailedPreconditionError(absl::StrCat(
        "it has another updater named '", entry.spec.updater.name, "' than the other servers"));
  }
  if (!fit.ok()) {
    servers_.erase(server);
    owner_->OnUnfit(
        node, absl::Status(fit.code(), absl::StrCat("it does not take table '", entry.spec.name,
                                                    "': ", fit.message(),
                                                    "; give all servers the same LEEWAY_PLUGINS")));
    return true;
  }
  server->second.missing.erase(table);
  if (!server->second.missing.empty()) return true;
  servers_.erase(server);
  owner_->OnPrepared(node);
  return true;
}

void LateServers::Tick(absl::Time now) {
  for (auto& [node, server] : servers_) {
    if (now < server.resend_at) continue;
    server.resend_at = now + resend_interval_;
    Send(node, server);
  }
}

void LateServers::Send(std::uint32_t node, const Server& server) {
  for (const auto& [id, table] : server.missing) {
    owner_->SendTo(node, proto::InstallTable{.table = id, .spec = table.spec});
  }
}

}  // namespace leeway::scheduler
