// Tests of the core against scripted peers: the end of operations, and tables, barriers and calls.
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- the end of operations ----

TEST(CoreEndTest, DeadlinesNameTheAwaitedServers) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("weights", {16}));
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  std::vector<float> got(16, 3);
  const absl::Time start = cluster.world.Now();
  const absl::Status status =
      cluster.Await(cluster.Pull(table, {}, &got, Within(absl::Seconds(5))));
  EXPECT_EQ(cluster.world.Now() - start, absl::Seconds(5));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("pull of table 'weights' took longer than 5s"),
            HasSubstr("1 of 1 requests are unanswered"),
            HasSubstr(
                "server 0 thread 0 (sim://server0/data) for 5s, sent 2 times, last heard 5s ago"),
            HasSubstr("LEEWAY_REQUEST_TIMEOUT_MS")));
  EXPECT_EQ(got, std::vector<float>(16, 3));
}

TEST(CoreEndTest, EachOperationEndsAtItsOwnDeadline) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  std::vector<float> got(16);
  const auto first = cluster.Pull(table, {}, &got, Within(absl::Seconds(2)));
  const auto second = cluster.Pull(table, {}, &got, Within(absl::Seconds(5)));
  cluster.world.RunFor(absl::Seconds(3));
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(second->done());
  cluster.world.RunFor(absl::Seconds(3));
  EXPECT_TRUE(second->done());
}

TEST(CoreEndTest, TheServerGetsNineTenthsOfTheTimeout) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  cluster.servers[0]->intercept = [&](const proto::Request& request) {
    EXPECT_NEAR(static_cast<double>(request.timeout_ms), 9000, 1);
    cluster.servers[0]->Reply(request,
                              absl::DeadlineExceededError("waiting for worker 3 at clock 2"));
    return true;
  };
  std::vector<float> got(16);
  const absl::Status status =
      cluster.Await(cluster.Pull(table, {}, &got, Within(absl::Seconds(10))));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("pull of table 'w' at server 0 thread 0"),
                    HasSubstr("waiting for worker 3 at clock 2")));
}

TEST(CoreEndTest, AbandonedRequestsLeaveNoHoleAndKeepTheirData) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  const std::vector<float> zeros(16);
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {}, zeros)).ok());  // the connection is up
  cluster.network.Cut("worker", "server0");
  auto values = std::make_unique<std::vector<float>>(16, 7.0f);
  auto got = std::make_unique<std::vector<float>>(16);
  const auto push = cluster.Push(table, {}, *values, Within(absl::Seconds(1)));
  const auto pull = cluster.Pull(table, {}, got.get(), Within(absl::Seconds(1)));
  EXPECT_EQ(cluster.Await(push).code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(cluster.Await(pull).code(), absl::StatusCode::kDeadlineExceeded);
  std::fill(values->begin(), values->end(), -1.0f);  // the user's again
  values.reset();
  got.reset();
  cluster.network.HealAll();
  std::vector<float> later(16);
  EXPECT_TRUE(cluster.Await(cluster.Pull(table, {}, &later)).ok());
  EXPECT_EQ(later, std::vector<float>(16, 7.0f));
  EXPECT_EQ(cluster.servers[0]->admitted.size(), 4u);
  EXPECT_EQ(cluster.servers[0]->admitted[1].request.timeout_ms,
            0u);  // must not be refused for its age
  EXPECT_EQ(cluster.servers[0]->admitted[2].request.timeout_ms, 1u);  // must not wait
  cluster.ExpectNoHoles();
}

