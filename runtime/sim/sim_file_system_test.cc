#include "runtime/sim/sim_file_system.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace leeway::runtime {
namespace {

constexpr int kSeeds = 200;

std::unique_ptr<WritableFile> CreateWith(FileSystem* files, const std::string& path,
                                         absl::string_view contents) {
  auto file = files->Create(path);
  EXPECT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Append(contents).ok());
  return *std::move(file);
}

// The contents of the file, or "-" if it does not exist.
std::string ContentsOf(FileSystem* files, const std::string& path) {
  const auto contents = files->Read(path);
  return contents.ok() ? *contents : "-";
}

// The contents of `path` that a crash after `prepare` can leave, over many seeds.
template <class Prepare>
std::set<std::string> AfterCrash(const std::string& path, Prepare prepare) {
  std::set<std::string> found;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimFileSystem files(seed);
    prepare(&files);
    files.Crash();
    found.insert(ContentsOf(&files, path));
  }
  return found;
}

using Outcomes = std::set<std::string>;

TEST(SimFileSystemTest, SyncedBytesSurvive) {
  EXPECT_EQ(AfterCrash("file",
                       [](FileSystem* files) {
                         auto file = CreateWith(files, "file", "abc");
                         EXPECT_TRUE(file->Sync().ok());
                         EXPECT_TRUE(files->SyncDirectory(".").ok());
                       }),
            Outcomes({"abc"}));
}

TEST(SimFileSystemTest, AnyPartOfAnUnsyncedTailMayBeLost) {
  EXPECT_EQ(AfterCrash("file",
                       [](FileSystem* files) {
                         auto file = CreateWith(files, "file", "abc");
                         EXPECT_TRUE(file->Sync().ok());
                         EXPECT_TRUE(files->SyncDirectory(".").ok());
                         EXPECT_TRUE(file->Append("de").ok());
                       }),
            Outcomes({"abc", "abcd", "abcde"}));
}

TEST(SimFileSystemTest, AnUnsyncedNameMayBeLost) {
  EXPECT_EQ(AfterCrash("file",
                       [](FileSystem* files) {
                         EXPECT_TRUE(CreateWith(files, "file", "abc")->Sync().ok());
                       }),
            Outcomes({"-", "abc"}));
}

TEST(SimFileSystemTest, OfTwoUnsyncedNamesAnyMayBeLost) {
  Outcomes found;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimFileSystem files(seed);
    EXPECT_TRUE(CreateWith(&files, "first", "1")->Sync().ok());
    EXPECT_TRUE(CreateWith(&files, "second", "2")->Sync().ok());
    files.Crash();
    found.insert(absl::StrCat(ContentsOf(&files, "first"), ContentsOf(&files, "second")));
  }
  EXPECT_EQ(found, Outcomes({"--", "1-", "-2", "12"}));
}

TEST(SimFileSystemTest, AnEmptiedFileMayBeFullAgain) {
  EXPECT_EQ(AfterCrash("file",
                       [](FileSystem* files) {
                         EXPECT_TRUE(CreateWith(files, "file", "old")->Sync().ok());
                         EXPECT_TRUE(files->SyncDirectory(".").ok());
                         CreateWith(files, "file", "n");
                       }),
            Outcomes({"old", "", "n"}));
}

TEST(SimFileSystemTest, ARenameMayHaveHappenedOrNot) {
  EXPECT_EQ(AfterCrash("to",
                       [](FileSystem* files) {
                         EXPECT_TRUE(CreateWith(files, "to", "old")->Sync().ok());
                         EXPECT_TRUE(CreateWith(files, "from", "new")->Sync().ok());
                         EXPECT_TRUE(files->SyncDirectory(".").ok());
                         EXPECT_TRUE(files->Rename("from", "to").ok());
                       }),
            Outcomes({"old", "new"}));
}

TEST(SimFileSystemTest, ARenameOfAnUnsyncedFileMayLeaveItEmpty) {
  const Outcomes found = AfterCrash("to", [](FileSystem* files) {
    CreateWith(files, "from", "new");
    EXPECT_TRUE(files->Rename("from", "to").ok());
    EXPECT_TRUE(files->SyncDirectory(".").ok());
  });
  EXPECT_TRUE(found.contains(""));
  EXPECT_FALSE(found.contains("-"));
}

TEST(SimFileSystemTest, ARemovedFileMayComeBackUntilTheFolderIsSynced) {
  const auto remove = [](FileSystem* files) {
    EXPECT_TRUE(CreateWith(files, "file", "abc")->Sync().ok());
    EXPECT_TRUE(files->SyncDirectory(".").ok());
    EXPECT_TRUE(files->Remove("file").ok());
  };
  EXPECT_EQ(AfterCrash("file", remove), Outcomes({"-", "abc"}));
  EXPECT_EQ(AfterCrash("file",
                       [&](FileSystem* files) {
                         remove(files);
                         EXPECT_TRUE(files->SyncDirectory(".").ok());
                       }),
            Outcomes({"-"}));
}

