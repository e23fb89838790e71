// A model is saved while it is trained, and goes on in another cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/export.h"
#include "ps/checkpoint/verify_checkpoint.h"
#include "runtime/files/file_system.h"
#include "runtime/testing/temp_folder.h"
#include "tests/checkpoints/plain_reader.h"
#include "tests/checkpoints/training.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

constexpr std::uint32_t kWorkers = 2;
constexpr std::uint64_t kSaveAt = 5;

std::string Contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void NoProgress(std::uint64_t, std::uint64_t) {}

class RestoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setup_.workers = kWorkers;
    setup_.config.block_bytes = 4096;
    setup_.config.num_shards = 10;
    setup_.config.resend_interval = absl::Milliseconds(300);
  }

  // Trains until `end` in a cluster of `setup_`; writes the clock at which it starts to `begin`.
  ModelValues Train(std::uint64_t end, std::uint64_t* begin) {
    end_ = end;
    return Train(begin, /*save=*/false);
  }
  // Worker 0 asks for a checkpoint at kSaveAt; the workers train until after its end, to `end_`.
  ModelValues TrainAndSave() {
    end_ = ~0ull;
    std::uint64_t begin = 1;
    ModelValues values = Train(&begin, /*save=*/true);
    EXPECT_EQ(begin, 0u);
    return values;
  }

  ModelValues Train(std::uint64_t* begin, bool save) {
    ModelValues values;
    auto cluster = LocalCluster::Start(setup_);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    if (!cluster.ok()) return values;
    const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
      const bool first = worker->rank() == 0;
      if (first) *begin = worker->clock();
      Training training(worker);
      std::thread saver;
      std::atomic<bool> saved = false;
      while (worker->clock() < end_) {
        const absl::Status trained = training.RunUntil(worker->clock() + 1);
        EXPECT_TRUE(trained.ok()) << trained;
        if (!trained.ok()) break;
        // Set by a training worker, so that training does not end before; the other worker is at
        // most one clock further.
        if (saved.exchange(false)) end_ = worker->clock() + 5;
        if (!first || !save || worker->clock() != kSaveAt) continue;
        saver = std::thread([&] {
          Save(worker);
          saved = true;
        });
      }
      if (saver.joinable()) saver.join();
      if (!first) return;
      const absl::Status read = training.Read(&values);
      EXPECT_TRUE(read.ok()) << read;
    });
    EXPECT_TRUE(ran.ok()) << ran;
    const absl::Status finished = (*cluster)->Finish();
    EXPECT_TRUE(finished.ok()) << finished;
    return values;
  }

  void Save(Worker* worker) {
    const auto saved = worker->Checkpoint(folder_);
    EXPECT_TRUE(saved.ok()) << saved.status();
    if (saved.ok()) path_ = *saved;
  }

  std::uint64_t SavedClock() {
    return nlohmann::json::parse(Contents(path_ + "/manifest.json")).at("manifest").at("clock");
  }

  const runtime::TempFolder temp_folder_;
  const std::string folder_ = temp_folder_.path();
  std::string path_;
  LocalCluster::Setup setup_;
  std::atomic<std::uint64_t> end_ = 0;
};

TEST_F(RestoreTest, OntoMoreServersWithReplicasEveryValueAndEveryNextUpdateIsEqual) {
  std::uint64_t begin = 0;
  setup_.servers = 2;
  const ModelValues there = TrainAndSave();
  ASSERT_FALSE(path_.empty());
  const std::uint64_t clock = SavedClock(), end = end_;
  EXPECT_GT(clock, kSaveAt);
  EXPECT_LT(clock, end);
  EXPECT_EQ(there.counters, Training::CountersAt(end, kWorkers));

  setup_.servers = 3;
  setup_.config.replication = 2;
  setup_.config.restore = path_;
  for (const std::uint32_t shards : {10, 7}) {
    setup_.config.num_shards = shards;
    if (shards == 7) setup_.net = LocalCluster::Net::kRdma;
    EXPECT_TRUE(Train(end, &begin) == there) << shards << " shards";
    EXPECT_EQ(begin, clock);
  }
}

// A checkpoint that is saved when all workers have left is of the clock that they have reached.
TEST_F(RestoreTest, TheNextTrainingBeginsWithTheLastCheckpoint) {
  setup_.servers = 2;
  setup_.config.checkpoint_dir = folder_;
  setup_.config.checkpoint_at_end = true;
  std::uint64_t begin = 1;
  const ModelValues at_end = Train(7, &begin);
  EXPECT_EQ(begin, 0u);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) path_ = entry.path();
  ASSERT_EQ(SavedClock(), 7u);
  setup_.servers = 3;
  setup_.config.restore = path_;
  setup_.config.checkpoint_at_end = false;
  const ModelValues restored = Train(7, &begin);
  EXPECT_EQ(begin, 7u);
  EXPECT_EQ(restored, at_end);
}