// The values are gathered when the request is sent, which here is after the operation's end.
TEST(CoreEndTest, RowsGatheredAfterTheDeadlineKeepTheirValues) {
  TestCluster cluster({.servers = 1, .shards = 1, .configure = [](Config* config) {
                         config->push_window_bytes = 1024;
                       }});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Sparse("e", 2));
  std::vector<std::uint64_t> keys(50);
  std::iota(keys.begin(), keys.end(), 0);
  const std::vector<float> first(100, 1);
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  const auto sent = cluster.Push(table, keys, first);
  auto values = std::make_unique<std::vector<float>>(100, 7.0f);
  const auto waiting = cluster.Push(table, keys, *values, Within(absl::Seconds(1)));
  EXPECT_TRUE(cluster.core->Clock().ok());  // gives it a number: it cannot be forgotten
  EXPECT_EQ(cluster.Await(waiting).code(), absl::StatusCode::kUnknown);
  ASSERT_EQ(cluster.servers[0]->arrived.size(), 1u);
  std::fill(values->begin(), values->end(), -1.0f);  // the user's again
  values.reset();
  cluster.servers[0]->intercept = nullptr;
  EXPECT_TRUE(cluster.Await(sent).ok());
  cluster.RunUntil([&] { return cluster.servers[0]->admitted.size() == 2; });
  EXPECT_EQ(cluster.servers[0]->rows.at(49), std::vector<float>(2, 8.0f));
  cluster.ExpectNoHoles();
}

TEST(CoreEndTest, ADeadServerFailsItsRequestsWithTheReason) {
  TestCluster cluster({.servers = 2, .shards = 2});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {2048}));
  for (auto& server : cluster.servers) {
    server->intercept = [](const proto::Request&) { return true; };
  }
  const std::vector<float> values(2048);
  const auto push = cluster.Push(table, {}, values);
  cluster.world.RunFor(absl::Milliseconds(10));
  cluster.KillServer(1, "not heard for 10s");
  const absl::Time start = cluster.world.Now();
  const absl::Status status = cluster.Await(push);
  EXPECT_LT(cluster.world.Now() - start, absl::Seconds(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);  // server 0 may have its part
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("push to table 'w'"), HasSubstr("server 1"), HasSubstr("not heard for 10s")));
  // New operations on it fail at once; the living server goes on without a hole.
  const auto again = cluster.Push(table, {}, values);
  ASSERT_TRUE(again->done());
  EXPECT_EQ(again->status().code(), absl::StatusCode::kUnavailable);
  cluster.servers[0]->intercept = nullptr;
  cluster.RunUntil([&] { return !cluster.servers[0]->admitted.empty(); });
  cluster.ExpectNoHoles();
}

TEST(CoreEndTest, ABrokenConnectionIsReplacedWithoutLoss) {
  TestCluster cluster({.servers = 1, .shards = 2});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {2048}));
  const std::vector<float> values(2048, 1);
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {}, values)).ok());
  const auto push = cluster.Push(table, {}, values);
  cluster.servers[0]->Restart();
  EXPECT_TRUE(cluster.Await(push).ok());
  EXPECT_EQ(cluster.servers[0]->blocks.at(1)[0], 2);
  cluster.ExpectNoHoles();
}

TEST(CoreEndTest, AStaleReplyOfALyingServerIsRefused) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  TableSpec spec = TableSpec::Dense("w", {16});
  spec.consistency = Consistency::Ssp(1);
  const auto table = cluster.MakeTable(spec);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(cluster.core->Clock().ok());
  cluster.servers[0]->edit = [](const proto::Request&, proto::Reply* reply) {
    reply->slowest_clock = 2;
    reply->staleness = 0;
  };
  std::vector<float> got(16);
  const absl::Status status = cluster.Await(cluster.Pull(table, {}, &got));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("staleness bound violated: the values are 3 clocks old"));
  EXPECT_EQ(cluster.core->stats().staleness_violations, 1u);
  EXPECT_EQ(cluster.core->stats().max_staleness, 3u);
}

TEST(CoreEndTest, AReplyOfAnotherSizeIsRefused) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  cluster.servers[0]->edit = [](const proto::Request&, proto::Reply* reply) {
    if (proto::HasPull(reply->op)) reply->elements = 64;
  };
  std::vector<float> got(16, 5);
  const absl::Status status = cluster.Await(cluster.Pull(table, {}, &got));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("64 elements where 16 were asked for"));
  EXPECT_EQ(got, std::vector<float>(16, 5));
}

// ---- tables, barriers, calls, leaving ----

