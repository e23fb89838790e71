// Tables that are changed while they are used, or created again after the start from a checkpoint.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/tables/table_difference.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {
namespace {

constexpr char kChangeUsage[] =
    "updater.NAME=NUMBER, updater.NAME=default, consistency=bsp|ssp:S|asp or "
    "nonfinite=count|refuse";

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

// One "field=value" of the command `table`; `given`: the fields of those before.
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
  return absl::InvalidArgumentError(absl::StrCat(
      proto::QuotedBriefly(argument), " changes nothing of a table: it may be ", kChangeUsage));
}

absl::StatusOr<TableSpec> Changed(TableSpec spec, const AdminService::Arguments& arguments) {
  std::set<std::string> given;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    LEEWAY_RETURN_IF_ERROR(ChangeField(arguments[i], &given, &spec));
  }
  return spec;
}

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

TableSpec Scheduler::Impl::SpecOf(const TableCatalogue::Entry& table) const {
  return table_changes_.SpecOf(table);
}

std::vector<proto::TableSettings> Scheduler::Impl::SettingsOf(std::uint32_t table) const {
  return table_changes_.EntriesOf(table);
}

// table NAME [FIELD=VALUE …]. Answered when it is decided from which clock on the table is so.
void Scheduler::Impl::TableCommand(const AdminService::Ask& ask,
                                   const AdminService::Arguments& arguments) {
  if (arguments.empty()) {
    return admin_service_.Answer(
        ask, absl::InvalidArgumentError(absl::StrCat("table takes a name, and ", kChangeUsage)));
  }
  if (const absl::Status ready = Ready(); !ready.ok()) return admin_service_.Answer(ask, ready);
  const std::string& name = arguments[0];
  const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(name);
  if (!table.has_value()) {
    return admin_service_.Answer(
        ask, absl::NotFoundError(absl::StrCat("there is no table ", proto::QuotedBriefly(name))));
  }
  const TableSpec before = SpecOf(*table);
  const absl::StatusOr<TableSpec> wanted = Changed(before, arguments);
  if (!wanted.ok()) return admin_service_.Answer(ask, wanted.status());
  const std::string changes = proto::DescribeDifferences(proto::DifferencesOf(before, *wanted));
  // Nobody uses one that no worker has opened since the start from a checkpoint.
  const std::optional<std::uint64_t> from =
      table->untouched ? std::optional(restoration_.state().clock) : std::nullopt;
  const std::uint32_t trial = *wanted == before ? 0 : catalogue_.TakeId();
  table_changes_.Change(
      *table, *wanted, trial, from, Now(),
      [=, this, spec = wanted->ToString()](const absl::StatusOr<std::uint64_t>& clock) {
        if (!clock.ok()) return admin_service_.Answer(ask, clock.status());
        if (!changes.empty()) {
          runtime::LogInfo("table '", name, "' is changed from clock ", *clock, " on: ", changes);
        }
        admin_service_.Answer(ask, Dump({{"table", name}, {"clock", *clock}, {"spec", spec}}));
      });
}

// A table from a checkpoint that no worker has opened is being changed: nobody is to use it before
// that is over, since it holds for all clocks.
bool Scheduler::Impl::IsRenewed(const std::string& name) const {
  const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(name);
  return table.has_value() && table->untouched && table_changes_.changing(table->id);
}

// A table from a checkpoint that no worker has opened is what the first one says, as far as that
// does not shape the data.
bool Scheduler::Impl::Renews(const Node& worker, const proto::CreateTable& create) {
  const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(create.spec.name);
  if (!table.has_value() || !table->untouched) return false;
  if (table_changes_.changing(table->id)) {
    AnswerLater(worker.id, create);
    return true;
  }
  const TableSpec is = SpecOf(*table);
  if (is == create.spec || !create.spec.Validate().ok() ||
      !proto::CheckShapedAlike(is, create.spec).ok()) {
    if (is == create.spec) catalogue_.Touch(create.spec.name);
    return false;
  }
  const std::string changes = proto::DescribeDifferences(proto::DifferencesOf(is, create.spec));
  table_changes_.Change(
      *table, create.spec, catalogue_.TakeId(), restoration_.state().clock, Now(),
      [this, node = worker.id, create, changes](const absl::StatusOr<std::uint64_t>& clock) {
        if (!clock.ok()) {
          const Node* const its = members_.Find(node);
          if (its == nullptr) return;
          proto::TableReply reply;
          reply.request = create.request;
          reply.result = clock.status();
          return SendTo(*its, reply);
        }
        runtime::LogInfo("table '", create.spec.name, "' of the checkpoint is changed: ", changes);
        catalogue_.Touch(create.spec.name);
        AnswerLater(node, create);
      });
  return true;
}

// Once a worker, however often it asks.
void Scheduler::Impl::AnswerLater(std::uint32_t worker, const proto::CreateTable& create) {
  const bool waits = std::any_of(renewals_.begin(), renewals_.end(), [&](const auto& one) {
    return one.first == worker && one.second.request == create.request;
  });
  if (!waits) renewals_.emplace_back(worker, create);
}

void Scheduler::Impl::FinishRenewals() {
  if (publish_timer_ != runtime::TimerId::kNone || !publisher_.ServersHaveIt()) return;
  for (const auto& [node, create] : std::exchange(renewals_, {})) {
    const Node* const worker = members_.Find(node);
    if (worker == nullptr || !worker->alive()) continue;
    const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(create.spec.name);
    if (table.has_value() && table_changes_.changing(table->id)) {
      renewals_.emplace_back(node, create);
    } else if (!Renews(*worker, create)) {
      catalogue_.Create(node, create, Now());
    }
  }
}

}  // namespace leeway::scheduler
