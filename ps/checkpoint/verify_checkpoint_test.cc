#include "ps/checkpoint/verify_checkpoint.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "checkpoint/checksum.h"
#include "ps/checkpoint/testing/test_model.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::ps {
namespace {

using checkpoint::Base;
using checkpoint::JoinPath;

class VerifyCheckpointTest : public ::testing::Test {
 protected:
  VerifyCheckpointTest() {
    TestModel model(2);
    model.Push(1, 1000);
    const checkpoint::Manifest first = *model.Save(&files_, kSavedFolder, 1);
    model.Push(2, 3);
    EXPECT_TRUE(
        model.Save(&files_, kSavedFolder, 2, Base{.name = first.name, .checksum = first.checksum})
            .ok());
  }

  absl::Status VerifyNewest() {
    return VerifyCheckpoint(&files_, SavedPath(2), NoProgress).status();
  }
  std::string Contents(const std::string& path) { return *files_.Read(path); }
  void Write(const std::string& path, absl::string_view contents) {
    ASSERT_TRUE((*files_.Create(path))->Append(contents).ok());
  }
  std::vector<std::string> AllFiles() {
    std::vector<std::string> all;
    for (const std::uint64_t number : {1, 2}) {
      const std::vector<std::string> names = *files_.List(SavedPath(number));
      for (const std::string& name : names) {
        all.push_back(JoinPath(SavedPath(number), name));
      }
    }
    return all;
  }

  runtime::SimFileSystem files_{1};
};

TEST_F(VerifyCheckpointTest, ACorrectOneIsTakenAndReadToItsEnd) {
  std::uint64_t last = 0, whole = 0;
  const auto chain =
      VerifyCheckpoint(&files_, SavedPath(2), [&](std::uint64_t done, std::uint64_t all) {
        EXPECT_GE(done, last);
        last = done;
        whole = all;
      });
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->size(), 2u);
  EXPECT_GT(last, whole / 2);
  EXPECT_LE(last, whole);
}

TEST_F(VerifyCheckpointTest, AnyBitInAnyFileIsFound) {
  runtime::Random random(1);
  for (const std::string& path : AllFiles()) {
    const std::string good = Contents(path);
    for (int i = 0; i < 60; ++i) {
      std::string flipped = good;
      // Every byte of the beginning is something to be understood.
      const std::size_t byte = i < 20 ? static_cast<std::size_t>(i) : random.Below(good.size());
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << random.Below(8)));
      Write(path, flipped);
      const absl::Status found = VerifyNewest();
      EXPECT_FALSE(found.ok()) << path << ", byte " << byte;
      EXPECT_NE(found.message().find(path), absl::string_view::npos) << found;
    }
    Write(path, good);
  }
  EXPECT_TRUE(VerifyNewest().ok());
}

TEST_F(VerifyCheckpointTest, AFileThatIsMissingOrCutOffIsFound) {
  for (const std::string& path : AllFiles()) {
    const std::string good = Contents(path);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{7}, good.size() / 2, good.size() - 1}) {
      Write(path, good.substr(0, size));
      EXPECT_FALSE(VerifyNewest().ok()) << path << " of " << size;
    }
    Write(path, good + "x");
    EXPECT_FALSE(VerifyNewest().ok()) << path;
    ASSERT_TRUE(files_.Remove(path).ok());
    EXPECT_FALSE(VerifyNewest().ok()) << path;
    Write(path, good);
  }
  EXPECT_TRUE(VerifyNewest().ok());
}

// The checksum of a file that was not made by us is right, so that its contents have to speak.
class ForgedTest : public VerifyCheckpointTest {
 protected:
  // Shard 0 of the first checkpoint holds `contents`, and the manifest says so.
  absl::Status VerifyWith(const std::string& contents) {
    checkpoint::Manifest manifest = *checkpoint::ReadManifest(&files_, SavedPath(1));
    Write(JoinPath(SavedPath(1), checkpoint::ShardFileName(0)), contents);
    manifest.files[0].bytes = contents.size();
    manifest.files[0].checksum = checkpoint::ChecksumOf(contents);
    EXPECT_TRUE(checkpoint::FinishCheckpoint(&files_, SavedPath(1), &manifest).ok());
    return VerifyCheckpoint(&files_, SavedPath(1), NoProgress).status();
  }
  // The header with something else of the same length in it.
  absl::Status VerifyEdited(absl::string_view from, absl::string_view to) {
    const std::string edited = absl::StrReplaceAll(good_, {{from, to}});
    EXPECT_NE(edited, good_) << from;
    EXPECT_EQ(edited.size(), good_.size());
    return VerifyWith(edited);
  }

  const std::string good_ = Contents(JoinPath(SavedPath(1), checkpoint::ShardFileName(0)));
};

TEST_F(ForgedTest, OfAnotherShardOrCheckpoint) {
  EXPECT_TRUE(VerifyWith(good_).ok());
  EXPECT_FALSE(VerifyWith(Contents(JoinPath(SavedPath(1), checkpoint::ShardFileName(1)))).ok());
  EXPECT_FALSE(VerifyWith(Contents(JoinPath(SavedPath(2), checkpoint::ShardFileName(0)))).ok());
  EXPECT_FALSE(VerifyEdited("\\\"clock\\\":10,", "\\\"clock\\\":11,").ok());
  EXPECT_FALSE(VerifyEdited("\\\"base\\\":\\\"\\\"", "\\\"base\\\":[]  ").ok());
  EXPECT_FALSE(VerifyEdited("\\\"num_shards\\\":2", "\\\"num_shards\\\":3").ok());
}

TEST_F(ForgedTest, WithPartsThatDoNotFit) {
  EXPECT_FALSE(VerifyEdited("/rows/0/keys", "/rows/1/keys").ok());
  EXPECT_FALSE(VerifyEdited("/rows/0/keys", "/rows/0/kays").ok());
  EXPECT_FALSE(VerifyEdited("table/ragged", "table/rugged").ok());
  EXPECT_FALSE(VerifyEdited("\\\"state_slots\\\":2", "\\\"state_slots\\\":3").ok());
  EXPECT_FALSE(VerifyEdited("\\\"id\\\":3,", "\\\"id\\\":2,").ok());
}

TEST_F(ForgedTest, WithBytesThatAreNoRows) {
  // Keys come first among the widest: nearly all other keys are of another shard, or there twice.
  for (std::size_t at = good_.size() / 8; at < good_.size() / 2; at += 1000) {
    std::string edited = good_;
    edited[at] = static_cast<char>(edited[at] + 1);
    VerifyWith(edited).IgnoreError();  // values may be anything; but nothing may crash
  }
}

}  // namespace
}  // namespace leeway::ps
