// A cluster that goes on from the checkpoint of another one, with a worker that comes late.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/files/file_system.h"
#include "runtime/sim/sim_file_system.h"
#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::restored_cluster_test {
namespace {

class RestoredClusterTest : public PromiseTest {
 protected:
  using Files = std::map<std::string, std::string>;  // by path

  // Two servers and two workers, with these files on a disk that all share.
  void Begin(const std::string& restore, const Files& files) {
    SimCluster::Setup setup = Base(2, 2, 1, /*shards=*/4);
    // Processes of another cluster have other incarnations.
    setup.seed = restore.empty() ? 7 : 8;
    setup.config.restore = restore;
    cluster_ = std::make_unique<SimCluster>(setup);
    cluster_->world().ShareFolder(kSharedFolder);
    runtime::FileSystem* const disk = cluster_->world().files(kSharedFolder);
    for (const auto& [path, contents] : files) {
      ASSERT_TRUE(disk->CreateDirectories(path.substr(0, path.rfind('/'))).ok());
      ASSERT_TRUE(runtime::WriteFileAtomically(disk, path, contents).ok());
    }
    ready_ = 0;
    cluster_->Start(Role::kScheduler);
    for (const std::uint32_t rank : {0, 1}) cluster_->Start(Role::kServer, rank);
    for (const std::uint32_t rank : {0, 1}) StartWorker(rank);
    ASSERT_TRUE(Until([&] { return ready_ == 2; }, absl::Seconds(20)));
  }
  // Both push 1 in each of so many clocks.
  void Train(const Table& table, int clocks) {
    for (int i = 0; i < clocks; ++i) {
      const Op pushes[] = {Push(0, table, 1), Push(1, table, 1)};
      for (const Op& push : pushes) ASSERT_EQ(Wait(push), absl::OkStatus());
      for (const std::uint32_t rank : {0, 1}) Clock(rank);
    }
  }
  // The folder of the checkpoint.
  std::string Save() {
    std::optional<absl::StatusOr<std::string>> saved;
    core(0)->Checkpoint(kSavedFolder, absl::Minutes(2), [&](const auto& path) { saved = path; });
    EXPECT_TRUE(Until([&] { return saved.has_value(); }, absl::Minutes(3)));
    if (!saved.has_value() || !saved->ok()) return "";
    return **saved;
  }
  Files FilesIn(const std::string& folder) {
    runtime::FileSystem* const disk = cluster_->world().files(kSharedFolder);
    Files files;
    const std::vector<std::string> names = disk->List(folder).value();
    for (const std::string& name : names) {
      const std::string path = folder + "/" + name;
      files[path] = disk->Read(path).value();
    }
    return files;
  }
};

TEST_F(RestoredClusterTest, ALateWorkerEntersWhereTheOthersAre) {
  Begin("", {});
  Train(Create(Dense(Consistency::Bsp())), 4);
  const std::string folder = Save();
  ASSERT_NE(folder, "");
  Begin(folder, FilesIn(folder));
  EXPECT_EQ(core(0)->clock(), 4u);
  const Table table = Create(Dense(Consistency::Bsp()));
  Train(table, 3);

  cluster_->Kill(SimCluster::HostName(Role::kWorker, 1));
  StartWorker(1);
  ASSERT_TRUE(Until([&] { return ready_ == 3; }, absl::Seconds(30)));
  // In clock 7 the other one may have pushed already.
  ASSERT_GE(core(1)->clock(), 7u);
  ASSERT_LE(core(1)->clock(), 8u);
  while (core(0)->clock() < core(1)->clock()) Clock(0);
  Train(table, 2);
  const Pulled pulled = Pull(1, table);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_EQ(pulled.values, std::vector<float>(4, 2 * (4 + 3 + 2)));
}

}  // namespace
}  // namespace leeway::simulation::restored_cluster_test
