// Tests of the core against scripted peers: the order of requests by priority, and its limits.
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/slicing/slice.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

constexpr std::size_t kBlocks = 256;
constexpr std::size_t kBlockElements = 1024;
constexpr std::size_t kSize = kBlocks * kBlockElements;

TableSpec Asynchronous(TableSpec spec) {
  spec.consistency = Consistency::Asp();
  return spec;
}

// One server and a window of 16 blocks, so that most pushes wait.
class PriorityTest : public ::testing::Test {
 protected:
  explicit PriorityTest(std::uint32_t servers = 1, std::uint32_t shards = 1)
      : cluster_({.servers = servers, .shards = shards, .configure = [](Config* config) {
                    config->push_window_bytes = 64 << 10;
                  }}) {
    cluster_.Connect();
    big_ = cluster_.MakeTable(Asynchronous(TableSpec::Dense("big", {kSize})));
    small_ = cluster_.MakeTable(Asynchronous(TableSpec::Dense("small", {16})));
  }
  ~PriorityTest() override { cluster_.ExpectNoHoles(); }

  std::size_t Admitted(std::uint32_t server = 0) const {
    return cluster_.servers[server]->admitted.size();
  }
  static Core::Terms Urgent(int priority = 1) { return {.priority = priority}; }

  TestCluster cluster_;
  std::shared_ptr<const TableInfo> big_, small_;
  const std::vector<float> values_ = std::vector<float>(kSize, 1);
  const std::vector<float> row_ = {3, 4};
  const std::vector<float> few_ = std::vector<float>(16, 1);
};

TEST_F(PriorityTest, AnUrgentRequestOvertakesOthersOfItsShard) {
  const auto slow = cluster_.Push(big_, {}, values_);
  const auto fast = cluster_.Push(small_, {}, few_, Urgent());
  EXPECT_TRUE(cluster_.Await(fast).ok());
  EXPECT_LT(Admitted(), 64u);
  EXPECT_TRUE(cluster_.Await(slow).ok());
  EXPECT_EQ(Admitted(), kBlocks + 1);
}

TEST_F(PriorityTest, ALessUrgentRequestIsSentLast) {
  const auto some = cluster_.Push(big_, {}, values_);
  const auto last = cluster_.Push(small_, {}, few_, Urgent(-1));
  const auto more = cluster_.Push(big_, {}, values_);
  EXPECT_TRUE(cluster_.Await(more).ok());
  EXPECT_TRUE(some->done());
  EXPECT_FALSE(last->done());
  EXPECT_TRUE(cluster_.Await(last).ok());
}

TEST_F(PriorityTest, OperationsOnOneElementKeepTheirOrder) {
  std::vector<float> result(kSize);
  const auto push = cluster_.Push(big_, {}, values_);
  const auto pull = cluster_.Pull(big_, {}, &result, Urgent());
  const auto later = cluster_.Push(big_, {}, values_, Urgent(2));
  EXPECT_TRUE(cluster_.Await(pull).ok());
  EXPECT_EQ(result, values_);
  EXPECT_TRUE(cluster_.Await(later).ok());
  EXPECT_TRUE(push->done());
}

TEST_F(PriorityTest, RowsOfOneTableKeepTheirOrder) {
  const auto rows = cluster_.MakeTable(Asynchronous(TableSpec::Sparse("rows", 2)));
  const auto slow = cluster_.Push(big_, {}, values_);
  const auto push = cluster_.Push(rows, {7}, row_, Urgent(-1));
  std::vector<float> row(2);
  const auto pull = cluster_.Pull(rows, {7}, &row, Urgent());
  EXPECT_TRUE(cluster_.Await(pull).ok());
  EXPECT_EQ(row, row_);
  EXPECT_FALSE(slow->done());
  EXPECT_TRUE(cluster_.Await(slow).ok());
}

class AnswerSink final : public PullSink {
 public:
  explicit AnswerSink(std::string* answer) : answer_(answer) {}
  absl::Status Take(std::size_t, const proto::Reply&,
                    std::span<const runtime::Buffer> payload) override {
    *answer_ = std::string(payload[0].text());
    return absl::OkStatus();
  }

 private:
  std::string* const answer_;
};

