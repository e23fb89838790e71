// "what `status` says is so": at rest, what the scheduler and the servers' threads tell who asks
// for their status is what is in the simulated world: who lives, under which node and endpoints;
// the chains, their epoch and how many of each kind a server has; the tables and what holds of
// them; how far each worker is; and how many rows, blocks and bytes the shards hold. (Bytes and who
// has died are told to the scheduler from time to time: so it is asked again for a while.)
#ifndef LEEWAY_TESTS_SIMULATION_INVARIANTS_STATUS_IS_SO_H_
#define LEEWAY_TESTS_SIMULATION_INVARIANTS_STATUS_IS_SO_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/data/data_thread.h"
#include "tests/simulation/process_faults.h"
#include "tests/simulation/sim_inquiry.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class StatusIsSo {
 public:
  StatusIsSo(SimCluster* cluster, const ProcessFaults* process_faults,
             const std::vector<SimTable>* tables, const ProcessFaults::Workers* workers)
      : cluster_(cluster), process_faults_(process_faults), tables_(tables), workers_(workers) {}

  // To be called again and again at rest. None: it is still asking. Empty: all is as it is said.
  std::optional<std::string> Look();

 private:
  using Json = SimInquiry::Json;

  std::string Judge() const;
  std::string JudgeNodes(const Json& said) const;
  std::string JudgeChains(const Json& said, const proto::ClusterMap& map) const;
  std::string JudgeTables(const Json& said, const proto::ClusterMap& map) const;
  std::string JudgeThread(const SimInquiry::Thread& which, const Json& said,
                          const proto::ClusterMap& map) const;
  std::string JudgeClocks(const Json& said, bool leads) const;
  std::string JudgeContents(const Json& said, ps::DataThread* thread) const;

  SimCluster* const cluster_;
  const ProcessFaults* const process_faults_;
  const std::vector<SimTable>* const tables_;
  const ProcessFaults::Workers* const workers_;
  std::unique_ptr<SimInquiry> inquiry_;
  std::optional<absl::Time> since_;  // it asked first
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_STATUS_IS_SO_H_
