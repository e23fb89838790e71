#include "ps/control/restore_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "runtime/sim/sim_file_system.h"
#include "runtime/sim/sim_world.h"

namespace leeway::ps {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] = "saved/ckpt-00000007";

class RestoreJobTest : public ::testing::Test {
 protected:
  // A checkpoint of no tables; its one shard belongs to somebody else.
  std::uint64_t PutCheckpoint(std::uint64_t clock) {
    runtime::FileSystem* const files = host_->files();
    checkpoint::Manifest manifest;
    manifest.name = checkpoint::CheckpointName(7);
    manifest.clock = clock;
    manifest.num_shards = 1;
    manifest.block_bytes = 4096;
    manifest.files = {{.name = checkpoint::ShardFileName(0)}};
    EXPECT_TRUE(checkpoint::StartCheckpoint(files, kPath).ok());
    EXPECT_TRUE(checkpoint::FinishCheckpoint(files, kPath, &manifest).ok());
    return manifest.checksum;
  }

  absl::Status Restore(std::uint64_t checksum) {
    std::optional<absl::Status> result;
    auto job = std::make_shared<RestoreJob>(
        RestoreJob::Setup{.files = host_->files(),
                          .loop = loop_->loop(),
                          .reader = loop_->loop(),
                          .on_every_thread = [](auto, absl::AnyInvocable<void()> done) { done(); },
                          .tell_scheduler =
                              [&](const proto::AnyMessage& message) {
                                result = std::get<proto::RestoreShardsReply>(message).result;
                              }},
        proto::RestoreShards{.request = 1, .directory = kPath, .checksum = checksum});
    job->Start();
    world_.RunFor(absl::Seconds(1));
    return result.value_or(absl::DeadlineExceededError("no reply"));
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("server");
  std::unique_ptr<runtime::LoopRunner> loop_ = host_->Spawn("control");
};

TEST_F(RestoreJobTest, OnlyTheCheckpointThatTheSchedulerHasReadIsTaken) {
  const std::uint64_t meant = PutCheckpoint(41);
  // It goes on to the files, which are not there.
  EXPECT_THAT(std::string(Restore(meant).message()), HasSubstr("shard-00000"));

  ASSERT_TRUE(checkpoint::RemoveCheckpoint(host_->files(), kPath).ok());
  PutCheckpoint(42);
  const absl::Status refused = Restore(meant);
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is another checkpoint here"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("LEEWAY_RESTORE"));
}

// The scheduler asks until it is answered.
TEST_F(RestoreJobTest, ARepeatedOrderIsAnsweredAgain) {
  PutCheckpoint(41);
  int replies = 0;
  const auto job = std::make_shared<RestoreJob>(
      RestoreJob::Setup{.files = host_->files(),
                        .loop = loop_->loop(),
                        .reader = loop_->loop(),
                        .on_every_thread = [](auto, absl::AnyInvocable<void()> done) { done(); },
                        .tell_scheduler = [&](const proto::AnyMessage&) { ++replies; }},
      proto::RestoreShards{.request = 1, .directory = kPath, .checksum = 0});
  job->AnswerAgain();
  EXPECT_EQ(replies, 0) << "it has not ended";
  job->Start();
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(replies, 1);
  job->AnswerAgain();
  EXPECT_EQ(replies, 2);
}

}  // namespace
}  // namespace leeway::ps
