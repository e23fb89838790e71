// One simulated machine's disk: files in memory, and what a crash does to them.
//
// As on a real machine, what was appended is certain only after Sync, and a name (created, renamed,
// removed) only after SyncDirectory of its folder. At a crash, what is not certain is cut off at a
// place that follows from the seed: each file's unsynced tail keeps some prefix, and of the changes
// to names only the first few have happened, or any few, those of one name in their order. Folders
// themselves are certain at once.
#ifndef LEEWAY_RUNTIME_SIM_SIM_FILE_SYSTEM_H_
#define LEEWAY_RUNTIME_SIM_SIM_FILE_SYSTEM_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/files/file_system.h"

namespace leeway::runtime {

struct SimDiskFaults {
  // RESOURCE_EXHAUSTED beyond it; an Append writes what still fits.
  std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();
  // Each Create, OpenForAppend, Append, Sync, Rename and SyncDirectory fails with this probability.
  double error_probability = 0;
  // A failing Append writes part of its data, and the last sector of an unsynced tail that a crash
  // leaves may be zeros.
  bool torn_writes = false;
};

class SimFileSystem final : public FileSystem {
 public:
  explicit SimFileSystem(std::uint64_t seed);
  ~SimFileSystem() override;

  void SetFaults(const SimDiskFaults& faults) { faults_ = faults; }
  // After so many more of those operations that SimDiskFaults may fail, each fails, and `halted` is
  // called at the first: so that a machine can go down between any two of them. Until Resume.
  void HaltAfter(std::uint64_t operations, std::function<void()> halted);
  void Resume() { halt_ = {}; }
  // The machine goes down: what was not certain may be lost, and files that were open stay so in
  // name only (their calls fail). SimWorld::Kill does it.
  void Crash();
  std::uint64_t bytes_used() const;
  // What is open since the last crash, and has not been closed or let go of.
  struct Handles {
    std::uint64_t to_write = 0, to_read = 0, locks = 0;
  };
  Handles open() const { return {open_->to_write, open_->to_read, locked_->size()}; }

  absl::StatusOr<std::string> Read(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::Status CreateDirectories(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  bool Exists(const std::string& path) override;
  absl::StatusOr<FileKind> KindOf(const std::string& path) override;
  absl::StatusOr<std::uint64_t> BytesFree(const std::string& directory) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  struct Inode;
  class OpenFile;
  class FileToRead;
  class HeldLock;
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  // One change to the names: `path` now means `inode` (null: nothing), `gone` no longer exists.
  struct Change {
    std::string path;
    std::shared_ptr<Inode> inode;
    std::string gone;
  };

  static void Apply(const Change& change, Names* names);
  void Make(Change change);
  bool StrikesNow();  // whether the seed makes this operation fail
  absl::StatusOr<std::unique_ptr<WritableFile>> Open(const std::string& path, bool truncate);
  absl::Status Append(Inode* inode, const std::string& path, absl::string_view data);

  struct Halt {
    bool planned = false, now = false;
    std::uint64_t left = 0;
    std::function<void()> halted;
  };

  Random random_;
  SimDiskFaults faults_;
  Halt halt_;
  std::set<std::string> folders_;
  Names names_;          // as they are now
  Names certain_names_;  // as they would be after a crash, before `changes_`
  std::vector<Change> changes_;
  // Of each crash-free time, which files are locked.
  std::shared_ptr<std::set<std::string>> locked_ = std::make_shared<std::set<std::string>>();
  std::uint64_t crashes_ = 0;
  // Likewise, files; those that know it may outlive the disk.
  std::shared_ptr<Handles> open_ = std::make_shared<Handles>();
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_FILE_SYSTEM_H_
