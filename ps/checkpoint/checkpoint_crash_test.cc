// Machines that go down, and disks that fail, while a checkpoint is written: what `verify` accepts
// afterwards is right.
#include <gtest/gtest.h>

#include "checkpoint/folder.h"
#include "ps/checkpoint/testing/test_model.h"
#include "ps/checkpoint/verify_checkpoint.h"
#include "runtime/memory/sanitized.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::ps {
namespace {

// A disk on which the machine goes down after so many operations that change something.
class DyingDisk final : public runtime::FileSystem {
 public:
  explicit DyingDisk(std::uint64_t seed) : disk_(seed) {}

  void DieAfter(std::uint64_t operations) { left_ = operations; }
  bool died() const { return died_; }
  runtime::SimFileSystem* disk() { return &disk_; }

  absl::StatusOr<std::string> Read(const std::string& path) override { return disk_.Read(path); }
  absl::StatusOr<std::unique_ptr<runtime::ReadableFile>> OpenToRead(
      const std::string& path) override {
    return disk_.OpenToRead(path);
  }
  absl::StatusOr<std::unique_ptr<runtime::WritableFile>> Create(const std::string& path) override {
    if (!Lives()) return Dead();
    auto file = disk_.Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(this, *std::move(file));
  }
  absl::StatusOr<std::unique_ptr<runtime::WritableFile>> OpenForAppend(
      const std::string& path) override {
    return disk_.OpenForAppend(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Lives() ? disk_.Rename(from, to) : Dead();
  }
  absl::Status Remove(const std::string& path) override {
    return Lives() ? disk_.Remove(path) : Dead();
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    return disk_.List(directory);
  }
  absl::Status CreateDirectories(const std::string& path) override {
    return Lives() ? disk_.CreateDirectories(path) : Dead();
  }
  absl::Status SyncDirectory(const std::string& path) override {
    return Lives() ? disk_.SyncDirectory(path) : Dead();
  }
  bool Exists(const std::string& path) override { return disk_.Exists(path); }
  absl::StatusOr<runtime::FileKind> KindOf(const std::string& path) override {
    return disk_.KindOf(path);
  }
  absl::StatusOr<std::uint64_t> BytesFree(const std::string& directory) override {
    return disk_.BytesFree(directory);
  }
  absl::StatusOr<std::unique_ptr<runtime::FileLock>> Lock(const std::string& path) override {
    return disk_.Lock(path);
  }

 private:
  class File final : public runtime::WritableFile {
   public:
    File(DyingDisk* disk, std::unique_ptr<runtime::WritableFile> file)
        : disk_(disk), file_(std::move(file)) {}
    absl::Status Append(absl::string_view data) override {
      return disk_->Lives() ? file_->Append(data) : Dead();
    }
    absl::Status Sync() override { return disk_->Lives() ? file_->Sync() : Dead(); }
    absl::Status Close() override { return file_->Close(); }

   private:
    DyingDisk* const disk_;
    const std::unique_ptr<runtime::WritableFile> file_;
  };

  static absl::Status Dead() { return absl::UnavailableError("the machine is down"); }
  bool Lives() {
    if (!died_ && left_-- > 0) return true;
    if (!died_) disk_.Crash();
    died_ = true;
    return false;
  }

  runtime::SimFileSystem disk_;
  std::uint64_t left_ = ~0ull;
  bool died_ = false;
};

// Saves 1 (full), 2 (on top of it) and 3 (full), removing what is superfluous.
void SaveThree(runtime::FileSystem* files, std::vector<std::uint64_t>* digests) {
  TestModel model(2);
  std::optional<checkpoint::Base> base;
  for (const std::uint64_t number : {1, 2, 3}) {
    model.Push(number, 60);
    digests->push_back(model.Digest());
    if (number == 3) base.reset();
    const auto manifest = model.Save(files, kSavedFolder, number, base);
    if (!manifest.ok()) return;
    base = checkpoint::Base{.name = manifest->name, .checksum = manifest->checksum};
  }
  for (const std::string& name :
       checkpoint::Superfluous(*checkpoint::ListCheckpoints(files, kSavedFolder), 1)) {
    checkpoint::RemoveCheckpoint(files, checkpoint::JoinPath(kSavedFolder, name)).IgnoreError();
  }
}

// How many of the three verify accepts; each of which has to be what was saved.
int CountAccepted(runtime::FileSystem* files, const std::vector<std::uint64_t>& digests) {
  int accepted = 0;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    if (!VerifyCheckpoint(files, SavedPath(number), NoProgress).ok()) continue;
    ++accepted;
    TestModel loaded(3);
    const absl::Status status = loaded.Load(files, SavedPath(number));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_LE(number, digests.size());
    EXPECT_EQ(loaded.Digest(), digests[number - 1]) << "checkpoint " << number;
  }
  return accepted;
}

TEST(CheckpointCrashTest, AtEveryStep) {
  int seen[4] = {};
  std::uint64_t step = 0;
  for (bool died = true; died; ++step) {
    DyingDisk disk(step);
    disk.disk()->SetFaults({.torn_writes = true});
    disk.DieAfter(step);
    std::vector<std::uint64_t> digests;
    SaveThree(&disk, &digests);
    died = disk.died();
    const int accepted = CountAccepted(disk.disk(), digests);
    ++seen[accepted];
    // Once the first was finished there is always one to go back to.
    if (digests.size() >= 2) {
      EXPECT_GE(accepted, 1) << "step " << step;
    }
  }
  EXPECT_GT(step, 60u);
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[1], 0);
  EXPECT_GT(seen[2], 0);
}

TEST(CheckpointCrashTest, WithADiskThatFailsNowAndThen) {
  constexpr int kSeeds = runtime::kSanitized ? 40 : 200;
  int refused = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    runtime::SimFileSystem disk(seed);
    disk.SetFaults({.error_probability = 0.03, .torn_writes = true});
    std::vector<std::uint64_t> digests;
    SaveThree(&disk, &digests);
    if (seed % 2 == 0) disk.Crash();
    refused += 3 - CountAccepted(&disk, digests);
  }
  EXPECT_GT(refused, kSeeds / 2);
}

TEST(CheckpointCrashTest, WithADiskThatIsFull) {
  for (std::uint64_t kilobytes = 1; kilobytes < 600; kilobytes += 13) {
    runtime::SimFileSystem disk(kilobytes);
    disk.SetFaults({.bytes_max = kilobytes << 10});
    std::vector<std::uint64_t> digests;
    SaveThree(&disk, &digests);
    CountAccepted(&disk, digests);
  }
}

}  // namespace
}  // namespace leeway::ps
