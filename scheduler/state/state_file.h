// The file of a scheduler's state: the whole state as it was when the file was made (the snapshot),
// followed by the changes since, one record for each write.
//
// A write costs what has changed. Once the records are larger than the snapshot and
// kStateChangesBytes, the file is made anew; so it is after a write that failed, whose bytes may
// stand at the end, and by each new process. What stands after the last intact record was never
// synced, so nobody has been told of it, and is ignored.
#ifndef LEEWAY_SCHEDULER_STATE_STATE_FILE_H_
#define LEEWAY_SCHEDULER_STATE_STATE_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/files/file_system.h"
#include "scheduler/state/state.h"

namespace leeway::scheduler {

inline constexpr int kStateFormat = 3;
// Records of that size are kept even behind a small snapshot.
inline constexpr std::size_t kStateChangesBytes = std::size_t{256} << 10;

// A file without records.
std::string EncodeState(const State& state);
// The state after the last intact record. DATA_LOSS, in one line, for a damaged snapshot, and for a
// damaged record that an intact one follows.
absl::StatusOr<State> DecodeState(absl::string_view bytes);

// Writes one file. Lives on one thread.
class StateFile {
 public:
  // `files` outlives it.
  StateFile(runtime::FileSystem* files, std::string path) : files_(files), path_(std::move(path)) {}

  // OK: the state is in the file and survives a crash.
  absl::Status Write(State state);

 private:
  absl::Status MakeAnew(const State& state);
  absl::Status AppendChanges(const std::string& record);

  runtime::FileSystem* const files_;
  const std::string path_;
  std::unique_ptr<runtime::WritableFile> file_;  // null: to be made anew
  State written_;                                // what the file has
  std::size_t snapshot_bytes_ = 0, changes_bytes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_STATE_STATE_FILE_H_
