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

absl::StatusOr<std::unique_ptr<Workload>> NewWorkload(const std::string& name, std::uint64_t seed) {
  const auto found = Makers().find(name);
  if (found != Makers().end()) return found->second(seed);
  return absl::NotFoundError(absl::StrCat("there is no workload '", name, "': there are ",
                                          absl::StrJoin(WorkloadNames(), ", ")));
}

}  // namespace leeway::lab
