// In which order a server obeys what the scheduler says of checkpoints. It has no data threads
// here: each checkpoint has nothing to write.
#include "ps/control/server_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <variant>
#include <vector>

#include "runtime/sim/sim_world.h"

namespace leeway::ps::server_checkpoints_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ServerCheckpointsTest : public ::testing::Test {
 protected:
  template <class Message>
  void Hear(const Message& message) {
    loop_->loop()->Post([this, message] { checkpoints_.On(message); });
    world_.RunFor(absl::Seconds(1));
  }
  void Prepare(std::uint64_t checkpoint) {
    Hear(proto::CheckpointPrepare{.checkpoint = checkpoint});
  }
  void Cut(std::uint64_t checkpoint) {
    Hear(proto::CheckpointCut{.checkpoint = checkpoint, .clock = 3, .directory = "saved"});
  }
  std::vector<std::uint64_t> TakePrepared() { return std::exchange(prepared_, {}); }
  std::vector<std::uint64_t> TakeWritten() { return std::exchange(written_, {}); }

  void Said(const proto::AnyMessage& message) {
    if (const auto* it = std::get_if<proto::CheckpointPrepared>(&message)) {
      prepared_.push_back(it->checkpoint);
    } else if (const auto* written = std::get_if<proto::CheckpointWritten>(&message)) {
      written_.push_back(written->checkpoint);
    }
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("server");
  std::unique_ptr<runtime::LoopRunner> loop_ = host_->Spawn("control");
  int turns_ = 0;  // of the data threads
  std::vector<std::uint64_t> prepared_, written_;
  ServerCheckpoints checkpoints_{{.host = host_.get(),
                                  .loop = loop_->loop(),
                                  .on_every_thread =
                                      [this](const auto&, absl::AnyInvocable<void()> done) {
                                        ++turns_;
                                        done();
                                      },
                                  .tell_scheduler = [this](auto message) { Said(message); }}};
};

TEST_F(ServerCheckpointsTest, ARepeatedOrderIsAnsweredAgain) {
  Prepare(5);
  Prepare(5);
  EXPECT_THAT(TakePrepared(), ElementsAre(5, 5));
  Cut(5);
  EXPECT_THAT(TakeWritten(), ElementsAre(5));
  const int turns = turns_;
  Cut(5);
  EXPECT_THAT(TakeWritten(), ElementsAre(5));
  EXPECT_EQ(turns_, turns) << "nothing is begun again";
}

TEST_F(ServerCheckpointsTest, AFinishedCheckpointIsNotBegunAgain) {
  Prepare(5);
  Cut(5);
  TakePrepared();
  TakeWritten();
  Prepare(5);  // it is further already
  Prepare(4);
  Cut(4);
  EXPECT_THAT(TakePrepared(), IsEmpty());
  EXPECT_THAT(TakeWritten(), IsEmpty());
  Prepare(6);
  Cut(5);
  EXPECT_THAT(TakePrepared(), ElementsAre(6));
  EXPECT_THAT(TakeWritten(), IsEmpty());
  Cut(6);
  EXPECT_THAT(TakeWritten(), ElementsAre(6));
}

}  // namespace
}  // namespace leeway::ps::server_checkpoints_test
