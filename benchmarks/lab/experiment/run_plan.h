// A RunPlan is one training run of an experiment: everything that decides its result.
#ifndef LEEWAY_BENCHMARKS_LAB_EXPERIMENT_RUN_PLAN_H_
#define LEEWAY_BENCHMARKS_LAB_EXPERIMENT_RUN_PLAN_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/table_spec.h"

namespace leeway::lab {

struct RunPlan {
  std::string engine = "virtual";
  std::string workload = "fashion-softmax";
  std::string policy = "bsp";
  std::uint32_t workers = 8;
  std::uint32_t servers = 2;
  std::uint32_t batch = 32;
  std::string balance = "even";
  std::string straggler = "none";
  double step_ms = 20;
  double link_mbit = 0;
  double link_us = 50;
  std::string links = "even";
  std::string updater = "sgd";
  double learning_rate = 0.1;
  bool rate_falls = false;
  std::string codec = "none";
  std::string error_feedback = "auto";
  std::uint32_t local_steps = 0;
  double inner_rate = 0.1;
  double epochs = 2;
  std::uint32_t points = 30;
  std::uint64_t seed = 1;

  // Whether a real run needs links other than the machine's (shaped_network.h).
  bool has_shaped_links() const {
    return engine == "real" && (link_mbit > 0 || links != RunPlan().links);
  }

  friend bool operator==(const RunPlan&, const RunPlan&) = default;
};

// One field of it: its name in experiments and results, its range and what it is.
struct PlanField {
  using Member = std::variant<std::string RunPlan::*, double RunPlan::*, std::uint32_t RunPlan::*,
                              std::uint64_t RunPlan::*, bool RunPlan::*>;
  const char* name;
  Member member;
  double min = 0, max = 0;  // of numbers
  const char* about;
};
const std::vector<PlanField>& PlanFields();

// INVALID_ARGUMENT names the field, its value and what it may be.
absl::Status Validate(const RunPlan& plan);

// The tables of a run: those of the workload with the plan's updater, policy and codec.
absl::StatusOr<std::vector<TableSpec>> TablesOf(const RunPlan& plan, std::vector<TableSpec> tables);

nlohmann::ordered_json ToJson(const RunPlan& plan);
absl::StatusOr<RunPlan> PlanFromJson(const nlohmann::json& json);
// A field's value as a text: "ssp:3", "0.1".
std::string ValueText(const RunPlan& plan, const PlanField& field);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_EXPERIMENT_RUN_PLAN_H_
