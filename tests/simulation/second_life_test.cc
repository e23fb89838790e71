// Tests what a second life begins with: a checkpoint of one table of counters, and its history.
#include "tests/simulation/second_life.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/folder.h"
#include "runtime/log/log.h"
#include "runtime/memory/sanitized.h"
#include "runtime/sim/sim_file_system.h"
#include "tests/simulation/seed_runner.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/simulation.h"

namespace leeway::simulation::second_life_test {
namespace {

constexpr std::size_t kPushes = 5;

class SecondLifeTest : public testing::Test {
 protected:
  SecondLifeTest() : history_(tables_.size(), 2) {
    runtime::SetLogLevel(runtime::LogLevel::kOff);
    for (WorkerLife& life : history_.lives) life.incarnation = life.killed = 1;
    for (std::size_t i = 0; i < kPushes; ++i) {
      history_.pushes(table(), 1)
          .push_back({.clock = i, .incarnation = 1, .places = 3, .submitted = absl::UnixEpoch()});
    }
  }
  ~SecondLifeTest() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }

  const SimTable& table() const { return tables_.front(); }

  // Saves block 0 with the first `pushes` pushes of worker 1.
  void Save(std::uint64_t number, std::uint64_t pushes) {
    std::vector<std::int64_t> values(table().stride);
    for (std::uint64_t i = 0; i < pushes; ++i) AddPush(table(), values, 1, i);
    const std::uint64_t steps[] = {pushes};
    ps::FrozenPiece piece;
    piece.dtype = DType::kInt64;
    piece.elements = values.size();
    piece.values = runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(std::int64_t));
    piece.steps = runtime::Buffer::CopyOf(steps, sizeof steps);
    checkpoint::Manifest manifest;
    manifest.name = checkpoint::CheckpointName(number);
    manifest.clock = pushes;
    manifest.num_shards = 1;
    manifest.block_bytes = kBlockBytes;
    manifest.tables = {{.id = 5, .spec = table().spec}};
    ps::ShardContent content;
    content.checkpoint = manifest.name;
    content.num_shards = 1;
    content.block_bytes = kBlockBytes;
    content.clock = pushes;
    content.tables.push_back({.id = 5, .spec = table().spec, .state_slots = 0, .pieces = {piece}});
    const std::string path = checkpoint::JoinPath(kSavedFolder, manifest.name);
    ASSERT_TRUE(checkpoint::StartCheckpoint(&disk_, path).ok());
    const auto file = ps::WriteShardFile(&disk_, path, std::move(content));
    ASSERT_TRUE(file.ok()) << file.status();
    manifest.files = {{.name = checkpoint::ShardFileName(0),
                       .shard = 0,
                       .bytes = file->bytes,
                       .checksum = file->checksum}};
    ASSERT_TRUE(checkpoint::FinishCheckpoint(&disk_, path, &manifest).ok());
  }

  runtime::Random random_{1};
  const std::vector<SimTable> tables_ = ChooseTables(2, /*ragged=*/false, &random_);
  History history_;
  runtime::SimFileSystem disk_{1};
};

TEST_F(SecondLifeTest, WithoutACheckpointThereIsNone) {
  const auto life = SecondLife::Choose(&disk_, tables_, history_, 1);
  ASSERT_TRUE(life.ok()) << life.status();
  EXPECT_FALSE(life->has_value());
}

// Pushes in it stay, whatever has become of their worker; none of the others ever shows.
TEST_F(SecondLifeTest, ItsHistoryIsThatOfTheCheckpoint) {
  Save(1, 3);
  const auto life = SecondLife::Choose(&disk_, tables_, history_, 1);
  ASSERT_TRUE(life.ok()) << life.status();
  ASSERT_TRUE(life->has_value());
  const std::vector<Push>& pushes = (*life)->history().pushes(table(), 1);
  ASSERT_EQ(pushes.size(), kPushes);
  for (std::size_t i = 0; i < kPushes; ++i) {
    EXPECT_EQ(pushes[i].places, i < 3 ? 1u : 0u);  // block 1 is not in it
    EXPECT_EQ(pushes[i].outcome, Outcome::kAcknowledged);
    EXPECT_FALSE((*life)->history().lives[1].WasKilled(pushes[i].incarnation));
  }
}

// Whichever is chosen, a cluster that looks for the newest one finds it.
TEST_F(SecondLifeTest, LaterCheckpointsAreNotFinished) {
  for (std::uint64_t number = 1; number <= 3; ++number) Save(number, number);
  std::set<std::uint64_t> chosen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto life = SecondLife::Choose(&disk_, tables_, history_, seed);
    ASSERT_TRUE(life.ok()) << life.status();
    runtime::SimFileSystem disk(1);
    ASSERT_TRUE((*life)->PutFiles(&disk).ok());
    const checkpoint::Manifest& manifest = (*life)->manifest();
    chosen.insert(manifest.clock);
    EXPECT_EQ(*checkpoint::FindCheckpoint(&disk, kSavedFolder),
              checkpoint::JoinPath(kSavedFolder, manifest.name));
    EXPECT_EQ(checkpoint::ListCheckpoints(&disk, kSavedFolder)->size(), 3u);
  }
  EXPECT_EQ(chosen.size(), 3u);
}

TEST_F(SecondLifeTest, ASeedWithOneIsTheSameEachTime) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    if (!SecondLife::IsPlanned(seed)) continue;
    SeedOptions options;
    options.seed = seed;
    const SeedResult first = RunSeed(options);
    if (!first.second_life) continue;
    EXPECT_EQ(DescribeFailure(first), "");
    if (runtime::kSanitized) return;
    EXPECT_EQ(first.trace_hash, RunSeed(options).trace_hash);
    return;
  }
  FAIL() << "no seed has a second life";
}

}  // namespace
}  // namespace leeway::simulation::second_life_test
