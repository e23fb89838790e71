#include "benchmarks/lab/experiment/run_plan.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "benchmarks/lab/experiment/links.h"
#include "benchmarks/lab/experiment/straggler.h"
#include "benchmarks/lab/workloads/registry.h"
#include "compress/table_codec.h"
#include "proto/tables/table_fields.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

// Policies that count workers.
absl::Status FitsWorkers(const RunPlan& plan) {
  LEEWAY_ASSIGN_OR_RETURN(const Consistency policy, Consistency::Parse(plan.policy));
  const bool is_backup = policy.rule == Consistency::Rule::kBackup;
  const bool fits =
      is_backup ? policy.of == plan.workers
                : policy.rule != Consistency::Rule::kSoftsync || policy.count <= plan.workers;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("policy is '", plan.policy, "', but there are ", plan.workers, " workers"));
}

absl::Status OneOf(absl::string_view name, const std::string& value,
                   const std::vector<std::string>& choices) {
  if (std::ranges::find(choices, value) != choices.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is '", value, "': it is one of ", absl::StrJoin(choices, ", ")));
}

}  // namespace

const std::vector<PlanField>& PlanFields() {
  using P = RunPlan;
  static const auto* const fields = new std::vector<PlanField>{
      {"engine", &P::engine, 0, 0, "virtual (simulated time) or real (processes, wall time)"},
      {"workload", &P::workload, 0, 0, "what is trained"},
      {"policy", &P::policy, 0, 0, "the tables' consistency, as TableSpec's text"},
      {"workers", &P::workers, 1, 4096, "worker processes"},
      {"servers", &P::servers, 1, 256, "server processes"},
      {"batch", &P::batch, 1, 1 << 20, "samples a worker and step"},
      {"balance", &P::balance, 0, 0, "even, or speed: batches in proportion to workers' speeds"},
      {"straggler", &P::straggler, 0, 0, "how much longer steps take"},
      {"step_ms", &P::step_ms, 0, 1e6, "usual time of a step of `batch` samples; real: at least"},
      {"link_mbit", &P::link_mbit, 0, 1e6, "bandwidth of each node, each way; 0: unlimited"},
      {"link_us", &P::link_us, 0, 1e7, "one-way delay"},
      {"links", &P::links, 0, 0, "other links of single workers: RANK:UP_MBIT:DOWN_MBIT+…"},
      {"updater", &P::updater, 0, 0, "NAME or NAME:PARAMETER=VALUE,…"},
      {"learning_rate", &P::learning_rate, 0, 1e6, "of the updater"},
      {"rate_falls", &P::rate_falls, 0, 0, "the rate falls linearly to 0 over the run"},
      {"codec", &P::codec, 0, 0, "of pushes and pulls"},
      {"error_feedback", &P::error_feedback, 0, 0, "auto, off, worker, server or both"},
      {"local_steps", &P::local_steps, 0, 1 << 20, "steps between two exchanges; 0: gradients"},
      {"inner_rate", &P::inner_rate, 0, 1e6, "rate of the local steps (SGD)"},
      {"epochs", &P::epochs, 1e-3, 1e6, "passes over the data, of all workers together"},
      {"points", &P::points, 2, 10'000, "evaluations while training would take its usual time"},
      {"seed", &P::seed, 0, 1e18, "of initial values, order of samples, stragglers, network"},
  };
  return *fields;
}

absl::Status Validate(const RunPlan& plan) {
  for (const PlanField& field : PlanFields()) {
    const absl::Status status = std::visit(
        [&](auto member) -> absl::Status {
          using T = std::remove_cvref_t<decltype(plan.*member)>;
          if constexpr (kIsNumber<T>) {
            const auto value = static_cast<double>(plan.*member);
            if (!(value >= field.min && value <= field.max)) {
              return absl::InvalidArgumentError(absl::StrCat(
                  field.name, " is ", value, ": it must be from ", field.min, " to ", field.max));
            }
          }
          return absl::OkStatus();
        },
        field.member);
    LEEWAY_RETURN_IF_ERROR(status);
  }
  LEEWAY_RETURN_IF_ERROR(OneOf("engine", plan.engine, {"virtual", "real"}));
  LEEWAY_RETURN_IF_ERROR(OneOf("workload", plan.workload, WorkloadNames()));
  LEEWAY_RETURN_IF_ERROR(OneOf("balance", plan.balance, {"even", "speed"}));
  LEEWAY_ASSIGN_OR_RETURN(const Straggler straggler, Straggler::Parse(plan.straggler));
  if (const std::optional<std::uint32_t> rank = straggler.LastRank();
      rank.has_value() && *rank >= plan.workers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "straggler '", plan.straggler, "': there is no worker ", *rank, " of ", plan.workers));
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<WorkerLink> links, ParseLinks(plan.links));
  for (const WorkerLink& link : links) {
    if (link.rank < plan.workers) continue;
    return absl::InvalidArgumentError(absl::StrCat("links '", plan.links, "': there is no worker ",
                                                   link.rank, " of ", plan.workers));
  }
  LEEWAY_RETURN_IF_ERROR(FitsWorkers(plan));
  // The whole description, so that what does not go together is said before anything is started.
  TableSpec table = TableSpec::Dense("w", {16});
  return TablesOf(plan, {table}).status();
}

