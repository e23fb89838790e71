#include "scheduler/tables/table_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/tables/table_difference.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

constexpr char kTableChangeUsage[] =
    "updater.NAME=NUMBER, updater.NAME=default, consistency=TEXT (another bound on staleness: "
    "ssp:S, asp, dssp:LOW-HIGH, psp:S/SAMPLE) or nonfinite=count|refuse";

absl::Status ChangeParameter(const std::string& name, const std::string& value, TableSpec* spec) {
  if (value == "default") {
    if (spec->updater.parameters.erase(name) > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(proto::QuotedBriefly("updater." + name),
                     " is not among the table's hyper-parameters, so that it has its default"));
  }
  double number = 0;
  if (!absl::SimpleAtod(value, &number)) {
    return absl::InvalidArgumentError(absl::StrCat(proto::QuotedBriefly("updater." + name), " is ",
                                                   proto::QuotedBriefly(value),
                                                   ": it must be a number, or default"));
  }
  spec->updater.parameters[name] = number;
  return absl::OkStatus();
}

// Applies one "field=value" to `spec`. `given`: the fields of the arguments before it.
absl::Status ChangeField(const std::string& argument, std::set<std::string>* given,
                         TableSpec* spec) {
  const std::pair<std::string, std::string> change =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  absl::string_view field = change.first;
  const std::string& value = change.second;
  if (!given->insert(change.first).second) {
    return absl::InvalidArgumentError(
        absl::StrCat(proto::QuotedBriefly(field), " is given twice: say once what it should be"));
  }
  if (absl::ConsumePrefix(&field, "updater.") && !field.empty()) {
    return ChangeParameter(std::string(field), value, spec);
  }
  if (field == "consistency") {
    LEEWAY_ASSIGN_OR_RETURN(spec->consistency, Consistency::Parse(value));
    return absl::OkStatus();
  }
  if (field == "nonfinite" && (value == "count" || value == "refuse")) {
    spec->nonfinite = value == "count" ? NonFinite::kCount : NonFinite::kRefuse;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(proto::QuotedBriefly(argument),
                                                 " changes nothing of a table: it may be ",
                                                 kTableChangeUsage));
}

// `spec` with the changes that the arguments behind the first one, the table's name, ask for.
// INVALID_ARGUMENT names the argument that asks for none.
absl::StatusOr<TableSpec> WithChanges(TableSpec spec, const AdminService::Arguments& arguments) {
  std::set<std::string> given;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    LEEWAY_RETURN_IF_ERROR(ChangeField(arguments[i], &given, &spec));
  }
  return spec;
}

}  // namespace

TableService::TableService(runtime::Loop* loop, MembershipTable* members, NodeSender* sender,
                           ClusterMaps* maps, ClusterLife* life, Options options)
    : loop_(loop),
      members_(members),
      sender_(sender),
      maps_(maps),
      life_(life),
      options_(std::move(options)),
      catalogue_(
          members, &table_changes_, options_.resend_interval, options_.install_timeout,
          [sender](std::uint32_t id, const proto::AnyMessage& message) {
            sender->SendToNode(id, message);
          },
          [this](std::uint32_t server, const absl::Status& fit) { OnPrepared(server, fit); }),
      table_changes_(
          members, options_.resend_interval, options_.install_timeout,
          [sender](std::uint32_t id, const proto::AnyMessage& message) {
            sender->SendToNode(id, message);
          },
          [maps] { maps->ChangeAndPublish(); }) {}

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
  const TableSpec before = table_changes_.SpecOf(*table);
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
  const TableSpec is = table_changes_.SpecOf(*table);
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

void TableService::PrepareServer(std::uint32_t server) { catalogue_.Prepare(server, Now()); }

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
}

void TableService::OnPrepared(std::uint32_t id, const absl::Status& fit) {
  if (fit.ok()) return options_.on_prepared(id);
  Node* const server = members_->Find(id);
  if (server == nullptr || !server->alive()) return;
  life_->Retire(server, Node::State::kDead, std::string(fit.message()));
}

}  // namespace leeway::scheduler
