#include "scheduler/tables/table_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/tables/table_difference.h"
#include "proto/tables/text.h"
#include "runtime/log/log.h"
#include "scheduler/tables/known_codecs.h"
#include "scheduler/tables/table_command.h"

namespace leeway::scheduler {

TableService::TableService(runtime::Loop* loop, MembershipTable* members, NodeSender* sender,
                           const Liveness* liveness, ClusterMaps* maps, ClusterLife* life,
                           Options options)
    : loop_(loop),
      members_(members),
      sender_(sender),
      liveness_(liveness),
      maps_(maps),
      life_(life),
      options_(std::move(options)),
      catalogue_(this, options_.resend_interval, options_.install_timeout,
                 [sender](std::uint32_t id, const proto::AnyMessage& message) {
                   sender->SendToNode(id, message);
                 }),
      table_changes_(
          this, options_.resend_interval, options_.install_timeout,
          [sender](std::uint32_t id, const proto::AnyMessage& message) {
            sender->SendToNode(id, message);
          },
          [members] { return members->AliveIds(Role::kWorker); },
          [maps] { maps->ChangeAndPublish(); }),
      late_servers_(options_.resend_interval, this) {}

// ---- requests ----

// Tables are installed on every server, so the cluster must be complete.
bool TableService::IsReady(const Node& node, std::uint64_t request) {
  const absl::Status ready = life_->Ready();
  if (ready.ok()) return true;
  proto::TableReply reply;
  reply.request = request;
  reply.result = ready;
  sender_->SendTo(node, reply);
  return false;
}

void TableService::OnCreate(const Node& worker, const proto::CreateTable& create) {
  if (!IsReady(worker, create.request)) return;
  if (!Renews(worker, create)) catalogue_.Create(worker.id, create, Now());
}

void TableService::OnOpen(const Node& node, const proto::OpenTable& open) {
  if (!IsReady(node, open.request)) return;
  if (node.role == Role::kWorker) {
    if (IsRenewed(open.name)) {
      return;  // the worker asks again
    }
    catalogue_.Touch(open.name, std::nullopt);
  }
  catalogue_.Open(node.id, open);
}

void TableService::OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply) {
  if (late_servers_.OnInstalled(server, reply)) return;
  if (table_changes_.OnInstalled(server, reply)) return;
  catalogue_.OnInstalled(server, reply);
}