absl::StatusOr<std::vector<TableSpec>> TablesOf(const RunPlan& plan,
                                                std::vector<TableSpec> tables) {
  for (TableSpec& table : tables) {
    LEEWAY_RETURN_IF_ERROR(proto::SetField(&table, "updater", plan.updater));
    table.updater.parameters.emplace("learning_rate", plan.learning_rate);
    LEEWAY_RETURN_IF_ERROR(proto::SetField(&table, "consistency", plan.policy));
    LEEWAY_RETURN_IF_ERROR(proto::SetField(&table, "codec", plan.codec));
    LEEWAY_RETURN_IF_ERROR(proto::SetField(&table, "error_feedback", plan.error_feedback));
    const Consistency& policy = table.consistency;
    if (policy.is_bsp() || policy.collects()) table.aggregate = Aggregate::kMean;
    LEEWAY_RETURN_IF_ERROR(table.Validate());
    LEEWAY_RETURN_IF_ERROR(compress::TableCodecsOf(table).status());
  }
  return tables;
}

nlohmann::ordered_json ToJson(const RunPlan& plan) {
  nlohmann::ordered_json json;
  for (const PlanField& field : PlanFields()) {
    std::visit([&](auto member) { json[field.name] = plan.*member; }, field.member);
  }
  return json;
}

absl::StatusOr<RunPlan> PlanFromJson(const nlohmann::json& json) {
  RunPlan plan;
  try {
    for (const PlanField& field : PlanFields()) {
      std::visit([&](auto member) { json.at(field.name).get_to(plan.*member); }, field.member);
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a run's plan: ", error.what()));
  }
  LEEWAY_RETURN_IF_ERROR(Validate(plan));
  return plan;
}

std::string ValueText(const RunPlan& plan, const PlanField& field) {
  return std::visit(
      [&](auto member) -> std::string {
        using T = std::remove_cvref_t<decltype(plan.*member)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return plan.*member;
        } else if constexpr (std::is_same_v<T, bool>) {
          return plan.*member ? "true" : "false";
        } else if constexpr (std::is_same_v<T, double>) {
          std::string text = absl::StrCat(plan.*member);  // six digits
          double read = 0;
          const bool is_all = absl::SimpleAtod(text, &read) && read == plan.*member;
          return is_all ? text : absl::StrFormat("%.17g", plan.*member);
        } else {
          return absl::StrCat(plan.*member);
        }
      },
      field.member);
}

}  // namespace leeway::lab
