// SimSharedFolder is the file system of a simulated machine with a file server: all machines see
// the same files below one folder, and these stay when a machine goes down.
#ifndef LEEWAY_RUNTIME_SIM_SIM_SHARED_FOLDER_H_
#define LEEWAY_RUNTIME_SIM_SIM_SHARED_FOLDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sim/sim_file_system.h"

namespace leeway::runtime {

class SimSharedFolder final : public FileSystem {
 public:
  // Paths below `folder` ("/shared") are on `server`, all others on `disk`.
  SimSharedFolder(std::string folder, std::shared_ptr<SimFileSystem> server,
                  std::shared_ptr<SimFileSystem> disk)
      : folder_(std::move(folder)), server_(std::move(server)), disk_(std::move(disk)) {}

  absl::StatusOr<std::string> Read(const std::string& path) override {
    return At(path)->Read(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override {
    return At(path)->OpenToRead(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return At(path)->Create(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    return At(path)->OpenForAppend(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override { return At(path)->Remove(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    return At(directory)->List(directory);
  }
  absl::Status CreateDirectories(const std::string& path) override {
    return At(path)->CreateDirectories(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    return At(path)->SyncDirectory(path);
  }
  bool Exists(const std::string& path) override { return At(path)->Exists(path); }
  absl::StatusOr<FileKind> KindOf(const std::string& path) override {
    return At(path)->KindOf(path);
  }
  absl::StatusOr<std::uint64_t> BytesFree(const std::string& directory) override {
    return At(directory)->BytesFree(directory);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return At(path)->Lock(path);
  }

 private:
  SimFileSystem* At(const std::string& path) const;

  const std::string folder_;
  const std::shared_ptr<SimFileSystem> server_, disk_;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_SHARED_FOLDER_H_
