#include "tests/simulation/checkpoint_times.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "proto/encoding/encoding.h"

namespace leeway::simulation::checkpoint_times_test {
namespace {

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

class CheckpointTimesTest : public testing::Test {
 protected:
  void Hear(const std::string& from, const proto::AnyMessage& message, int seconds) {
    van::Message raw;
    raw.header = proto::Encode(message);
    times_.Hear(van::Overheard(from, "", {}, std::move(raw)), At(seconds));
  }
  void Cut(std::uint64_t id, const std::string& directory, std::uint64_t clock, int seconds) {
    Hear("scheduler",
         proto::CheckpointCut{.checkpoint = id, .clock = clock, .directory = directory}, seconds);
  }
  void Written(const std::string& server, std::uint64_t id, int seconds,
               const absl::Status& result = absl::OkStatus()) {
    Hear(server, proto::CheckpointWritten{.checkpoint = id, .result = result}, seconds);
  }
  absl::Time WrittenAt(const std::string& name, std::uint64_t clock) const {
    checkpoint::Manifest manifest;
    manifest.name = name;
    manifest.clock = clock;
    return times_.WrittenAt(manifest);
  }

  CheckpointTimes times_;
};

TEST_F(CheckpointTimesTest, TheLastServersFirstWordCounts) {
  Cut(1, "/saved/ckpt-1", 9, 1);
  Written("server0", 1, 2);
  Cut(1, "/saved/ckpt-1", 9, 3);
  Written("server1", 1, 4);
  Written("server0", 1, 5);
  EXPECT_EQ(WrittenAt("ckpt-1", 9), At(4));
}

TEST_F(CheckpointTimesTest, OtherAttemptsDoNotCount) {
  Cut(1, "/saved/ckpt-1", 9, 1);
  Written("server0", 1, 2);
  Written("server1", 1, 3, absl::AbortedError("epoch 4 has begun"));
  Cut(2, "/saved/ckpt-1", 9, 4);
  Written("server1", 2, 5);
  Written("server0", 2, 6);
  Cut(3, "/saved/ckpt-1", 10, 7);
  Written("server0", 3, 8);
  Cut(4, "/saved/other-ckpt-1", 9, 9);
  Written("server0", 4, 10);
  EXPECT_EQ(WrittenAt("ckpt-1", 9), At(6));
  EXPECT_EQ(WrittenAt("ckpt-2", 9), absl::InfinitePast());
}

}  // namespace
}  // namespace leeway::simulation::checkpoint_times_test