TEST(SimFileSystemTest, TornWritesMayLeaveZeros) {
  const Outcomes found = AfterCrash("file", [](SimFileSystem* files) {
    files->SetFaults({.torn_writes = true});
    auto file = CreateWith(files, "file", "ab");
    EXPECT_TRUE(file->Sync().ok());
    EXPECT_TRUE(files->SyncDirectory(".").ok());
    EXPECT_TRUE(file->Append("cd").ok());
  });
  EXPECT_EQ(found,
            Outcomes({"ab", "abc", "abcd", std::string("ab\0", 3), std::string("ab\0\0", 4)}));
}

TEST(SimFileSystemTest, TheSameSeedLosesTheSame) {
  const auto outcome = [](std::uint64_t seed) {
    SimFileSystem files(seed);
    CreateWith(&files, "file", std::string(1000, 'x'));
    files.Crash();
    return ContentsOf(&files, "file").size();
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(outcome(seed), outcome(seed));
}

TEST(SimFileSystemTest, AFullDiskTakesWhatStillFits) {
  SimFileSystem files(1);
  files.SetFaults({.bytes_max = 5});
  auto file = CreateWith(&files, "file", "abc");
  const absl::Status status = file->Append("def");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(status.message(), "cannot write to file: No space left on device");
  EXPECT_EQ(ContentsOf(&files, "file"), "abcde");
  EXPECT_EQ(files.bytes_used(), 5u);
  ASSERT_TRUE(files.Remove("file").ok());
  CreateWith(&files, "other", "abcde");
}

TEST(SimFileSystemTest, FilesOpenAtACrashAreOfNoMoreUse) {
  SimFileSystem files(1);
  auto file = CreateWith(&files, "file", "abc");
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(files.SyncDirectory(".").ok());
  files.Crash();
  EXPECT_FALSE(file->Append("d").ok());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_EQ(ContentsOf(&files, "file"), "abc");
}

// With every fault and crash at every moment, the file has the old contents or the new ones, and
// the new ones once the write was reported as successful.
TEST(SimFileSystemTest, AnAtomicWriteIsWholeThroughEveryFault) {
  int succeeded = 0;
  int found_old = 0;
  for (int seed = 0; seed < 2000; ++seed) {
    SimFileSystem files(seed);
    ASSERT_TRUE(WriteFileAtomically(&files, "file", "the old contents").ok());
    files.SetFaults(
        {.bytes_max = seed % 3 == 0 ? 30u : 1000u, .error_probability = 0.15, .torn_writes = true});
    const absl::Status status = WriteFileAtomically(&files, "file", "the new contents");
    succeeded += status.ok();
    files.Crash();
    const std::string contents = ContentsOf(&files, "file");
    if (status.ok()) {
      ASSERT_EQ(contents, "the new contents") << "seed " << seed;
    } else {
      ASSERT_TRUE(contents == "the old contents" || contents == "the new contents")
          << "seed " << seed << ": " << contents;
    }
    found_old += contents == "the old contents";
  }
  EXPECT_GT(succeeded, 200);
  EXPECT_GT(found_old, 200);
}

TEST(SimFileSystemTest, ACrashLetsGoOfLocks) {
  SimFileSystem files(1);
  auto lock = files.Lock("lock");
  ASSERT_TRUE(lock.ok());
  files.Crash();
  auto next = files.Lock("lock");
  ASSERT_TRUE(next.ok()) << next.status();
  lock->reset();  // the lock of the process that went down
  EXPECT_EQ(files.Lock("lock").status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(SimFileSystemTest, AMachineMayHaltBetweenAnyTwoOperations) {
  std::set<std::string> found;
  for (std::uint64_t operations = 0; operations < 6; ++operations) {
    SimFileSystem files(1);
    int halts = 0;
    files.HaltAfter(operations, [&] { ++halts; });
    // The operations: create, append, sync, rename, sync of the folder.
    const auto made = files.Create("partial");
    absl::Status status = made.status();
    if (status.ok()) status = (*made)->Append("abc");
    if (status.ok()) status = (*made)->Sync();
    if (status.ok()) status = files.Rename("partial", "file");
    if (status.ok()) status = files.SyncDirectory(".");
    EXPECT_EQ(status.ok(), operations == 5);
    EXPECT_EQ(halts, operations == 5 ? 0 : 1);
    // The sixth operation fails, or the disk has halted.
    EXPECT_EQ(files.SyncDirectory(".").ok(), false) << operations;
    files.Crash();
    files.Resume();
    found.insert(ContentsOf(&files, "file"));
    EXPECT_TRUE(files.SyncDirectory(".").ok());
  }
  EXPECT_TRUE(found.contains("abc"));
  EXPECT_TRUE(found.contains("-"));
}

}  // namespace
}  // namespace leeway::runtime
