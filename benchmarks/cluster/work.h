// Work is the work that is measured: one worker pushes and pulls, the servers add.
#ifndef LEEWAY_BENCHMARKS_CLUSTER_WORK_H_
#define LEEWAY_BENCHMARKS_CLUSTER_WORK_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/measured.h"
#include "leeway/worker.h"

namespace leeway::bench {

// push, pull         dense: as many tensors of `bytes` as are in flight; each operation is waited
//                    for before its tensor is used again
// exchange           push and pull in one operation, otherwise as push and pull
// rtt                a push and a pull of `bytes` by turns, one in flight
// sparse_push, sparse_pull   eight prepared batches of 100,000 sorted unique keys out of 10
//                    million, 16 floats a row, by turns; `bytes` counts keys and values
//
// "push:onebit": the same with tensors that have a codec, and error feedback wherever it has a use
// for it. `bytes` are those of the floats in any case.
class Work {
 public:
  // `worker` outlives it. `servers`: processes whose CPU time counts beside this one's.
  // `allocates`: pushes to dense tables come from memory of Worker::Allocate.
  Work(Worker* worker, std::vector<pid_t> servers, bool allocates = false);
  ~Work();

  Measured Measure(const Command& command);

 private:
  struct Tensor;
  struct Batches;

  absl::StatusOr<std::vector<Tensor>*> Tensors(const std::string& codec, std::uint64_t bytes,
                                               int count);
  absl::StatusOr<Batches*> SparseBatches();

  Worker* const worker_;
  const std::vector<pid_t> servers_;
  const bool allocates_;
  std::map<std::tuple<std::string, std::uint64_t, int>, std::vector<Tensor>> tensors_;
  std::unique_ptr<Batches> batches_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CLUSTER_WORK_H_
