// StatusIsSo checks "what `status` says is so": at rest, the status of the scheduler and of the
// servers' threads equals the simulated world: the living nodes with their ids and endpoints; the
// chains, their epoch and each server's numbers of heads and replicas; the tables and their
// settings; the workers' clocks; and the rows, blocks and bytes of the shards. (Bytes and deaths
// are reported to the scheduler from time to time: so the check asks again for a while.)
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

  // Call it repeatedly at rest. nullopt: it still asks. Empty: the status is right.
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
  std::optional<absl::Time> since_;  // its first question
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_STATUS_IS_SO_H_
