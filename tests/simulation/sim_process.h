// A SimProcess is a host of the simulated world and the role that runs on it, which is the
// same code as in production.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_PROCESS_H_
#define LEEWAY_TESTS_SIMULATION_SIM_PROCESS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "ps/control/server.h"
#include "runtime/loop/loop.h"
#include "runtime/sim/sim_world.h"
#include "scheduler/control/scheduler.h"
#include "tests/simulation/sim_rdma.h"
#include "van/sim/sim_van.h"
#include "worker/core/core.h"

namespace leeway::simulation {

// The parts that every process of a cluster is made from.
struct SimWorkplace {
  runtime::SimWorld* world = nullptr;
  van::SimNetwork* network = nullptr;
  SimRdma* rdma = nullptr;       // null: over `network`
  ps::DataOptions data_options;  // the servers'

  std::unique_ptr<van::Factory> NewFactory(const std::string& host) const;
};

class SimProcess {
 public:
  SimProcess(const SimWorkplace& place, const std::string& host);
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  void RunScheduler(const Config& config);
  void RunServer(const Config& config);
  void RunWorker(const Config& config);  // the caller starts the core

  worker::Core* core() { return core_.get(); }
  // Null if another role runs here, and when it is over.
  scheduler::Scheduler* scheduler() { return over_.has_value() ? nullptr : scheduler_.get(); }
  ps::Server* server() { return over_.has_value() ? nullptr : server_.get(); }
  // A server's id in maps; 0 until it has joined.
  std::uint32_t node() const { return node_; }
  // Distinguishes it from other processes of its host.
  absl::Time started() const { return started_; }
  runtime::Loop* loop() { return runner_->loop(); }
  // The role's result at its end; workers' scripts get theirs from the core.
  const std::optional<absl::Status>& over() const { return over_; }

 private:
  const SimWorkplace place_;
  const absl::Time started_ = place_.world->Now();
  const std::unique_ptr<runtime::Host> host_;
  const std::unique_ptr<van::Factory> factory_;
  const std::unique_ptr<runtime::LoopRunner> runner_;
  std::optional<absl::Status> over_;
  std::uint32_t node_ = 0;
  // One of these is not null.
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<ps::Server> server_;
  std::unique_ptr<worker::Core> core_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_PROCESS_H_
