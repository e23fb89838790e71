// Traced tables are counter tables in which each push of a worker has its own digit
// (tests/simulation/sim_table.h). A Tracer pushes to them and reads them beside the training, and
// writes both into the worker's history file (history_file.h).
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

// A dense and a sparse table of that consistency, and likewise of ASP. A worker and the judge of
// its history make the same list. There are digits for a training of `steps` steps.
std::vector<simulation::SimTable> TracedTables(std::uint32_t workers, std::uint64_t steps,
                                               Consistency consistency);

struct TracerOptions {
  std::string file;
  std::uint64_t steps = 0;  // of the training; of a long one not every step is traced
  // Numbers that pushes of earlier processes of this rank have used.
  std::uint64_t pushes_before = 0;
};

class Tracer {
 public:
  static absl::StatusOr<Tracer> Create(const TracerOptions& options, Consistency consistency,
                                       Worker* worker);

  // Wait for the tickets; for those of Push() after the worker's next Clock(), since some are of
  // push-pulls.
  std::vector<Ticket> Read(std::uint64_t step);  // some of the tables, some of their places
  std::vector<Ticket> Push(std::uint64_t step);  // and some reads while that is under way
  std::vector<Ticket> ReadAll();
  // Call it before the worker's Clock(). Not OK: the history cannot be written.
  absl::Status BeforeClock();

 private:
  struct Call;

  Tracer(std::uint64_t every, std::vector<simulation::SimTable> described,
         std::shared_ptr<HistoryWriter> history, Worker* worker);
  bool IsTraced(std::uint64_t step) const { return step % every_ == 0; }
  // True if the table is used in this step: tables of the training's mode always, others sometimes.
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
