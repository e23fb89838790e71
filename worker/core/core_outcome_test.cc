// Tests of the status of a failed push: whether servers may have applied it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::absl::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kIgnore = [](const proto::Request&) { return true; };

// Server 0 has shard 0, server 1 shard 1; the table has a block in each.
class CoreOutcomeTest : public testing::Test {
 protected:
  CoreOutcomeTest() {
    cluster_.Connect();
    table_ = cluster_.MakeTable(TableSpec::Dense("w", {2048}));
    EXPECT_TRUE(cluster_.Await(Push()).ok());  // the connections are up
    Forget();
  }

  std::shared_ptr<Operation> Push(Core::Terms terms = {}) {
    return cluster_.Push(table_, {}, ones_, terms);
  }
  void Refuse(std::uint32_t server, const absl::Status& why) {
    cluster_.servers[server]->edit = [why](const proto::Request&, proto::Reply* reply) {
      reply->result = why;
    };
  }
  void Forget() {
    for (auto& server : cluster_.servers) {
      server->arrived.clear();
      server->admitted.clear();
    }
  }
  std::size_t Arrived() const {
    std::size_t arrived = 0;
    for (const auto& server : cluster_.servers) arrived += server->arrived.size();
    return arrived;
  }

  TestCluster cluster_{{.servers = 2, .shards = 2}};
  const std::vector<float> ones_ = std::vector<float>(2048, 1);
  std::vector<float> got_ = std::vector<float>(2048);
  std::shared_ptr<const TableInfo> table_;
};

TEST_F(CoreOutcomeTest, WithoutTimeNothingIsSent) {
  for (const absl::Duration timeout :
       {absl::ZeroDuration(), absl::Seconds(-1), -absl::InfiniteDuration()}) {
    const std::shared_ptr<Operation> operations[] = {
        Push(Within(timeout)), cluster_.Pull(table_, {}, &got_, Within(timeout)),
        cluster_.PushPull(table_, ones_, &got_, Within(timeout))};
    for (const auto& operation : operations) {
      ASSERT_TRUE(operation->done());
      EXPECT_EQ(operation->status().code(), StatusCode::kDeadlineExceeded) << operation->status();
      EXPECT_THAT(std::string(operation->status().message()), HasSubstr("nothing was sent"));
    }
    std::vector<absl::Status> others;
    cluster_.core->Call(0, "echo", {runtime::Buffer::CopyOf("x")}, timeout,
                        [&](const auto& answer) { others.push_back(answer.status()); });
    cluster_.core->Barrier(Group::kWorkers, "b", timeout,
                           [&](const absl::Status& status) { others.push_back(status); });
    cluster_.core->Checkpoint("/somewhere", timeout, [&](const absl::StatusOr<std::string>& path) {
      others.push_back(path.status());
    });
    ASSERT_EQ(others.size(), 3u);
    for (const absl::Status& status : others) {
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    }
  }
  EXPECT_TRUE(cluster_.core->Clock().ok());
  cluster_.world.RunFor(absl::Seconds(5));
  EXPECT_EQ(Arrived(), 0u);
  EXPECT_TRUE(cluster_.scheduler->barriers.empty());
  EXPECT_TRUE(cluster_.scheduler->admins.empty());
}

TEST_F(CoreOutcomeTest, APushRefusedByAllServersIsNotApplied) {
  Refuse(0, absl::ResourceExhaustedError("LEEWAY_HELD_BYTES_MAX"));
  Refuse(1, absl::ResourceExhaustedError("LEEWAY_HELD_BYTES_MAX"));
  EXPECT_EQ(cluster_.Await(Push()).code(), StatusCode::kResourceExhausted);
}

TEST_F(CoreOutcomeTest, APushThatAPolicyDropsSucceedsAndSaysSo) {
  Refuse(1, absl::CancelledError("late"));
  const auto push = Push();
  EXPECT_TRUE(cluster_.Await(push).ok()) << push->status();
  EXPECT_EQ(push->info.parts_dropped, 1u);
  EXPECT_EQ(cluster_.core->stats().parts_dropped, 1u);
  // There is nothing to pull then.
  const auto push_pull = cluster_.PushPull(table_, ones_, &got_, {});
  EXPECT_EQ(cluster_.Await(push_pull).code(), StatusCode::kUnknown) << push_pull->status();
  EXPECT_EQ(push_pull->info.parts_dropped, 1u);
  Refuse(0, absl::CancelledError("late"));
  EXPECT_EQ(cluster_.Await(cluster_.PushPull(table_, ones_, &got_, {})).code(),
            StatusCode::kCancelled);
  EXPECT_EQ(cluster_.core->stats().parts_dropped, 4u);
}

TEST_F(CoreOutcomeTest, APushRefusedByOneServerMayBeAppliedInPart) {
  Refuse(1, absl::ResourceExhaustedError("LEEWAY_HELD_BYTES_MAX"));
  const absl::Status status = cluster_.Await(Push());
  EXPECT_EQ(status.code(), StatusCode::kUnknown) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("at server 1 thread 0"), HasSubstr("LEEWAY_HELD_BYTES_MAX"),
            HasSubstr("a part of the push may have been applied"),
            HasSubstr("of its 2 parts 1 are, 1 was refused"), HasSubstr("RESOURCE_EXHAUSTED")));
}

