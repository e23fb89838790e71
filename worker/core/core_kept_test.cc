// Tests of the core against scripted peers: the state that it keeps, and the answers that count.
#include <cmath>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker::core_kept_test {
namespace {

constexpr std::size_t kOneBlock = 1024;

TableSpec Asynchronous(std::uint64_t elements) {
  TableSpec spec = TableSpec::Dense("async", {elements});
  spec.consistency = Consistency::Asp();
  return spec;
}

TableSpec Coded() {
  TableSpec spec = TableSpec::Dense("coded", {kOneBlock});
  spec.codec = "onebit";
  return spec;
}

class CoreKeptTest : public ::testing::Test {
 protected:
  CoreKeptTest() { cluster_.Connect(); }
  void RunABit() { cluster_.world.RunFor(absl::Milliseconds(20)); }
  double Kept() const {
    const SavedResiduals residuals = cluster_.core->Residuals();
    double sum = 0;
    for (const float value : residuals.at("coded").blocks.at(0).residual) sum += std::fabs(value);
    return sum;
  }

  TestCluster cluster_{{.servers = 2, .shards = 1}};
};

// The shard has moved, and an answer of its former head comes late.
TEST_F(CoreKeptTest, AnAnswerOfAFormerHeadDoesNotCount) {
  const auto table = cluster_.MakeTable(Asynchronous(kOneBlock));
  proto::Request asked;
  for (auto& server : cluster_.servers) {
    server->intercept = [&](const proto::Request& request) {
      asked = request;
      return true;
    };
  }
  const std::vector<float> values(kOneBlock, 1);
  const auto push = cluster_.Push(table, {}, values);
  RunABit();
  ASSERT_GT(asked.id.sequence, 0u);
  cluster_.scheduler->map.owners[0].server_rank = 1;
  cluster_.PublishNewEpoch();
  RunABit();
  cluster_.servers[0]->Reply(asked, absl::OkStatus());
  RunABit();
  EXPECT_FALSE(push->done());
  for (auto& server : cluster_.servers) server->intercept = nullptr;
  EXPECT_TRUE(cluster_.Await(push).ok());
  EXPECT_EQ(cluster_.servers[1]->blocks.at(0)[0], 1);
}

TEST_F(CoreKeptTest, OpeningATableAgainLosesNoResidual) {
  const auto table = cluster_.MakeTable(Coded());
  std::vector<float> values(kOneBlock);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  ASSERT_TRUE(cluster_.Await(cluster_.Push(table, {}, values)).ok());
  const double kept = Kept();
  EXPECT_GT(kept, 100);
  cluster_.MakeTable(Coded());
  EXPECT_EQ(Kept(), kept);
}

TEST_F(CoreKeptTest, ResidualsOfAnotherShapeAreRefusedAndNothingIsTaken) {
  const auto table = cluster_.MakeTable(Coded());
  std::vector<float> values(kOneBlock, 0.5f);
  values[0] = 7;
  ASSERT_TRUE(cluster_.Await(cluster_.Push(table, {}, values)).ok());
  const double kept = Kept();
  SavedTable other;
  other.blocks[0].residual = {1, 2, 3};
  EXPECT_EQ(cluster_.core->TakeResiduals({{"coded", other}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Kept(), kept);
}

// Other workers wait for this one until servers know that it has ended its clock.
TEST_F(CoreKeptTest, LeavingWaitsForTheAcknowledgementOfTheLastTick) {
  const auto table = cluster_.MakeTable(Asynchronous(kOneBlock));
  for (auto& server : cluster_.servers) {
    server->drop_tick = [](const proto::ClockTick&) { return true; };
  }
  ASSERT_TRUE(cluster_.core->Clock().ok());
  bool left = false;
  cluster_.core->Leave(absl::Minutes(1), [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    left = true;
  });
  cluster_.world.RunFor(absl::Seconds(5));
  EXPECT_FALSE(left);
  for (auto& server : cluster_.servers) server->drop_tick = nullptr;
  cluster_.RunUntil([&] { return left; });
}

TEST(CorePullInfoTest, HasTheClockOfTheOldestAnswer) {
  for (const std::uint64_t first : {3, 5}) {
    TestCluster cluster({.servers = 2, .shards = 2});
    cluster.Connect();
    const auto table = cluster.MakeTable(Asynchronous(2 * kOneBlock));
    for (std::uint64_t i = 0; i < 2; ++i) {
      cluster.servers[i]->edit = [clock = i == 0 ? first : 8 - first](const proto::Request&,
                                                                      proto::Reply* reply) {
        reply->slowest_clock = clock;
      };
    }
    std::vector<float> got(2 * kOneBlock);
    const auto pull = cluster.Pull(table, {}, &got);
    ASSERT_TRUE(cluster.Await(pull).ok()) << pull->status();
    EXPECT_EQ(pull->info.clock, 3u);
  }
}

// So of two pulls of the same elements the later one's is not smaller.
TEST(CorePullInfoTest, ItsVersionIsTheSumOfAllAnswers) {
  TestCluster cluster({.servers = 2, .shards = 2});
  cluster.Connect();
  const auto table = cluster.MakeTable(Asynchronous(2 * kOneBlock));
  for (std::uint64_t i = 0; i < 2; ++i) {
    cluster.servers[i]->edit = [version = 3 + i](const proto::Request&, proto::Reply* reply) {
      reply->version = version;
    };
  }
  std::vector<float> got(2 * kOneBlock);
  const auto pull = cluster.Pull(table, {}, &got);
  ASSERT_TRUE(cluster.Await(pull).ok()) << pull->status();
  EXPECT_EQ(pull->info.version, 7u);
}

}  // namespace
}  // namespace leeway::worker::core_kept_test
