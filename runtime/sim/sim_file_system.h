// SimFileSystem is the disk of one simulated machine: files in memory, and the effects of a crash
// on them.
//
// As on a real machine, appended data are durable only after Sync, and a name (created, renamed,
// removed) only after SyncDirectory of its folder. A crash cuts off what is not durable at a place
// that follows from the seed: each file's unsynced tail keeps some prefix, and of the changes to
// names either the first few have happened, or any subset that keeps the changes of one name in
// their order. Folders themselves are durable at once.
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
  // The size of the disk in bytes. Beyond it, RESOURCE_EXHAUSTED; an Append writes what still fits.
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
  // After `operations` more of those that SimDiskFaults may fail, each one fails, and `halted` is
  // called at the first failure, so that a machine can go down between any two of them. Until
  // Resume.
  void HaltAfter(std::uint64_t operations, std::function<void()> halted);
  void Resume() { halt_ = {}; }
  // The machine goes down: data that are not durable may be lost, and all calls on files that were
  // open fail. SimWorld::Kill calls it.
  void Crash();
  std::uint64_t bytes_used() const;
  // The objects that were opened since the last crash and not closed or destroyed.
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
  // One change to the names: `path` now means `inode` (null: no file), and `gone` no longer exists.
  struct Change {
    std::string path;
    std::shared_ptr<Inode> inode;
    std::string gone;
  };

  static void Apply(const Change& change, Names* names);
  void Make(Change change);
  bool StrikesNow();  // whether this operation fails, by the seed or by HaltAfter
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
  Names names_;          // the names now
  Names certain_names_;  // the durable names, to which `changes_` were made since
  std::vector<Change> changes_;
  // The locked files. A crash replaces the set, so locks from before it have no effect.
  std::shared_ptr<std::set<std::string>> locked_ = std::make_shared<std::set<std::string>>();
  std::uint64_t crashes_ = 0;
  // The open files, likewise. Open files share it, because they may outlive the disk.
  std::shared_ptr<Handles> open_ = std::make_shared<Handles>();
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_FILE_SYSTEM_H_
