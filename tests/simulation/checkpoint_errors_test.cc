// Servers whose checkpoints cannot be written, and with several shards in one checkpoint.
#include <optional>

#include "runtime/sim/sim_file_system.h"
#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::checkpoint_errors_test {
namespace {

class CheckpointErrorsTest : public PromiseTest {
 protected:
  // One server with four shards, and a disk that all share.
  void Begin() {
    SimCluster::Setup setup = Base(1, 1, 1, /*shards=*/4);
    setup.config.checkpoint_timeout = absl::Minutes(1);
    cluster_ = std::make_unique<SimCluster>(setup);
    cluster_->world().ShareFolder(kSharedFolder);
    cluster_->Start(Role::kScheduler);
    cluster_->Start(Role::kServer, 0);
    StartWorker(0);
    ASSERT_TRUE(Until([&] { return ready_ == 1; }, absl::Seconds(20)));
    ASSERT_TRUE(Wait(Push(0, Create(Dense(Consistency::Asp())), 1)).ok());
  }
  absl::Status Save() {
    std::optional<absl::Status> saved;
    core(0)->Checkpoint("/shared/saved", absl::Minutes(2),
                        [&](const absl::StatusOr<std::string>& path) { saved = path.status(); });
    EXPECT_TRUE(Until([&] { return saved.has_value(); }, absl::Minutes(3)));
    return saved.value_or(absl::UnknownError("not answered"));
  }
};

TEST_F(CheckpointErrorsTest, AllShardsOfAServerAreInIt) {
  Begin();
  const absl::Time begun = Now();
  EXPECT_EQ(Save(), absl::OkStatus());
  EXPECT_LT(Now() - begun, absl::Seconds(5));
}

TEST_F(CheckpointErrorsTest, AFullDiskIsToldAtOnce) {
  Begin();
  cluster_->world().files(kSharedFolder)->SetFaults({.bytes_max = 10});
  const absl::Time begun = Now();
  EXPECT_EQ(Save().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(Now() - begun, absl::Seconds(5));
  cluster_->world().files(kSharedFolder)->SetFaults({});
  EXPECT_EQ(Save(), absl::OkStatus());
}

}  // namespace
}  // namespace leeway::simulation::checkpoint_errors_test
