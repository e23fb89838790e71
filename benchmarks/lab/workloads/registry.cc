#include "benchmarks/lab/workloads/registry.h"

#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/lab/workloads/factorization.h"
#include "benchmarks/lab/workloads/fashion.h"
#include "benchmarks/lab/workloads/quadratic.h"

namespace leeway::lab {
namespace {

using Maker = std::function<absl::StatusOr<std::unique_ptr<Workload>>(std::uint64_t seed)>;

const std::map<std::string, Maker>& Makers() {
  static const auto* const makers = new std::map<std::string, Maker>{
      {"factorization", [](std::uint64_t seed) { return NewFactorization(seed); }},
      {"fashion-mlp", [](std::uint64_t seed) { return NewFashion("mlp", seed); }},
      {"fashion-softmax", [](std::uint64_t seed) { return NewFashion("softmax", seed); }},
      {"quadratic", [](std::uint64_t seed) { return NewQuadratic(seed); }},
  };
  return *makers;
}

}  // namespace

std::vector<std::string> WorkloadNames() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : Makers()) names.push_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<Workload>> NewWorkload(const std::string& name, std::uint64_t seed) {
  const auto found = Makers().find(name);
  if (found != Makers().end()) return found->second(seed);
  return absl::NotFoundError(absl::StrCat("there is no workload '", name, "': there are ",
                                          absl::StrJoin(WorkloadNames(), ", ")));
}

}  // namespace leeway::lab