// A failed checkpoint at the end is a failure of the cluster.
TEST_F(RestoreTest, AClusterThatCannotSaveAtItsEndSaysSo) {
  setup_.config.checkpoint_dir = "/proc/no-such-place";
  setup_.config.checkpoint_at_end = true;
  auto cluster = LocalCluster::Start(setup_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_TRUE((*cluster)->RunWorkers([](Worker* worker) {}).ok());
  EXPECT_THAT(std::string((*cluster)->Finish().message()),
              testing::HasSubstr("LEEWAY_CHECKPOINT_AT_END"));
}

TEST_F(RestoreTest, FilesAreWhatTheirFormatSays) {
  std::uint64_t begin = 0;
  setup_.servers = 2;
  TrainAndSave();
  ASSERT_FALSE(path_.empty());
  // The values at the checkpoint's clock, as another cluster reads them.
  const std::uint64_t clock = SavedClock();
  setup_.config.restore = folder_;  // the newest there
  const ModelValues values = Train(clock, &begin);
  EXPECT_EQ(values.counters, Training::CountersAt(clock, kWorkers));

  const auto chain = ps::VerifyCheckpoint(runtime::RealFileSystem(), path_, NoProgress);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->front().files.size(), 10u);
  std::map<std::uint64_t, std::vector<float>> blocks;
  for (const checkpoint::FileEntry& entry : chain->front().files) {
    const PlainFile file = ReadPlainly(Contents(path_ + "/" + entry.name));
    EXPECT_EQ(nlohmann::json::parse(file.metadata.at("leeway")).at("clock"), clock);
    for (std::uint64_t block = 0; block < 5; ++block) {
      const auto tensor = file.tensors.find(absl::StrCat("table/dense/block/", block, "/values"));
      if (tensor == file.tensors.end()) continue;
      EXPECT_EQ(tensor->second.type, "F32");
      EXPECT_TRUE(blocks.emplace(block, tensor->second.As<float>()).second);
    }
  }
  std::vector<float> dense;
  for (const auto& [block, part] : blocks) dense.insert(dense.end(), part.begin(), part.end());
  EXPECT_EQ(dense, values.dense);

  const std::string exported = folder_ + "/model.safetensors";
  const auto written = ps::Export(runtime::RealFileSystem(), path_, exported, NoProgress);
  ASSERT_TRUE(written.ok()) << written.status();
  const PlainFile model = ReadPlainly(Contents(exported));
  EXPECT_EQ(model.tensors.at("dense").As<float>(), values.dense);
  EXPECT_EQ(model.tensors.at("dense").shape, (std::vector<std::uint64_t>{50, 100}));
  EXPECT_EQ(model.tensors.at("counters").As<std::int64_t>(), values.counters);
  EXPECT_EQ(model.tensors.at("sparse.keys").As<std::uint64_t>(), Training::Keys());
  EXPECT_EQ(model.tensors.at("sparse.values").As<float>(), values.sparse);
  EXPECT_EQ(model.tensors.at("ragged.widths").As<std::uint32_t>(), values.widths);
  EXPECT_EQ(model.tensors.at("ragged.values").As<double>(), values.ragged);
}

TEST_F(RestoreTest, ADamagedCheckpointIsRefusedAndItsFileNamed) {
  setup_.servers = 2;
  TrainAndSave();
  ASSERT_FALSE(path_.empty());
  const std::string file = path_ + "/shard-00004.safetensors";
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-3, std::ios::end)
      << 'x';
  setup_.config.restore = path_;
  auto cluster = LocalCluster::Start(setup_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_FALSE((*cluster)->RunWorkers([](Worker*) { ADD_FAILURE() << "it has started"; }).ok());
  const absl::Status over = (*cluster)->Finish();
  EXPECT_EQ(over.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(over.message()), ::testing::HasSubstr(file));
}

// A BSP table is saved as of the clock at which the caller waits, though other workers have gone
// on.
TEST_F(RestoreTest, AWorkerMayWaitForItInItsLoop) {
  auto cluster = LocalCluster::Start(setup_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    auto table = worker->CreateTable(TableSpec::Dense("w", {10}));
    ASSERT_TRUE(table.ok()) << table.status();
    const std::vector<float> gradient(10, 1.0f);
    for (int i = 0; i < 4; ++i) {
      if (worker->rank() == 0 && i == 2) Save(worker);
      EXPECT_TRUE(worker->Wait(table->Push(std::span<const float>(gradient))).ok());
      EXPECT_TRUE(worker->Clock().ok());
    }
  });
  EXPECT_TRUE(ran.ok()) << ran;
  ASSERT_FALSE(path_.empty());
  EXPECT_EQ(SavedClock(), 2u);
  EXPECT_TRUE((*cluster)->Finish().ok());
}

}  // namespace
}  // namespace leeway::tests
