// A Sampler decides which triples and negatives a worker takes at each step.
//
// Every epoch goes through all triples once, in an order that depends on the seed and the epoch
// alone; step t of an epoch takes the next W·b triples (the last step: the rest), and worker w the
// w-th part of them. Negatives are drawn uniformly from all entities, anew for each step and
// worker, and shared by the triples of the batch.
#ifndef LEEWAY_EXAMPLES_WORDNET_SAMPLER_H_
#define LEEWAY_EXAMPLES_WORDNET_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/wordnet/complex_model.h"
#include "examples/wordnet/graph.h"

namespace leeway::wordnet {

class Sampler {
 public:
  // `graph` outlives it. `batch` triples and `negatives` negatives for each worker and step.
  Sampler(const Graph* graph, std::size_t batch, std::size_t negatives, std::uint32_t workers,
          std::uint64_t seed);

  std::size_t steps_per_epoch() const { return steps_per_epoch_; }

  // Sets the triples, negatives and keys of worker `rank` at this step; steps count from 0 over all
  // epochs.
  void Fill(std::size_t step, std::uint32_t rank, Batch* batch);

 private:
  void ShuffleFor(std::size_t epoch);

  const Graph* const graph_;
  const std::size_t batch_, negatives_;
  const std::uint32_t workers_;
  const std::uint64_t seed_;
  const std::size_t steps_per_epoch_;
  std::size_t shuffled_epoch_;
  std::vector<std::uint32_t> order_;  // of triples, in shuffled_epoch_
};

}  // namespace leeway::wordnet

#endif  // LEEWAY_EXAMPLES_WORDNET_SAMPLER_H_
