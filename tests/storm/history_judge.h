// A HistoryJudge replays the history files of a storm's workers (history_record.h) as the history
// of one run, and checks it against the simulator's invariants.
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
  std::uint64_t pushes = 0;                        // all
  std::uint64_t acknowledged = 0;                  // of them
  std::uint64_t reads = 0;                         // answered ones
  std::optional<simulation::Violation> violation;  // the first
};

class HistoryJudge {
 public:
  HistoryJudge(std::vector<simulation::SimTable> tables, std::uint32_t workers);

  // Adds one process; call it for those of a rank in the order of their starts. `killed`: a time no
  // later than its SIGKILL.
  void AddProcess(std::uint32_t rank, std::unique_ptr<std::istream> lines,
                  absl::Time killed = absl::InfiniteFuture());

  // Call it once. It reads the files during the replay: only pushes, and reads under way, are kept.
  // DATA_LOSS: a process that was not killed has written nothing, or a file is malformed.
  absl::StatusOr<HistoryVerdict> Judge();

 private:
  struct Process {
    std::uint32_t rank = 0;
    std::uint32_t incarnation = 0;
    absl::Time killed;
    HistoryReader lines;
    std::optional<HistoryRecord> next;
    std::map<std::uint64_t, simulation::Read> reads;  // under way, by id
    // By table and place, as the file says.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> told;
  };

  // The process whose next record is the earliest; null: there are no more.
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
