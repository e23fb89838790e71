// Counter tables in which each push of a worker has a digit of its own
// (tests/simulation/sim_table.h), and what a worker does to them beside its training: it pushes to
// them, reads them, and writes both into its history file (history_file.h).
#ifndef LEEWAY_TESTS_STORM_TRACED_TABLES_H_
#define LEEWAY_TESTS_STORM_TRACED_TABLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/worker.h"
#include "runtime/base/random.h"
#include "tests/simulation/sim_table.h"
#include "tests/storm/history_file.h"

namespace leeway::storm {

// A dense one and a sparse one of that consistency, and likewise of ASP. A worker and the judge of
// its history describe them alike. There are digits for a training of so many steps.
std::vector<simulation::SimTable> TracedTables(std::uint32_t workers, std::uint64_t steps,
                                               Consistency consistency);

struct TracerOptions {
  std::string file;
  std::uint64_t steps = 0;  // of the training: in a long one not each of them is traced
  // Numbers that pushes of earlier processes of this rank have taken.
  std::uint64_t pushes_before = 0;
};

class Tracer {
 public:
  static absl::StatusOr<Tracer> Create(const TracerOptions& options, Consistency consistency,
                                       Worker* worker);

  // Tickets are to be waited for, those of Push() after the worker's next Clock(), since some are
  // of push-pulls.
  std::vector<Ticket> Read(std::uint64_t step);  // some of the tables, some of their places
  std::vector<Ticket> Push(std::uint64_t step);  // and some reads while that is under way
  std::vector<Ticket> ReadAll();
  // Before the worker's Clock(). Not OK: the history cannot be written.
  absl::Status BeforeClock();

 private:
  struct Call;

  Tracer(std::uint64_t every, std::vector<simulation::SimTable> described,
         std::shared_ptr<HistoryWriter> history, Worker* worker);
  bool IsTraced(std::uint64_t step) const { return step % every_ == 0; }
  // In this step: tables of the training's mode always, the others now and then.
  bool IsTaken(const simulation::SimTable& table);
  std::uint64_t SomePlaces(const simulation::SimTable& table);
  void Submit(const simulation::SimTable& table, std::uint64_t places, bool pushes, bool pulls,
              std::vector<Ticket>* tickets);

  const std::uint64_t every_;  // steps
  // Shared with calls that are under way.
  const std::shared_ptr<const std::vector<simulation::SimTable>> described_;
  const std::shared_ptr<HistoryWriter> history_;
  Worker* const worker_;
  runtime::Random random_;
  std::vector<Table> tables_;
  std::vector<std::uint64_t> numbered_;  // by table: pushes of this rank
  std::uint64_t reads_ = 0;              // of this process
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_TRACED_TABLES_H_
