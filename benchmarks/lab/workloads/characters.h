// A small transformer that predicts the next character (Vaswani et al., "Attention Is All You
// Need", NIPS 2017: one block of causal attention with one head and a feed-forward layer, without
// normalisation) on the glosses of WordNet; dense tables.
//
// A sample is a window of 33 characters. The loss is in nats a character, the score is the part of
// the characters that are guessed, both on held-out windows.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_CHARACTERS_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_CHARACTERS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

// NOT_FOUND: WordNet is not installed; names its package.
absl::StatusOr<std::unique_ptr<Workload>> NewCharacters(std::uint64_t seed);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_CHARACTERS_H_
