// The file that a worker of a storm writes its history into (history_record.h). Each line is handed
// to the system at once and in one piece, so that all that was written stands there when the
// process has been killed; at most its last line is torn then.
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

  // Before the operation is submitted.
  void Made(PushMade push);
  void Asked(ReadAsked read);
  // The clock that the worker is in, or is about to begin: told of reads that are answered.
  void SetClock(std::uint64_t clock);
  // Once the operation has completed. `counts` has the places one after the other, as a pull of the
  // table writes them.
  void Told(PushTold push);
  void Seen(std::uint64_t id, const simulation::SimTable& table,
            std::span<const std::uint32_t> places, std::span<const std::int64_t> counts);
  void Failed(ReadFailed read);

  // The first error of writing. What was not written must not be pushed.
  absl::Status status() const;

 private:
  explicit HistoryWriter(int fd) : fd_(fd) {}

  template <class Record>
  void Append(Record record);
  void Write(std::string line);  // under mutex_

  const int fd_;
  mutable std::mutex mutex_;
  // Under mutex_, like all that follows.
  absl::Status status_;
  std::uint64_t clock_ = 0;
  // By table and place, as told so far.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> told_;
};

class HistoryReader {
 public:
  explicit HistoryReader(std::unique_ptr<std::istream> lines) : lines_(std::move(lines)) {}

  // None: the end. DATA_LOSS: a line says nothing. A line that has no end is none.
  absl::StatusOr<std::optional<HistoryRecord>> Next();

 private:
  std::unique_ptr<std::istream> lines_;
  std::uint64_t number_ = 0;
};

// How many pushes of a rank have numbers when the process has ended that wrote this file, and those
// before it had `before`.
absl::StatusOr<std::uint64_t> PushesNumbered(const std::string& path, std::uint64_t before);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_HISTORY_FILE_H_
