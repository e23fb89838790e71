// What a worker of a storm writes into its history file, a line each: what it asked for, what it
// was told, and when.
//
// Times are of the monotonic clock, which all processes of a machine share. An operation takes
// effect somewhere between the two times that are written of it: the first is taken before anything
// of it has left, the second when all of its answer has come. So one operation is known to come
// before another only where its second time is before the other's first; nothing is concluded from
// the order of operations that overlap.
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

// Tables are known by their index among TracedTables(), pushes to a table by numbers that go on
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
  // From what the file says of that element up to here; at first all are 0.
  struct Change {
    std::uint32_t place = 0;
    std::uint64_t element = 0;
    std::int64_t value = 0;
  };
  std::uint64_t id = 0;
  std::uint64_t reader_clock = 0;  // the reader's at the answer, or one that it was about to begin
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
// Whether it is the first time of an operation.
bool IsBeginning(const HistoryRecord& record);

// Without the line's end.
std::string ToHistoryLine(const HistoryRecord& record);
// None: it is no such line.
std::optional<HistoryRecord> ParseHistoryLine(absl::string_view line);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_HISTORY_RECORD_H_