// A handler may touch everything in its shard: what was submitted before its call comes before it,
// and what is submitted later after it, however urgent.
TEST_F(PriorityTest, ACallOfAHandlerKeepsItsPlaceInItsShard) {
  const auto before = cluster_.Push(big_, {}, values_);
  std::string answer;
  const auto call = cluster_.core->Submit(
      SliceCall(small_, 0, "handler", "request", std::make_unique<AnswerSink>(&answer)), Urgent(),
      nullptr);
  const auto after = cluster_.Push(small_, {}, few_, Urgent(2));
  EXPECT_TRUE(cluster_.Await(after).ok());
  EXPECT_TRUE(before->done() && call->done());
  EXPECT_EQ(answer, "answer");
  const auto& admitted = cluster_.servers[0]->admitted;
  ASSERT_EQ(admitted.size(), kBlocks + 2);
  EXPECT_EQ(admitted[kBlocks].request.op, proto::Op::kCall);
  EXPECT_EQ(admitted[kBlocks].payload.size(), 2u);
  // The answers to all before it may have come meanwhile, and to no later one.
  EXPECT_GE(admitted[kBlocks].request.settled, 1u);
  EXPECT_LE(admitted[kBlocks].request.settled, admitted[kBlocks].request.id.sequence);
}

TEST_F(PriorityTest, CallsWithArgumentsThatMayNotBeAreRefused) {
  const auto why = [&](std::optional<std::uint64_t> key, const std::string& handler) {
    return SliceCall(small_, key, handler, "", nullptr).status().code();
  };
  EXPECT_EQ(why(15, "handler"), absl::StatusCode::kOk);
  EXPECT_EQ(why(16, "handler"), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(why(0, ""), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(why(std::nullopt, std::string(256, 'x')), absl::StatusCode::kInvalidArgument);
}

TEST_F(PriorityTest, RowsOvertakeThoseOfOtherTables) {
  const auto rows = cluster_.MakeTable(Asynchronous(TableSpec::Sparse("rows", 2)));
  const auto others = cluster_.MakeTable(Asynchronous(TableSpec::Sparse("others", 2)));
  const auto slow = cluster_.Push(big_, {}, values_);
  std::vector<std::shared_ptr<Operation>> many;
  for (std::uint64_t key = 0; key < 100; ++key) {
    many.push_back(cluster_.Push(others, {key}, row_));
  }
  EXPECT_TRUE(cluster_.Await(cluster_.Push(rows, {7}, row_, Urgent())).ok());
  EXPECT_LT(Admitted(), 64u);
  EXPECT_FALSE(many.front()->done());
  EXPECT_TRUE(cluster_.Await(many.back()).ok());
  EXPECT_TRUE(slow->done());
}

// An urgent request has a larger number than those that waited when the clock ended, and raises
// them: they are sent in the order of their numbers, so that the server holds none of them back.
TEST_F(PriorityTest, RaisedRequestsKeepTheOrderOfTheirNumbers) {
  const auto slow = cluster_.Push(big_, {}, values_);
  const auto front = cluster_.Push(small_, {}, few_, Urgent());
  EXPECT_TRUE(cluster_.core->Clock().ok());
  const auto next = cluster_.Push(small_, {}, few_, Urgent(2));
  EXPECT_TRUE(cluster_.Await(next).ok());
  EXPECT_TRUE(slow->done() && front->done());
  const std::vector<ScriptedServer::Seen>& arrived = cluster_.servers[0]->arrived;
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    EXPECT_EQ(arrived[i].request.id.sequence, i + 1);
  }
}

TEST_F(PriorityTest, RequestsThatWaitWhenTheClockEndsBelongToIt) {
  const auto push = cluster_.Push(big_, {}, values_);
  const auto front = cluster_.Push(small_, {}, few_, Urgent());
  EXPECT_TRUE(cluster_.core->Clock().ok());
  const auto next = cluster_.Push(small_, {}, few_, Urgent(2));
  cluster_.RunUntil([&] { return !cluster_.servers[0]->ticks.empty(); });
  const proto::ClockTick tick = cluster_.servers[0]->ticks.front();
  ASSERT_EQ(tick.watermarks.size(), 1u);
  EXPECT_EQ(tick.watermarks[0].sequence, kBlocks + 1);
  EXPECT_TRUE(cluster_.Await(next).ok());
  EXPECT_TRUE(push->done() && front->done());  // its number is larger than all of the clock
  for (const auto& seen : cluster_.servers[0]->admitted) {
    EXPECT_EQ(seen.request.clock, seen.request.id.sequence <= kBlocks + 1 ? 0u : 1u);
  }
}

// An urgent request gets its number before the others of its clock.
TEST_F(PriorityTest, NumbersOfAClockThatEndsFollowPriority) {
  const auto push = cluster_.Push(big_, {}, values_);
  const auto front = cluster_.Push(small_, {}, few_, Urgent());
  EXPECT_TRUE(cluster_.core->Clock().ok());
  EXPECT_TRUE(cluster_.Await(front).ok());
  EXPECT_LT(Admitted(), 64u);
  EXPECT_TRUE(cluster_.Await(push).ok());
}

TEST_F(PriorityTest, RequestsCarryTheirPriority) {
  std::vector<float> result(16);
  EXPECT_TRUE(cluster_.Await(cluster_.Pull(small_, {}, &result, Urgent(-7))).ok());
  EXPECT_EQ(cluster_.servers[0]->admitted.back().request.priority, -7);
}

class PriorityFailOverTest : public PriorityTest {
 protected:
  PriorityFailOverTest() : PriorityTest(2, 1) {}
};

TEST_F(PriorityFailOverTest, RequestsWithoutANumberGoToTheNextHead) {
  const auto push = cluster_.Push(big_, {}, values_);
  const auto fast = cluster_.Push(small_, {}, few_, Urgent());
  cluster_.FailOver(0);
  EXPECT_TRUE(cluster_.Await(fast).ok()) << fast->status();
  EXPECT_TRUE(cluster_.Await(push).ok()) << push->status();
}

TEST_F(PriorityFailOverTest, RequestsWithoutANumberAreLostWithTheirShard) {
  const auto push = cluster_.Push(big_, {}, values_);
  const auto fast = cluster_.Push(small_, {}, few_, Urgent());
  cluster_.KillServer(0, "it was too hot");
  EXPECT_EQ(cluster_.Await(push).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(cluster_.Await(fast).code(), absl::StatusCode::kUnavailable);
}

TEST_F(PriorityTest, AnOverduePushOfAnEndedClockIsStillSent) {
  cluster_.servers[0]->intercept = [](const proto::Request&) { return true; };
  Core::Terms soon;
  soon.timeout = absl::Seconds(1);
  const auto push = cluster_.Push(big_, {}, values_, soon);
  EXPECT_EQ(cluster_.Await(push).code(), absl::StatusCode::kUnknown);
  cluster_.servers[0]->intercept = nullptr;
  EXPECT_TRUE(cluster_.Await(cluster_.Push(small_, {}, few_)).ok());
  cluster_.RunUntil([&] { return Admitted() == kBlocks + 1; });
}

// A numbered request must not wait behind one without a number: later numbers, which the server
// cannot admit before it, would fill the window, and nothing would be sent until a resend.
TEST(PriorityWindowTest, TheSendWindowNeverLocksUp) {
  TestCluster cluster({.servers = 1, .shards = 8, .configure = [](Config* config) {
                         config->push_window_bytes = 4096;
                       }});
  cluster.Connect();
  std::vector<std::shared_ptr<const TableInfo>> tables;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::uint64_t size = i == 0 ? 1000 : 1 + i * 37 % 250;
    tables.push_back(
        cluster.MakeTable(Asynchronous(TableSpec::Dense(absl::StrCat("w", i), {size}))));
  }
  std::mt19937 random(5);
  const absl::Time start = cluster.world.Now();
  for (int burst = 0; burst < 5; ++burst) {
    std::vector<std::shared_ptr<Operation>> pushes;
    for (int i = 0; i < 300; ++i) {
      const auto& table = tables[random() % 20 == 0 ? 0 : random() % tables.size()];
      const int priority = random() % 8 == 0 ? static_cast<int>(random() % 3) : 0;
      pushes.push_back(cluster.Push(table, {}, std::vector<float>(table->spec.NumElements(), 1),
                                    {.priority = priority}, /*copy=*/true));
      if (random() % 100 == 0) {
        ASSERT_TRUE(cluster.core->Clock().ok());
      }
    }
    for (const auto& push : pushes) EXPECT_TRUE(cluster.Await(push).ok());
  }
  EXPECT_LT(cluster.world.Now() - start, absl::Milliseconds(500));
  EXPECT_EQ(cluster.core->stats().resends, 0u);
  cluster.ExpectNoHoles();
}

}  // namespace
}  // namespace leeway::worker
