// A SteppingWorker repeats one iteration, with the real worker core: it pulls its tables,
// computes for a while, pushes to them and ends its iteration.
#ifndef LEEWAY_TESTS_SIMULATION_STEPPING_WORKER_H_
#define LEEWAY_TESTS_SIMULATION_STEPPING_WORKER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/sim/sim_world.h"
#include "worker/core/core.h"

namespace leeway::simulation {

class SteppingWorker {
 public:
  using Table = std::shared_ptr<const worker::TableInfo>;
  // Arrays for pushes (zeros) and pulls, as long as the largest table. Workers may share one, since
  // the values are never read.
  struct Arrays {
    explicit Arrays(const std::vector<Table>& tables);
    std::vector<std::byte> values, pulled;
  };

  // Called at the end of each step, counted from 0: when the values that the next step begins with
  // have been pulled. Or with the first failure, which is the last call.
  using OnStep = std::function<void(const absl::Status& status, int step)>;
  SteppingWorker(runtime::SimWorld* world, worker::Core* core, int steps, absl::Duration compute,
                 OnStep on_step);
  SteppingWorker(const SteppingWorker&) = delete;
  SteppingWorker& operator=(const SteppingWorker&) = delete;

  void Run(std::vector<Table> tables, std::shared_ptr<Arrays> arrays);
  bool over() const { return ended_ == steps_ || !status_.ok(); }
  absl::Duration waited() const { return waited_; }  // for pulls, in total
  worker::Core* core() const { return core_; }

 private:
  void Submit(const Table& table, proto::Op op, std::function<void()> then);
  void Pull();
  void OnPulled();
  void Fail(const absl::Status& why);
  void EndIteration();

  runtime::SimWorld* const world_;
  worker::Core* const core_;
  const int steps_;
  const absl::Duration compute_;
  const OnStep on_step_;
  std::vector<Table> tables_;
  std::shared_ptr<Arrays> arrays_;
  absl::Status status_;
  int ended_ = -1;  // steps; the first pull ends none
  std::size_t pulling_ = 0;
  absl::Time pulling_since_;
  absl::Duration waited_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_STEPPING_WORKER_H_
