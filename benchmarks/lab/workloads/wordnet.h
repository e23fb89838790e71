// A workload on WordNet's relations: ComplEx embeddings of synsets and relations, two sparse tables
// (examples/wordnet has the graph, the model and where they come from).
//
// The loss is that of the true entities among all, the score the filtered mean reciprocal rank,
// both on held-out triples, for heads and tails.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORDNET_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORDNET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

// NOT_FOUND: WordNet is not installed; names its package.
absl::StatusOr<std::unique_ptr<Workload>> NewWordnet(std::uint64_t seed);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORDNET_H_
