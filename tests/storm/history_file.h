// HistoryWriter and HistoryReader write and read the history file of a storm's worker
// (history_record.h). Each line is given to the system at once and in one piece, so that all lines
// are in the file when the process is killed; at most the last one is torn.
#ifndef LEEWAY_TESTS_STORM_HISTORY_FILE_H_
#define LEEWAY_TESTS_STORM_HISTORY_FILE_H_

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/simulation/sim_table.h"
#include "tests/storm/history_record.h"

namespace leeway::storm {

// Any thread. Each call takes the time and writes a line; lines are in the order of their times.
class HistoryWriter {
 public:
  static absl::StatusOr<std::shared_ptr<HistoryWriter>> Open(const std::string& path);
  ~HistoryWriter();
  HistoryWriter(const HistoryWriter&) = delete;
  HistoryWriter& operator=(const HistoryWriter&) = delete;

  // Call it before the operation is submitted.
  void Made(PushMade push);
  void Asked(ReadAsked read);
  // The clock that the worker is in, or is about to begin; written with answered reads.
  void SetClock(std::uint64_t clock);
  // Call it once the operation has completed. `counts` has the places one after the other, as a
  // pull of the table writes them.
  void Told(PushTold push);
  void Seen(std::uint64_t id, const simulation::SimTable& table,
            std::span<const std::uint32_t> places, std::span<const std::int64_t> counts);
  void Failed(ReadFailed read);

  // The first error of writing. Operations whose line was not written must not be submitted.
  absl::Status status() const;

 private:
  explicit HistoryWriter(int fd) : fd_(fd) {}

  template <class Record>
  void Append(Record record);
  void Write(std::string line);  // under mutex_

  const int fd_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, like all members below.
  absl::Status status_;
  std::uint64_t clock_ = 0;
  // By table and place, as written so far.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> told_;
};

class HistoryReader {
 public:
  explicit HistoryReader(std::unique_ptr<std::istream> lines) : lines_(std::move(lines)) {}

  // nullopt: the end. DATA_LOSS: a line is malformed. A line without an end is ignored.
  absl::StatusOr<std::optional<HistoryRecord>> Next();

 private:
  std::unique_ptr<std::istream> lines_;
  std::uint64_t number_ = 0;
};

// The number of pushes of a rank once the process that wrote this file has ended, if the processes
// before it had made `before`.
absl::StatusOr<std::uint64_t> PushesNumbered(const std::string& path, std::uint64_t before);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_HISTORY_FILE_H_
