// LayeredModel measures training steps of a model whose parameters are at the servers, layer by
// layer: the time of a step with priorities and without.
#ifndef LEEWAY_BENCHMARKS_SHAPED_STEPS_H_
#define LEEWAY_BENCHMARKS_SHAPED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "harness/measured.h"
#include "leeway/worker.h"

namespace leeway::bench {

// A step:
//   forward   each layer, the first one first, waits for its parameters and then computes
//   backward  each layer, the last one first, computes, pushes its gradient and asks for its
//             parameters at once
//   Clock()
// Computing is replaced by sleeping: only the time that the network has meanwhile matters.
//
// The shape is VGG's, made smaller so that a step over 1 Gbit/s takes less than a second: many
// small layers in front, nearly everything in the last five. 50 layers, 72 MiB. The first one is an
// embedding, in a sparse table.
class LayeredModel {
 public:
  explicit LayeredModel(Worker* worker) : worker_(worker) {}
  ~LayeredModel();  // waits for operations under way, which write into the layers
  LayeredModel(const LayeredModel&) = delete;
  LayeredModel& operator=(const LayeredModel&) = delete;

  // Creates the tables.
  absl::Status Build();
  std::uint64_t bytes() const;  // of all layers

  // "step_priority": front layers before back ones; "step_fifo": all equal. At least `in_flight`
  // steps, and `seconds` of them, after one that does not count.
  Measured Measure(const Command& command);

 private:
  struct Layer {
    Table table;
    std::vector<std::uint64_t> keys;  // empty: dense
    std::vector<float> parameters, gradient;
    Ticket exchanged;
  };

  absl::Status Step(bool priorities);
  void Exchange(std::size_t index, bool priorities);

  Worker* const worker_;
  std::vector<Layer> layers_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_SHAPED_STEPS_H_
