// A HistoryRecord is one line of the history file of a storm's worker: an operation, or its result,
// with the time.
//
// Times are of the monotonic clock, which all processes of a machine share. An operation takes
// effect somewhere between its two times: the first is taken before any part of it is sent, the
// second after all of its answer has come. So one operation is known to come before another only if
// its second time is before the other's first; nothing is concluded from the order of operations
// that overlap.
#ifndef LEEWAY_TESTS_STORM_HISTORY_RECORD_H_
#define LEEWAY_TESTS_STORM_HISTORY_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace leeway::storm {

// Tables are identified by their index in TracedTables(), pushes to a table by numbers that go on
// from one process of a rank to the next, reads of a process by numbers of their own.
struct PushMade {
  std::uint32_t table = 0;
  std::uint64_t number = 0;
  std::uint64_t clock = 0;
  std::uint64_t places = 0;  // bits
  absl::Time at;
};

struct PushTold {
  std::uint32_t table = 0;
  std::uint64_t number = 0;
  int code = 0;  // absl::StatusCode
  absl::Time at;
};

struct ReadAsked {
  std::uint64_t id = 0;
  std::uint32_t table = 0;
  std::uint64_t clock = 0;
  std::uint64_t effective = 0;   // docs/consistency.md
  std::uint64_t own_pushes = 0;  // of the rank to this table, up to this read
  std::uint64_t places = 0;      // bits
  absl::Time at;
};

struct ReadSeen {
  // The change to the values of an element that the file has so far; at first all are 0.
  struct Change {
    std::uint32_t place = 0;
    std::uint64_t element = 0;
    std::int64_t value = 0;
  };
  std::uint64_t id = 0;
  std::uint64_t reader_clock = 0;  // at the answer, or about to begin
  absl::Time at;
  std::vector<Change> changes;
};

struct ReadFailed {
  std::uint64_t id = 0;
  int code = 0;
  absl::Time at;
};

using HistoryRecord = std::variant<PushMade, PushTold, ReadAsked, ReadSeen, ReadFailed>;

absl::Time TimeOf(const HistoryRecord& record);
// True if it is the first record of an operation.
bool IsBeginning(const HistoryRecord& record);

// The line, without its end.
std::string ToHistoryLine(const HistoryRecord& record);
// nullopt: the line is no record.
std::optional<HistoryRecord> ParseHistoryLine(absl::string_view line);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_HISTORY_RECORD_H_