TEST(CoreEndTest, TablesAreRequestedUntilTheSchedulerAnswers) {
  TestCluster cluster;
  cluster.Connect();
  cluster.scheduler->answer_tables = false;
  absl::Status status;
  bool done = false;
  const auto keep = [&](absl::StatusOr<std::shared_ptr<const TableInfo>> result) {
    status = result.status();
    done = true;
  };
  cluster.core->CreateTable(TableSpec::Dense("w", {16}), absl::Seconds(30), keep);
  cluster.world.RunFor(absl::Seconds(5));
  cluster.scheduler->answer_tables = true;
  cluster.RunUntil([&] { return done; });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(cluster.scheduler->table_requests, 3);

  done = false;
  cluster.core->OpenTable("none", absl::Seconds(30), keep);
  cluster.RunUntil([&] { return done; });
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);

  done = false;
  cluster.scheduler->answer_tables = false;
  cluster.core->OpenTable("w", absl::Seconds(3), keep);
  cluster.RunUntil([&] { return done; });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the scheduler at sim://scheduler/main"));
}

TEST(CoreEndTest, BarriersAreNumberedByNameAndGroup) {
  TestCluster cluster;
  cluster.Connect();
  int released = 0;
  for (const char* name : {"a", "a", "b"}) {
    cluster.core->Barrier(Group::kWorkers, name, absl::Seconds(10),
                          [&](const absl::Status& status) {
                            EXPECT_TRUE(status.ok());
                            ++released;
                          });
  }
  cluster.RunUntil([&] { return released == 3; });
  ASSERT_EQ(cluster.scheduler->barriers.size(), 3u);
  EXPECT_EQ(cluster.scheduler->barriers[1].number, 2u);
  EXPECT_EQ(cluster.scheduler->barriers[2].number, 1u);
  EXPECT_EQ(cluster.scheduler->barriers[2].timeout_ms, 10000u);
}

