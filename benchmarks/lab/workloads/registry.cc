#include "benchmarks/lab/workloads/registry.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/lab/workloads/characters.h"
#include "benchmarks/lab/workloads/factorization.h"
#include "benchmarks/lab/workloads/fashion.h"
#include "benchmarks/lab/workloads/pole.h"
#include "benchmarks/lab/workloads/quadratic.h"
#include "benchmarks/lab/workloads/word_vectors.h"
#include "benchmarks/lab/workloads/wordnet.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

std::map<std::string, WorkloadMaker>& Makers() {
  static auto* const makers = new std::map<std::string, WorkloadMaker>{
      {"characters", [](std::uint64_t seed) { return NewCharacters(seed); }},
      {"factorization", [](std::uint64_t seed) { return NewFactorization(seed); }},
      {"fashion-cnn", [](std::uint64_t seed) { return NewFashion("cnn", seed); }},
      {"fashion-mlp", [](std::uint64_t seed) { return NewFashion("mlp", seed); }},
      {"fashion-softmax", [](std::uint64_t seed) { return NewFashion("softmax", seed); }},
      {"pole", [](std::uint64_t seed) { return NewPole(seed); }},
      {"quadratic", [](std::uint64_t seed) { return NewQuadratic(seed); }},
      {"word-vectors", [](std::uint64_t seed) { return NewWordVectors(seed); }},
      {"wordnet", [](std::uint64_t seed) { return NewWordnet(seed); }},
  };
  return *makers;
}

}  // namespace

absl::Status AddWorkload(std::string name, WorkloadMaker maker) {
  const auto [place, is_new] = Makers().try_emplace(std::move(name), std::move(maker));
  if (is_new) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("the lab has a workload '", place->first, "' already: name yours otherwise"));
}

std::vector<std::string> WorkloadNames() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : Makers()) names.push_back(name);
  return names;
}

absl::Status CheckPlan(const RunPlan& plan, const Workload& workload) {
  const std::uint64_t step_samples = std::uint64_t{plan.batch} * plan.workers;
  if (step_samples > workload.samples()) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch is ", plan.batch, ", of ", plan.workers, " workers ", step_samples,
                     " samples a step: workload '", plan.workload, "' has ", workload.samples()));
  }
  LEEWAY_ASSIGN_OR_RETURN(const auto tables, TablesOf(plan, workload.tables()));
  for (const TableSpec& table : tables) {
    if (plan.local_steps == 0 || table.kind == TableKind::kDense) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("local_steps is ", plan.local_steps, ": workload '", plan.workload,
                     "' has a sparse table '", table.name, "', and local steps need dense ones"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Workload>> NewWorkload(const std::string& name, std::uint64_t seed) {
  const auto found = Makers().find(name);
  if (found != Makers().end()) return found->second(seed);
  return absl::NotFoundError(absl::StrCat("there is no workload '", name, "': there are ",
                                          absl::StrJoin(WorkloadNames(), ", ")));
}

}  // namespace leeway::lab
