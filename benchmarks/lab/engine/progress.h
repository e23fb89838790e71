// Progress is what the processes of a run share beside the cluster: how far it has come.
//
// It lies in memory that all of them map; atomic fields. Nothing of the training depends on it but
// its end: a worker goes on until all together have processed the run's samples.
#ifndef LEEWAY_BENCHMARKS_LAB_ENGINE_PROGRESS_H_
#define LEEWAY_BENCHMARKS_LAB_ENGINE_PROGRESS_H_

#include <atomic>
#include <cstdint>

namespace leeway::lab {

inline constexpr std::uint32_t kWorkersMax = 4096;

struct Progress {
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint64_t> bytes{0};    // payload that workers have pushed and pulled
  std::atomic<std::uint32_t> watched{0};  // the evaluator has the model as it begins
  std::atomic<std::uint32_t> workers_done{0};
  std::atomic<std::uint32_t> evaluated{0};      // the evaluator has the model as it ends
  std::atomic<double> speed[kWorkersMax] = {};  // steps a second, measured before training
};

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_ENGINE_PROGRESS_H_
