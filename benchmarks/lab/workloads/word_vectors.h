// Word vectors: skip-gram with negative sampling (Mikolov et al., "Distributed Representations of
// Words and Phrases and their Compositionality", NIPS 2013, equation 4) on the glosses of WordNet;
// two sparse tables, of words and of contexts.
//
// A sample is a pair of words at most three apart. The negatives are drawn by the word's frequency
// to the power 3/4 and shared by the pairs of a step; together they weigh as five. The loss is that
// of held-out pairs; the score is the probability that a held-out pair scores higher than its word
// with a word drawn by frequency (the area under the ROC curve).
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORD_VECTORS_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORD_VECTORS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

// NOT_FOUND: WordNet is not installed; names its package.
absl::StatusOr<std::unique_ptr<Workload>> NewWordVectors(std::uint64_t seed);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORD_VECTORS_H_
