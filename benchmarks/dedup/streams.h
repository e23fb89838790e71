// A Stream is a sequence of payloads between one worker and the servers: pushes and pulls of two
// examples that are trained in this process, without compression, or files of checkpoints.
#ifndef LEEWAY_BENCHMARKS_DEDUP_STREAMS_H_
#define LEEWAY_BENCHMARKS_DEDUP_STREAMS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway::bench {

// Payloads of one kind, oldest first.
struct Stream {
  std::string name;
  std::vector<std::vector<std::byte>> payloads;
};

// Worker 0's pushes and pulls of Fashion-MNIST: the mlp with plain SGD at 0.1, four workers with
// batches of 16, the mean of their gradients. The first `skipped` steps are not kept.
absl::StatusOr<std::vector<Stream>> FashionMnistStreams(std::size_t steps, std::size_t skipped);

// WordNet with the example's settings (adagrad at 0.2, four workers with 128 triples, 64 floats a
// row): the entity rows of worker 0, without their keys.
absl::StatusOr<std::vector<Stream>> WordNetStreams(std::size_t steps, std::size_t skipped);

// Each folder is one payload: its files' bytes, ordered by name. Folders come in the order given.
absl::StatusOr<Stream> CheckpointStream(const std::vector<std::string>& folders);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_DEDUP_STREAMS_H_