// A barrier lasts as long as the caller says; the scheduler's answer, which has the names, may take
// a little longer.
TEST(CoreEndTest, ABarrierThatNobodyOpensEndsWithTheSchedulersWords) {
  TestCluster cluster;
  cluster.Connect();
  cluster.scheduler->release_barriers = false;
  std::optional<absl::Status> end;
  cluster.core->Barrier(Group::kWorkers, "b", absl::Seconds(10),
                        [&](const absl::Status& status) { end = status; });
  cluster.world.RunFor(absl::Milliseconds(10010));
  ASSERT_EQ(end, std::nullopt);
  cluster.scheduler->Tell(proto::BarrierRelease{
      .name = "b", .number = 1, .result = absl::DeadlineExceededError("without worker 3")});
  cluster.world.RunFor(absl::Milliseconds(100));
  ASSERT_TRUE(end.has_value());
  EXPECT_THAT(std::string(end->message()), HasSubstr("without worker 3"));
  end.reset();
  cluster.core->Barrier(Group::kWorkers, "b", absl::Seconds(10),
                        [&](const absl::Status& status) { end = status; });
  cluster.world.RunFor(absl::Seconds(12));
  ASSERT_TRUE(end.has_value());  // without a word
  EXPECT_EQ(end->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(CoreEndTest, CallsAreAnsweredOrFailWithTheirConnection) {
  TestCluster cluster;
  cluster.Connect();
  cluster.servers[1]->handler = [](const std::string& request) -> absl::StatusOr<std::string> {
    if (request == "bad") return absl::OutOfRangeError("too bad");
    return request + "!";
  };
  std::vector<absl::StatusOr<std::string>> results;
  const auto keep = [&](const absl::StatusOr<Calls::Frames>& frames) {
    if (frames.ok()) return results.push_back(std::string(frames->at(0).text()));
    results.push_back(frames.status());
  };
  const auto call = [&](std::uint32_t server, const char* text) {
    cluster.core->Call(server, "h", {runtime::Buffer::CopyOf(text)}, absl::Seconds(5), keep);
  };
  call(1, "hello");
  call(1, "bad");
  cluster.RunUntil([&] { return results.size() == 2; });
  EXPECT_EQ(results[0].value(), "hello!");
  EXPECT_EQ(results[1].status().code(), absl::StatusCode::kOutOfRange);
  call(0, "nobody answers");
  cluster.RunUntil([&] { return results.size() == 3; });
  EXPECT_EQ(results[2].status().code(), absl::StatusCode::kDeadlineExceeded);
  call(0, "and then");
  cluster.world.RunFor(absl::Milliseconds(10));
  cluster.servers[0]->Restart();
  cluster.RunUntil([&] { return results.size() == 4; });
  EXPECT_EQ(results[3].status().code(), absl::StatusCode::kUnavailable);
  call(9, "where");
  EXPECT_EQ(results.at(4).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CoreEndTest, CallsToADeadServerFailAtOnce) {
  TestCluster cluster;
  cluster.Connect();
  absl::Status result;
  cluster.core->Call(1, "h", {runtime::Buffer::CopyOf("text")}, absl::Seconds(5),
                     [&](const auto& answer) { result = answer.status(); });
  const absl::Time start = cluster.world.Now();
  cluster.KillServer(1, "not heard for 10s");
  cluster.RunUntil([&] { return !result.ok(); });
  EXPECT_LT(cluster.world.Now() - start, absl::Seconds(1));
  EXPECT_EQ(result.code(), absl::StatusCode::kUnavailable);
}

TEST(CoreEndTest, LeavingWaitsForPushesAndThenRefuses) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  int drops = 1;
  cluster.servers[0]->intercept = [&](const proto::Request&) { return drops-- > 0; };
  const std::vector<float> values(16, 1);
  const auto push = cluster.Push(table, {}, values);
  bool left = false;
  cluster.core->Leave(absl::Seconds(30), [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    left = true;
  });
  EXPECT_EQ(cluster.Push(table, {}, values)->status().code(),
            absl::StatusCode::kFailedPrecondition);
  cluster.RunUntil([&] { return left; });
  EXPECT_TRUE(push->done() && push->status().ok());
  EXPECT_TRUE(cluster.scheduler->left);
}

TEST(CoreEndTest, TwoThatLeaveWaitForTheSameEndAndForTheShorterTimeout) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  const std::vector<float> values(16, 1);
  cluster.Push(table, {}, values);
  const absl::Time start = cluster.world.Now();
  int left = 0;
  const auto count = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(cluster.scheduler->left);
    ++left;
  };
  cluster.core->Leave(absl::Seconds(30), count);
  cluster.core->Leave(absl::Seconds(3), count);
  cluster.RunUntil([&] { return left == 2; });
  EXPECT_GE(cluster.world.Now() - start, absl::Seconds(3));
  EXPECT_LT(cluster.world.Now() - start, absl::Seconds(5));
}

TEST(CoreEndTest, TheEndOfTheClusterEndsEverything) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  const std::vector<float> values(16);
  const auto push = cluster.Push(table, {}, values);
  cluster.scheduler->Tell(proto::Shutdown{absl::AbortedError("worker 1 failed")});
  const absl::Status status = cluster.Await(push);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 1 failed"));
  EXPECT_FALSE(cluster.core->Clock().ok());
}

TEST(CoreEndTest, AnIncompleteClusterIsNamedAtTheDeadline) {
  TestCluster cluster(
      {.configure = [](Config* config) { config->connect_timeout = absl::Seconds(20); }});
  cluster.scheduler->map.epoch = 0;
  cluster.scheduler->map.owners.clear();
  cluster.scheduler->map.servers.pop_back();
  absl::Status ready;
  bool done = false;
  cluster.core->Start([&](const absl::Status& status) {
    ready = status;
    done = true;
  });
  const absl::Time start = cluster.world.Now();
  cluster.RunUntil([&] { return done; });
  EXPECT_LT(cluster.world.Now() - start, absl::Milliseconds(20'100));
  EXPECT_EQ(ready.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(ready.message()), AllOf(HasSubstr("within 20s"), HasSubstr("server 1"),
                                                  HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS")));
}

}  // namespace
}  // namespace leeway::worker
