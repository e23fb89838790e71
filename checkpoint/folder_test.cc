#include "checkpoint/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "checkpoint/checksum.h"
#include "runtime/sim/sim_file_system.h"
#include "runtime/testing/temp_folder.h"

namespace leeway::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFolder[] = "saved";

Manifest ManifestOf(std::uint64_t number, std::optional<Base> base = std::nullopt) {
  return {.name = CheckpointName(number),
          .time = "",
          .cluster = 1,
          .clock = number,
          .num_shards = 1,
          .block_bytes = 1 << 20,
          .base = std::move(base),
          .tables = {},
          .files =
              {{.name = ShardFileName(0), .shard = 0, .bytes = 5, .checksum = ChecksumOf("12345")}},
          .checksum = 0};
}

std::string PathOf(std::uint64_t number) { return JoinPath(kFolder, CheckpointName(number)); }

absl::Status WriteShard(runtime::FileSystem* files, std::uint64_t number) {
  auto file = files->Create(JoinPath(PathOf(number), ShardFileName(0)));
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Append("12345");
  status.Update((*file)->Sync());
  return status;
}

// Returns what one that adds to it has to say.
Base Save(runtime::FileSystem* files, std::uint64_t number,
          std::optional<Base> base = std::nullopt) {
  Manifest manifest = ManifestOf(number, std::move(base));
  EXPECT_TRUE(StartCheckpoint(files, PathOf(number)).ok());
  EXPECT_TRUE(WriteShard(files, number).ok());
  EXPECT_TRUE(FinishCheckpoint(files, PathOf(number), &manifest).ok());
  return {.name = manifest.name, .checksum = manifest.checksum};
}

std::vector<std::string> Finished(runtime::FileSystem* files) {
  std::vector<std::string> names;
  const auto found = ListCheckpoints(files, kFolder);
  EXPECT_TRUE(found.ok()) << found.status();
  for (const Found& one : *found) {
    if (one.manifest.ok()) names.push_back(one.name);
  }
  return names;
}

TEST(FolderTest, NamesComeBack) {
  EXPECT_EQ(CheckpointName(7), "ckpt-00000007");
  EXPECT_EQ(CheckpointNumber("ckpt-00000007"), 7u);
  EXPECT_EQ(CheckpointNumber(CheckpointName(1234567890123)), 1234567890123u);
  for (const char* other :
       {"ckpt-7", "ckpt-", "ckpt-0000000x", "tckp-00000007", "ckpt--0000007",
        "ckpt-00000007.partial", "ckpt-18446744073709551615", "ckpt-4611686018427387905", ""}) {
    EXPECT_EQ(CheckpointNumber(other), std::nullopt) << other;
  }
  EXPECT_EQ(SplitPath("a/b/c/"), std::pair(std::string("a/b"), std::string("c")));
  EXPECT_EQ(SplitPath("c"), std::pair(std::string("."), std::string("c")));
  EXPECT_EQ(SplitPath("/c"), std::pair(std::string("/"), std::string("c")));
}

TEST(FolderTest, FilesOfCheckpointsAreKnownByTheirNames) {
  for (const char* name : {"manifest.json", "manifest.json.partial", "shard-00000.safetensors",
                           "shard-1048575.safetensors"}) {
    EXPECT_TRUE(IsFileOfCheckpoint(name)) << name;
  }
  for (const char* name :
       {"", "notes.txt", "manifest.json~", "shard-.safetensors", "shard-0.safetensors",
        "shard--0001.safetensors", "shard-00000.safetensors.gz", "shard-000000.safetensors"}) {
    EXPECT_FALSE(IsFileOfCheckpoint(name)) << name;
  }
}

TEST(FolderTest, AFolderThatIsNotThereHasNone) {
  runtime::SimFileSystem files(1);
  EXPECT_THAT(*ListCheckpoints(&files, kFolder), IsEmpty());
}

TEST(FolderTest, OneWithoutManifestIsNone) {
  runtime::SimFileSystem files(1);
  Save(&files, 1);
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(2)).ok());
  ASSERT_TRUE(WriteShard(&files, 2).ok());
  EXPECT_THAT(Finished(&files), ElementsAre(CheckpointName(1)));
  const auto found = ListCheckpoints(&files, kFolder);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[1].manifest.status().code(), absl::StatusCode::kNotFound);
}

