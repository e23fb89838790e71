// OtherWorkers are workers that do the same work at the same time, measured together.
#ifndef LEEWAY_BENCHMARKS_CLUSTER_WORKERS_H_
#define LEEWAY_BENCHMARKS_CLUSTER_WORKERS_H_

#include <vector>

#include "cluster/cluster.h"
#include "harness/child.h"
#include "harness/measured.h"

namespace leeway::bench {

// Workers in processes of their own, each connected by a pair of sockets.
class OtherWorkers {
 public:
  // Make it before the process has threads.
  OtherWorkers(int count, const Config& config, const std::string& transport);
  ~OtherWorkers();

  std::vector<pid_t> pids() const;
  void Begin(const Command& command);
  // Adds their measurements of the same time.
  void AddTo(Measured* measured);

 private:
  struct Other {
    Child child;
    int fd = -1;
  };
  std::vector<Other> others_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CLUSTER_WORKERS_H_