TEST_F(CoreOutcomeTest, APushUnderWayAtItsDeadlineIsAppliedAtMostOnce) {
  for (auto& server : cluster_.servers) server->intercept = kIgnore;
  const absl::Status status = cluster_.Await(Push(Within(absl::Seconds(2))));
  EXPECT_EQ(status.code(), StatusCode::kUnknown) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("took longer than 2s"), HasSubstr("DEADLINE_EXCEEDED"),
                    HasSubstr("of its 2 parts 0 are, 0 were refused, and of 2 it is not known")));
  for (auto& server : cluster_.servers) server->intercept = nullptr;
  cluster_.RunUntil([&] {
    return cluster_.servers[0]->admitted.size() == 1 && cluster_.servers[1]->admitted.size() == 1;
  });
  for (const auto& server : cluster_.servers) {
    for (const auto& [block, values] : server->blocks) EXPECT_EQ(values[0], 2);
  }
}

TEST_F(CoreOutcomeTest, APullAtItsDeadlineExceedsIt) {
  for (auto& server : cluster_.servers) server->intercept = kIgnore;
  const auto pull = cluster_.Pull(table_, {}, &got_, Within(absl::Seconds(2)));
  EXPECT_EQ(cluster_.Await(pull).code(), StatusCode::kDeadlineExceeded);
}

// The pull waited too long; the push was applied.
TEST_F(CoreOutcomeTest, APushPullWithALatePullHasPushed) {
  for (auto& server : cluster_.servers) {
    server->edit = [](const proto::Request&, proto::Reply* reply) {
      reply->result = absl::DeadlineExceededError("waiting for worker 3");
    };
  }
  const absl::Status status = cluster_.Await(cluster_.PushPull(table_, ones_, &got_));
  EXPECT_EQ(status.code(), StatusCode::kUnknown) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("waiting for worker 3"));
}

TEST_F(CoreOutcomeTest, WithOneShardLostTheRestMayBeApplied) {
  cluster_.servers[1]->intercept = kIgnore;
  const auto push = Push();
  cluster_.world.RunFor(absl::Milliseconds(10));
  cluster_.KillServer(1, "gone");
  const absl::Status status = cluster_.Await(push);
  EXPECT_EQ(status.code(), StatusCode::kUnknown) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("gone"), HasSubstr("UNAVAILABLE")));
}

TEST_F(CoreOutcomeTest, WithAllShardsLostNothingIsApplied) {
  for (auto& server : cluster_.servers) server->intercept = kIgnore;
  const auto push = Push();
  cluster_.world.RunFor(absl::Milliseconds(10));
  cluster_.KillServer(0, "gone");
  // The other part is still sent until it is answered.
  EXPECT_EQ(cluster_.Await(push).code(), StatusCode::kUnknown);
  cluster_.KillServer(1, "gone");
  const auto again = Push();
  ASSERT_TRUE(again->done());
  EXPECT_EQ(again->status().code(), StatusCode::kUnavailable);
}

TEST_F(CoreOutcomeTest, APushUnderWayAtTheEndMayBeApplied) {
  for (auto& server : cluster_.servers) server->intercept = kIgnore;
  const auto push = Push();
  cluster_.world.RunFor(absl::Milliseconds(10));
  cluster_.scheduler->Tell(proto::Shutdown{absl::UnavailableError("it ends")});
  EXPECT_EQ(cluster_.Await(push).code(), StatusCode::kUnknown);
}

// The window is full, so nothing of the second push is sent.
TEST(CoreOutcomeWindowTest, APushUnsentAtItsDeadlineIsForgotten) {
  TestCluster cluster({.servers = 1, .shards = 1, .configure = [](Config* config) {
                         config->push_window_bytes = 1024;
                       }});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {512}));
  cluster.servers[0]->intercept = kIgnore;
  const std::vector<float> ones(512, 1);
  const auto sent = cluster.Push(table, {}, ones);
  const auto waiting = cluster.Push(table, {}, ones, Within(absl::Seconds(1)));
  const absl::Status status = cluster.Await(waiting);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  cluster.servers[0]->intercept = nullptr;
  EXPECT_TRUE(cluster.Await(sent).ok());
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {}, ones)).ok());
  EXPECT_EQ(cluster.servers[0]->admitted.size(), 2u);
  EXPECT_EQ(cluster.servers[0]->blocks.at(0)[0], 2);
  EXPECT_TRUE(cluster.core->Clock().ok());
  cluster.RunUntil([&] { return !cluster.servers[0]->ticks.empty(); });
  cluster.ExpectNoHoles();
}

// Pushes that were sent, and whose deadlines have passed, are still sent until they are answered.
TEST(CoreOutcomeQueueTest, AbandonedPushesMayTakeNoMoreThanTheSendQueue) {
  TestCluster cluster({.servers = 1, .shards = 1, .configure = [](Config* config) {
                         config->send_queue_bytes_max = 10'000;
                       }});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {512}));
  cluster.servers[0]->intercept = kIgnore;
  const std::vector<float> ones(512, 1);
  int taken = 0;
  absl::Status last;
  while (taken < 20) {
    const auto push = cluster.Push(table, {}, ones, Within(absl::Seconds(1)));
    last = cluster.Await(push);
    if (absl::IsResourceExhausted(last)) break;
    ++taken;
  }
  EXPECT_EQ(taken, 5) << "2048 bytes each";
  EXPECT_THAT(std::string(last.message()), HasSubstr("LEEWAY_SEND_QUEUE_BYTES_MAX"));
  cluster.servers[0]->intercept = nullptr;
  cluster.RunUntil([&] { return cluster.servers[0]->admitted.size() == 5; });
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {}, ones)).ok()) << "they have been answered";
}

}  // namespace
}  // namespace leeway::worker