TEST(FolderTest, RemainsOfAFailedOneAreSweptAway) {
  runtime::SimFileSystem files(1);
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(1)).ok());
  ASSERT_TRUE(WriteShard(&files, 1).ok());
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(1)).ok());
  EXPECT_THAT(*files.List(PathOf(1)), IsEmpty());
}

TEST(FolderTest, FilesOfOthersStay) {
  runtime::SimFileSystem files(1);
  Save(&files, 1);
  ASSERT_TRUE(files.Create(JoinPath(PathOf(1), "notes.txt")).ok());
  ASSERT_TRUE(files.CreateDirectories(JoinPath(PathOf(1), ShardFileName(7))).ok());
  const absl::Status removed = RemoveCheckpoint(&files, PathOf(1));
  EXPECT_EQ(removed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(removed.message().find("notes.txt"), absl::string_view::npos) << removed;
  EXPECT_THAT(*files.List(PathOf(1)), ElementsAre("notes.txt", ShardFileName(7)));
  EXPECT_FALSE(StartCheckpoint(&files, PathOf(1)).ok());
}

// Where a link leads is not ours to empty.
TEST(FolderTest, LinksAreNotFollowed) {
  runtime::FileSystem* const files = runtime::RealFileSystem();
  const runtime::TempFolder temp_folder;
  const std::string& root = temp_folder.path();
  const std::string elsewhere = JoinPath(root, "elsewhere"), link = JoinPath(root, "ckpt-00000001");
  ASSERT_TRUE(files->CreateDirectories(elsewhere).ok());
  ASSERT_TRUE(runtime::WriteFileAtomically(files, JoinPath(elsewhere, kManifestName), "x").ok());
  std::filesystem::create_directory_symlink(elsewhere, link);
  EXPECT_FALSE(RemoveCheckpoint(files, link).ok());
  EXPECT_FALSE(StartCheckpoint(files, link).ok());
  EXPECT_THAT(*files->List(elsewhere), ElementsAre(kManifestName));
  EXPECT_THAT(*ListForeign(files, root), ElementsAre("ckpt-00000001"));

  const std::string real = JoinPath(root, "ckpt-00000002");
  ASSERT_TRUE(files->CreateDirectories(real).ok());
  std::filesystem::create_symlink(JoinPath(elsewhere, kManifestName),
                                  JoinPath(real, ShardFileName(0)));
  EXPECT_FALSE(RemoveCheckpoint(files, real).ok());
  EXPECT_THAT(*files->List(real), ElementsAre(ShardFileName(0)));
}

// Permissions are not asked of a superuser, so that a link to itself is what cannot be looked into.
TEST(FolderTest, AFileThatCannotBeReadIsAnError) {
  runtime::FileSystem* const files = runtime::RealFileSystem();
  const runtime::TempFolder temp_folder;
  const std::string& root = temp_folder.path();
  const std::string loop = JoinPath(root, "loop");
  std::filesystem::create_symlink(loop, loop);
  for (const absl::Status& looked :
       {ListCheckpoints(files, loop).status(), ListForeign(files, loop).status(),
        FindCheckpoint(files, loop).status()}) {
    EXPECT_FALSE(looked.ok() || absl::IsNotFound(looked)) << looked;
  }
  EXPECT_EQ(ListCheckpoints(files, JoinPath(root, "none"))->size(), 0u);
}

TEST(FolderTest, AFinishedOneIsNotStartedAnew) {
  runtime::SimFileSystem files(1);
  Save(&files, 1);
  EXPECT_EQ(StartCheckpoint(&files, PathOf(1)).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Finished(&files), ElementsAre(CheckpointName(1)));
  EXPECT_TRUE(files.Exists(JoinPath(PathOf(1), ShardFileName(0))));
}

TEST(FolderTest, NamesThatAreNoneOfOursAreForeign) {
  runtime::SimFileSystem files(1);
  Save(&files, 1);
  for (const char* name : {"ckpt-18446744073709551615", "ckpt-best", "others"}) {
    ASSERT_TRUE(files.CreateDirectories(JoinPath(kFolder, name)).ok());
  }
  EXPECT_THAT(*ListForeign(&files, kFolder), ElementsAre("ckpt-18446744073709551615", "ckpt-best"));
  EXPECT_THAT(Finished(&files), ElementsAre(CheckpointName(1)));
  EXPECT_THAT(*ListForeign(&files, "nowhere"), IsEmpty());
}

TEST(FolderTest, AChainIsFollowedToItsFullOne) {
  runtime::SimFileSystem files(1);
  const Base first = Save(&files, 1);
  const Base second = Save(&files, 2, first);
  Save(&files, 3, second);
  const auto chain = ReadChain(&files, PathOf(3));
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_EQ(chain->size(), 3u);
  EXPECT_EQ((*chain)[0].name, CheckpointName(3));
  EXPECT_EQ((*chain)[2].name, CheckpointName(1));
}

TEST(FolderTest, ABrokenChainIsFound) {
  runtime::SimFileSystem files(1);
  const Base first = Save(&files, 1);
  Save(&files, 2, first);
  ASSERT_TRUE(ReadChain(&files, PathOf(2)).ok());
  Manifest other = ManifestOf(1);
  other.clock = 99;  // another one under the same name
  ASSERT_TRUE(FinishCheckpoint(&files, PathOf(1), &other).ok());
  EXPECT_EQ(ReadChain(&files, PathOf(2)).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(RemoveCheckpoint(&files, PathOf(1)).ok());
  EXPECT_EQ(ReadChain(&files, PathOf(2)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(FolderTest, AChainHasAnEnd) {
  runtime::SimFileSystem files(1);
  std::optional<Base> base;
  for (std::uint64_t number = 1; number <= kChainMax + 1; ++number) {
    base = Save(&files, number, base);
  }
  EXPECT_TRUE(ReadChain(&files, PathOf(kChainMax)).ok());
  EXPECT_EQ(ReadChain(&files, PathOf(kChainMax + 1)).status().code(), absl::StatusCode::kDataLoss);
}

// Tables come between a checkpoint and one that adds to it; none goes or becomes another.
TEST(FolderTest, AChainsTablesStayWhatTheyAre) {
  const TableEntry dense{.id = 1, .spec = TableSpec::Dense("w", {3, 5})};
  const TableEntry rows{.id = 2, .spec = TableSpec::Sparse("rows", 4)};
  TableEntry larger = dense, renamed = dense, retuned = dense, wider = rows, other_updater = rows;
  larger.spec.shape = {3, 6};
  renamed.spec.name = "v";
  retuned.spec.consistency = Consistency::Ssp(3);
  retuned.spec.updater.parameters["learning_rate"] = 0.5;
  wider.spec.row_width = 5;
  other_updater.spec.updater.name = "adam";
  const auto chain_of = [](std::vector<TableEntry> before, std::vector<TableEntry> after,
                           std::uint64_t cluster = 1) {
    runtime::SimFileSystem files(1);
    Manifest first = ManifestOf(1);
    first.tables = std::move(before);
    EXPECT_TRUE(StartCheckpoint(&files, PathOf(1)).ok());
    EXPECT_TRUE(FinishCheckpoint(&files, PathOf(1), &first).ok());
    Manifest second = ManifestOf(2, Base{.name = first.name, .checksum = first.checksum});
    second.tables = std::move(after);
    second.cluster = cluster;
    EXPECT_TRUE(StartCheckpoint(&files, PathOf(2)).ok());
    EXPECT_TRUE(FinishCheckpoint(&files, PathOf(2), &second).ok());
    return ReadChain(&files, PathOf(2)).status();
  };
  EXPECT_TRUE(chain_of({dense, rows}, {dense, rows}).ok());
  EXPECT_TRUE(chain_of({dense}, {dense, rows}).ok());
  EXPECT_TRUE(chain_of({dense}, {retuned}).ok());  // Worker::ChangeTable
  for (const absl::Status& status :
       {chain_of({dense, rows}, {dense}), chain_of({dense}, {larger}), chain_of({dense}, {renamed}),
        chain_of({dense, rows}, {dense, wider}), chain_of({rows}, {other_updater}),
        chain_of({dense}, {}), chain_of({dense}, {dense}, 2)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find("ckpt-00000001/manifest.json"), absl::string_view::npos)
        << status;
  }
}

TEST(FolderTest, OneThatCouldNotBeReadIsNotWritten) {
  runtime::SimFileSystem files(1);
  Manifest manifest = ManifestOf(1);
  manifest.clock = ~0ull;
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(1)).ok());
  EXPECT_FALSE(FinishCheckpoint(&files, PathOf(1), &manifest).ok());
  EXPECT_THAT(*files.List(PathOf(1)), IsEmpty());
}

// An older one is perhaps not what is wanted.
TEST(FolderTest, ADamagedOneIsNotPassedOver) {
  runtime::SimFileSystem files(1);
  Save(&files, 1);
  Save(&files, 2);
  EXPECT_EQ(*FindCheckpoint(&files, kFolder), PathOf(2));
  const std::string path = JoinPath(PathOf(2), kManifestName);
  std::string bytes = *files.Read(path);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(runtime::WriteFileAtomically(&files, path, bytes).ok());
  EXPECT_EQ(FindCheckpoint(&files, kFolder).status().code(), absl::StatusCode::kDataLoss);
}

TEST(FolderTest, OneThatWasRenamedIsNotBelieved) {
  runtime::SimFileSystem files(1);
  Manifest manifest = ManifestOf(1);
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(2)).ok());
  ASSERT_TRUE(FinishCheckpoint(&files, PathOf(2), &manifest).ok());
  EXPECT_EQ(ReadChain(&files, PathOf(2)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(FolderTest, OldOnesGoButNoneThatIsNeeded) {
  runtime::SimFileSystem files(1);
  Save(&files, 1);
  const Base second = Save(&files, 2);
  Save(&files, 3);
  const Base fourth = Save(&files, 4, second);
  Save(&files, 5, fourth);
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(6)).ok());  // has failed, or is being written
  const auto found = *ListCheckpoints(&files, kFolder);
  EXPECT_THAT(Superfluous(found, 1), ElementsAre(CheckpointName(1), CheckpointName(3)));
  EXPECT_THAT(Superfluous(found, 2), ElementsAre(CheckpointName(1), CheckpointName(3)));
  EXPECT_THAT(Superfluous(found, 3), ElementsAre(CheckpointName(1)));
  EXPECT_THAT(Superfluous(found, 5), IsEmpty());
  ASSERT_TRUE(RemoveCheckpoint(&files, PathOf(1)).ok());
  EXPECT_FALSE(files.Exists(PathOf(1)));
  EXPECT_TRUE(ReadChain(&files, PathOf(5)).ok());
}

// A disk that takes fewer and fewer operations before the machine goes down: at whatever moment
// that is, what is listed afterwards is whole, and what was finished before is still there.
TEST(FolderTest, ACrashAtAnyMomentLeavesWholeOnesOnly) {
  int unfinished = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    runtime::SimFileSystem files(seed);
    Save(&files, 1);
    files.SetFaults({.error_probability = 0.2, .torn_writes = true});
    Manifest manifest = ManifestOf(2);
    absl::Status saved = StartCheckpoint(&files, PathOf(2));
    if (saved.ok()) saved = WriteShard(&files, 2);
    if (saved.ok()) saved = FinishCheckpoint(&files, PathOf(2), &manifest);
    const bool removed = seed % 3 == 0 && RemoveCheckpoint(&files, PathOf(1)).ok();
    files.Crash();
    files.SetFaults({});
    for (const std::string& name : Finished(&files)) {
      const std::string path = JoinPath(kFolder, name);
      // What is being removed loses its manifest first.
      const auto shard = files.Read(JoinPath(path, ShardFileName(0)));
      EXPECT_TRUE(shard.ok() && *shard == "12345") << "seed " << seed;
    }
    if (seed % 3 != 0) {
      EXPECT_TRUE(ReadManifest(&files, PathOf(1)).ok()) << "seed " << seed;
    }
    if (removed) {
      EXPECT_FALSE(ReadManifest(&files, PathOf(1)).ok());
    }
    if (saved.ok()) {
      EXPECT_TRUE(ReadManifest(&files, PathOf(2)).ok()) << "seed " << seed;
    }
    unfinished += saved.ok() ? 0 : 1;
  }
  EXPECT_GT(unfinished, 50);
}

}  // namespace
}  // namespace leeway::checkpoint
