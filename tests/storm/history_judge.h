// Replays what the workers of a storm have written (history_record.h) as the history of one run,
// and holds it against the promises that the simulator's histories are held against.
#ifndef LEEWAY_TESTS_STORM_HISTORY_JUDGE_H_
#define LEEWAY_TESTS_STORM_HISTORY_JUDGE_H_

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_table.h"
#include "tests/storm/history_file.h"

namespace leeway::storm {

struct HistoryVerdict {
  std::uint64_t pushes = 0;                        // that were made
  std::uint64_t acknowledged = 0;                  // of them
  std::uint64_t reads = 0;                         // that were answered
  std::optional<simulation::Violation> violation;  // the first
};

class HistoryJudge {
 public:
  HistoryJudge(std::vector<simulation::SimTable> tables, std::uint32_t workers);

  // One process; those of a rank in the order in which they were started. `killed`: no later than
  // it was sent SIGKILL.
  void AddProcess(std::uint32_t rank, std::unique_ptr<std::istream> lines,
                  absl::Time killed = absl::InfiniteFuture());

  // Once. Files are read as the replay goes on: what is kept is pushes, and reads under way.
  // DATA_LOSS: a process that was not killed has written nothing, or what makes no sense.
  absl::StatusOr<HistoryVerdict> Judge();

 private:
  struct Process {
    std::uint32_t rank = 0;
    std::uint32_t incarnation = 0;
    absl::Time killed;
    HistoryReader lines;
    std::optional<HistoryRecord> next;
    std::map<std::uint64_t, simulation::Read> reads;  // under way, by id
    // By table and place, as the file tells it.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> told;
  };

  // Whose next record comes first; null: there are none.
  Process* Earliest();
  void KillUntil(absl::Time time);
  absl::Status Replay(Process* process, const PushMade& push);
  absl::Status Replay(Process* process, const PushTold& push);
  absl::Status Replay(Process* process, const ReadAsked& asked);
  absl::Status Replay(Process* process, const ReadSeen& seen);
  absl::Status Replay(Process* process, const ReadFailed& failed);

  const std::vector<simulation::SimTable> tables_;
  simulation::History history_;
  simulation::Checker checker_;
  std::vector<std::unique_ptr<Process>> processes_;
  HistoryVerdict verdict_;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_HISTORY_JUDGE_H_
