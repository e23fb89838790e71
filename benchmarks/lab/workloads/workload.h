// A Workload is what a run of the lab trains: a model, data, the gradient of a batch, and a measure
// of how good the model is.
//
// One object a process. Its functions are called by several threads at once, one a worker, each
// with a Step of its own; so they change nothing but that. A new workload derives from this and is
// named in workloads/registry.cc; one of a user's own program is passed to RunLab (lab.h), as
// examples/my_workload does.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORKLOAD_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leeway/table_spec.h"

namespace leeway::lab {

// One worker's step. By table, in the order of Workload::tables().
struct Step {
  std::vector<std::vector<std::uint64_t>> keys;  // sparse tables: the rows that it uses, each once
  // Dense: the whole tensor; sparse: [keys][row width].
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;  // sized like the values
  std::shared_ptr<void> scratch;              // the workload's own, kept from step to step
};

// How good a model is. `score` is the workload's own measure, larger being better (accuracy, mean
// reciprocal rank); NaN where there is none.
struct Evaluation {
  double loss = 0;
  double score = 0;
  // Other measures, by name ("Hits@10"): each a column of the results. The same names each time.
  std::map<std::string, double> others = {};
};

class Workload {
 public:
  virtual ~Workload() = default;

  // Names, shapes and initial values. The run adds updater, consistency and codec.
  virtual std::vector<TableSpec> tables() const = 0;
  // Training samples: an epoch goes through all of them once.
  virtual std::size_t samples() const = 0;
  // What `score` is, as a column's head: "accuracy". Empty: there is none.
  virtual std::string score_name() const = 0;

  // Fills step->keys for the samples: nothing to do where no table is sparse. `seed` differs from
  // step to step and is the same in every run with the same seed.
  virtual void Choose(std::span<const std::uint32_t> samples, std::uint64_t seed,
                      Step* step) const {}
  // Fills step->gradients with those of the mean loss of the samples at step->values. Returns the
  // sum of the samples' losses.
  virtual double Gradient(std::span<const std::uint32_t> samples, std::uint64_t seed,
                          Step* step) const = 0;

  // Rows of the sparse tables that Evaluate needs, by table; empty for dense ones.
  virtual std::vector<std::vector<std::uint64_t>> rows_to_evaluate() const { return {}; }
  // On held-out data. `values` by table: dense whole, sparse the rows of rows_to_evaluate().
  // `quick`: a part of the data, for curves.
  virtual Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool quick) const = 0;
};

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_WORKLOAD_H_
