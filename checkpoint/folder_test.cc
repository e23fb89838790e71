#include "checkpoint/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checksum.h"
#include "runtime/sim_file_system.h"

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
  for (const char* other : {"ckpt-7", "ckpt-", "ckpt-0000000x", "tckp-00000007", "ckpt--0000007",
                            "ckpt-00000007.partial", ""}) {
    EXPECT_EQ(CheckpointNumber(other), std::nullopt) << other;
  }
  EXPECT_EQ(SplitPath("a/b/c/"), std::pair(std::string("a/b"), std::string("c")));
  EXPECT_EQ(SplitPath("c"), std::pair(std::string("."), std::string("c")));
  EXPECT_EQ(SplitPath("/c"), std::pair(std::string("/"), std::string("c")));
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

TEST(FolderTest, WhatAFailedOneLeftIsSweptAway) {
  runtime::SimFileSystem files(1);
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(1)).ok());
  ASSERT_TRUE(WriteShard(&files, 1).ok());
  ASSERT_TRUE(StartCheckpoint(&files, PathOf(1)).ok());
  EXPECT_THAT(*files.List(PathOf(1)), IsEmpty());
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