void TableService::Command(const AdminService::Arguments& arguments,
                           const AdminService::Answer& answer) {
  if (arguments.empty()) {
    return answer(
        absl::InvalidArgumentError(absl::StrCat("table takes a name, and ", kTableChangeUsage)));
  }
  if (const absl::Status ready = life_->Ready(); !ready.ok()) return answer(ready);
  const std::string& name = arguments[0];
  const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(name);
  if (!table.has_value()) {
    return answer(
        absl::NotFoundError(absl::StrCat("there is no table ", proto::QuotedBriefly(name))));
  }
  const TableSpec before = SpecOf(*table);
  const absl::StatusOr<TableSpec> wanted = WithChanges(before, arguments);
  if (!wanted.ok()) return answer(wanted.status());
  const std::string changes = proto::DescribeDifferences(proto::DifferencesOf(before, *wanted));
  // No worker uses a table that none has opened since the start from a checkpoint.
  const std::optional<std::uint64_t> from =
      table->untouched ? std::optional(options_.start_clock()) : std::nullopt;
  const std::uint32_t trial = *wanted == before ? 0 : catalogue_.TakeId();
  table_changes_.Change(
      *table, *wanted, trial, from, Now(),
      [=, spec = wanted->ToString()](const absl::StatusOr<std::uint64_t>& clock) {
        if (!clock.ok()) return answer(clock.status());
        if (!changes.empty()) {
          runtime::LogInfo("table '", name, "' is changed from clock ", *clock, " on: ", changes);
        }
        const nlohmann::json json = {{"table", name}, {"clock", *clock}, {"spec", spec}};
        answer(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      });
}

// ---- tables of a checkpoint ----

// True while a table of a checkpoint is being renewed. No worker may use it before that is over,
// since the new settings hold for all clocks.
bool TableService::IsRenewed(const std::string& name) const {
  const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(name);
  return table.has_value() && table->untouched && table_changes_.changing(table->id);
}

// Renews the table of a checkpoint that no worker has opened yet: it gets the settings that the
// first worker gives, as far as they do not shape the data. False: the table is not renewed.
bool TableService::Renews(const Node& worker, const proto::CreateTable& create) {
  const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(create.spec.name);
  if (!table.has_value() || !table->untouched) return false;
  if (table_changes_.changing(table->id)) {
    AnswerLater(worker.id, create);
    return true;
  }
  const TableSpec is = SpecOf(*table);
  if (is == create.spec || !create.spec.Validate().ok() ||
      !proto::CheckShapedAlike(is, create.spec).ok()) {
    if (is == create.spec) catalogue_.Touch(create.spec.name, create.spec);
    return false;
  }
  const std::string changes = proto::DescribeDifferences(proto::DifferencesOf(is, create.spec));
  table_changes_.Change(
      *table, create.spec, catalogue_.TakeId(), options_.start_clock(), Now(),
      [this, node = worker.id, create, changes](const absl::StatusOr<std::uint64_t>& clock) {
        if (!clock.ok()) {
          proto::TableReply reply;
          reply.request = create.request;
          reply.result = clock.status();
          return sender_->SendToNode(node, reply);
        }
        runtime::LogInfo("table '", create.spec.name, "' of the checkpoint is changed: ", changes);
        catalogue_.Touch(create.spec.name, create.spec);
        AnswerLater(node, create);
      });
  return true;
}

// A request that is repeated waits once.
void TableService::AnswerLater(std::uint32_t worker, const proto::CreateTable& create) {
  const bool waits = std::any_of(renewals_.begin(), renewals_.end(), [&](const auto& one) {
    return one.first == worker && one.second.request == create.request;
  });
  if (!waits) renewals_.emplace_back(worker, create);
}

void TableService::FinishRenewals() {
  if (!maps_->ServersHaveNewest()) return;
  for (const auto& [node, create] : std::exchange(renewals_, {})) {
    const Node* const worker = members_->Find(node);
    if (worker == nullptr || !worker->alive()) continue;
    const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(create.spec.name);
    if (table.has_value() && table_changes_.changing(table->id)) {
      renewals_.emplace_back(node, create);
    } else if (!Renews(*worker, create)) {
      catalogue_.Create(node, create, Now());
    }
  }
}

// ---- members come and go ----

void TableService::PrepareServer(std::uint32_t server) {
  late_servers_.Begin(server, catalogue_.tables(), Now());
}

void TableService::ServerCame(std::uint32_t server) {
  catalogue_.ServerCame(server);
  PrepareServer(server);
}

void TableService::WorkersChanged() { table_changes_.WorkersChanged(); }

void TableService::MembersChanged() {
  catalogue_.ServersChanged();
  table_changes_.ServersChanged();
}

void TableService::Tick() {
  catalogue_.Tick(Now());
  table_changes_.Tick(Now());
  FinishRenewals();
  late_servers_.Tick(Now());
}

// ---- TableCatalogue::Members ----

std::vector<std::uint32_t> TableService::LivingServers() const {
  return members_->AliveIds(Role::kServer);
}

std::string TableService::Describe(std::uint32_t node) const {
  return members_->DescribeServer(node);
}

std::string TableService::LastHeard(std::uint32_t node) const { return liveness_->LastHeard(node); }

absl::Status TableService::CheckCodecs(const TableSpec& spec) const {
  return CheckCodecsAreKnown(spec, members_->Alive());
}

TableSpec TableService::SpecOf(const TableCatalogue::Entry& table) const {
  return table_changes_.SpecOf(table);
}

std::vector<proto::TableSettings> TableService::TableSettingsOf(std::uint32_t table) const {
  return table_changes_.EntriesOf(table);
}

// ---- LateServers::Owner ----

void TableService::SendTo(std::uint32_t node, const proto::InstallTable& install) {
  sender_->SendToNode(node, install);
}

void TableService::OnPrepared(std::uint32_t node) { options_.on_prepared(node); }

void TableService::OnUnfit(std::uint32_t node, const absl::Status& why) {
  Node* const server = members_->Find(node);
  if (server == nullptr || !server->alive()) return;
  life_->Retire(server, Node::State::kDead, std::string(why.message()));
}

}  // namespace leeway::scheduler
