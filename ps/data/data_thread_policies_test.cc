// Tables whose pushes are collected, weighted, or dropped, and pulls that do not go by the slowest
// worker (docs/consistency.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ps/shard/state/client_sessions.h"
#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using absl::StatusCode;
using testing::Each;
using testing::HasSubstr;

TableSpec TableOf(const char* consistency, Aggregate aggregate = Aggregate::kSum) {
  TableSpec spec = AddTable("w", Consistency::Parse(consistency).value());
  spec.aggregate = aggregate;
  return spec;
}

// ---- backup workers ----

TEST(BackupWorkers, AClockClosesWhenSoManyHaveEndedIt) {
  Bench bench({.num_workers = 3, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/3"));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  EXPECT_TRUE(bench.PushNow(1, table, 0, 2).ok());
  bench.Tick(0, 1);
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(2, table, 0), Each(0));
  bench.Send(0, bench.DensePull(0, table, 1));
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(1, 1);
  const Answer answer = bench.TakeReply(0);
  EXPECT_THAT(answer.floats(), Each(3));
  EXPECT_EQ(answer.reply().slowest_clock, 1u);
  EXPECT_EQ(answer.reply().staleness, 0u);
}

TEST(BackupWorkers, APushThatComesLateTakesEffectWhenItComes) {
  Bench bench({.num_workers = 3, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/3"));
  for (const std::uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(bench.PushNow(rank, table, 0, 1).ok());
    bench.Tick(rank, 1);
    bench.Take(rank);
  }
  EXPECT_TRUE(bench.PushNow(2, table, 0, 10).ok());
  EXPECT_THAT(bench.PullNow(0, table, 1), Each(12));
  EXPECT_EQ(bench.counters().late_pushes, 1u);
}

TEST(BackupWorkers, APushThatComesLateIsDroppedWhereTheTableSaysSo) {
  Bench bench({.num_workers = 3, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/3,drop"));
  for (const std::uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(bench.PushNow(rank, table, 0, 1).ok());
    bench.Tick(rank, 1);
    bench.Take(rank);
  }
  const proto::Request late = bench.DensePush(2, table, 0);
  for (int again = 0; again < 2; ++again) {
    bench.Send(2, late, Bench::Filled(10));
    const absl::Status told = bench.TakeReply(2).reply().result;
    EXPECT_EQ(told.code(), StatusCode::kCancelled);
    EXPECT_THAT(std::string(told.message()), HasSubstr("clock 1 is open"));
  }
  EXPECT_THAT(bench.PullNow(0, table, 1), Each(2));
  EXPECT_EQ(bench.counters().late_dropped, 1u);
  // It goes on in the clock that is open.
  bench.Tick(2, 1);
  bench.Take(2);
  EXPECT_TRUE(bench.PushNow(2, table, 1, 5).ok());
  bench.Tick(2, 2);
  bench.Tick(0, 2);
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(0, table, 2), Each(7));
}

TEST(BackupWorkers, AMeanIsThatOfAllPushesThatCameInTime) {
  Bench bench({.num_workers = 3, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/3", Aggregate::kMean));
  const auto end = [&](std::uint64_t clock) {
    for (const std::uint32_t rank : {0u, 1u}) {
      bench.Tick(rank, clock);
      bench.Take(rank);
    }
  };
  EXPECT_TRUE(bench.PushNow(0, table, 0, 8).ok());
  EXPECT_TRUE(bench.PushNow(1, table, 0, 4).ok());
  end(1);
  EXPECT_THAT(bench.PullNow(0, table, 1), Each(6));
  EXPECT_TRUE(bench.PushNow(2, table, 0, 2).ok());  // late: by itself, one of two
  EXPECT_THAT(bench.PullNow(0, table, 1), Each(7));
  // All three come in time.
  bench.Tick(2, 1);
  bench.Take(2);
  for (const auto& [rank, value] : {std::pair(0u, 9.0f), {1u, 6.0f}, {2u, 3.0f}}) {
    EXPECT_TRUE(bench.PushNow(rank, table, 1, value).ok());
  }
  end(2);
  EXPECT_THAT(bench.PullNow(0, table, 2), Each(13));
  // One worker of the count has pushed nothing.
  EXPECT_TRUE(bench.PushNow(0, table, 2, 4).ok());
  end(3);
  EXPECT_THAT(bench.PullNow(0, table, 3), Each(15));
}

TEST(BackupWorkers, ClocksThatCloseWithFewerWorkersAreCounted) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:9/9"));
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    for (const std::uint32_t rank : {0u, 1u}) {
      EXPECT_TRUE(bench.PushNow(rank, table, clock, 1).ok());
      bench.Tick(rank, clock + 1);
      bench.Take(rank);
    }
  }
  EXPECT_THAT(bench.PullNow(0, table, 3), Each(6));
  EXPECT_EQ(bench.counters().clocks_closed_short, 3u);
}

// A worker that does not pull runs ahead: its pushes wait for their clocks, and all behind them.
TEST(BackupWorkers, APushOfALaterClockWaitsUntilThatIsOpen) {
  Bench bench({.num_workers = 3, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/3"));
  const std::uint32_t other = bench.Install(AddTable("v", Consistency::Asp()));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  bench.Tick(0, 1);
  bench.Take(0);
  const proto::Request ahead = bench.DensePush(0, table, 1);
  bench.Send(0, ahead, Bench::Filled(10));
  bench.Tick(0, 2);
  bench.Send(0, bench.DensePush(0, other, 2), Bench::Filled(1));
  EXPECT_TRUE(bench.Take(0).empty());
  EXPECT_TRUE(bench.PushNow(1, table, 0, 2).ok());
  bench.Tick(1, 1);  // clock 0 closes
  EXPECT_THAT(bench.PullNow(1, table, 1), Each(3));
  std::size_t replies = 0;
  for (const Answer& answer : bench.Take(0)) {
    replies += std::holds_alternative<proto::Reply>(answer.message);
  }
  EXPECT_EQ(replies, 2u);
  bench.Tick(1, 2);
  bench.Take(1);
  EXPECT_THAT(bench.PullNow(1, table, 2), Each(13));
}

// Ticks are cumulative, so that of two clocks only the last tick comes: the push that waits says
// that its worker has ended the clocks before.
TEST(BackupWorkers, AWorkerThatRunsFarAheadWaitsForNothingOfItsOwn) {
  Bench bench({.num_workers = 3, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/3"));
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    bench.Send(0, bench.DensePush(0, table, clock), Bench::Filled(1));
    bench.Tick(0, clock + 1);
  }
  EXPECT_EQ(bench.counters().pushes_applied, 0u);
  bench.Tick(1, 3);
  bench.Take(0);
  bench.Take(1);
  EXPECT_THAT(bench.PullNow(0, table, 3), Each(3));
  EXPECT_EQ(bench.counters().pushes_applied, 3u);
}

// The tick is kept back by the push of clock 2, which waits; others still hear that clocks 0 and 1
// have ended, but not before the pushes of all tables are here.
TEST(BackupWorkers, APushThatWaitsHidesNoEndedClocksFromOtherTables) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/2"));
  const std::uint32_t other = bench.Install(AddTable("v", Consistency::Bsp()));
  const proto::Request held = bench.DensePush(0, other, 0);
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    bench.Send(0, bench.DensePush(0, table, clock), Bench::Filled(1));
  }
  bench.Tick(0, 3);
  EXPECT_TRUE(bench.PushNow(1, table, 0, 2).ok());
  bench.Tick(1, 1);
  bench.Take(1);
  bench.Send(1, bench.DensePull(1, other, 1));
  EXPECT_TRUE(bench.Take(1).empty());
  bench.Send(0, held, Bench::Filled(5));
  EXPECT_THAT(bench.TakeReply(1).floats(), Each(5));
}

TEST(BackupWorkers, WithNobodyLeftAllThatIsCollectedIsApplied) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("backup:2/2"));
  const std::uint32_t other = bench.Install(TableOf("fedbuff:9"));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  EXPECT_TRUE(bench.PushNow(0, other, 0, 2).ok());
  bench.SetState(1, proto::WorkerState::kLeft);
  bench.SetState(0, proto::WorkerState::kLeft);
  EXPECT_EQ(bench.counters().pushes_applied, 2u);
}

// ---- by arrivals ----

TEST(Softsync, AnUpdateHasTheWorkersByNPushes) {
  Bench bench({.num_workers = 4, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("softsync:2", Aggregate::kMean));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 2).ok());
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(0));
  EXPECT_TRUE(bench.PushNow(0, table, 1, 4).ok());  // from whomever
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(3));
  EXPECT_TRUE(bench.PushNow(3, table, 0, 8, /*block=*/1).ok());
  EXPECT_THAT(bench.PullNow(1, table, 0, /*block=*/1), Each(0));
  // With two workers gone each push is an update.
  bench.SetState(1, proto::WorkerState::kLeft);
  bench.SetState(2, proto::WorkerState::kDead);
  EXPECT_TRUE(bench.PushNow(0, table, 2, 10).ok());
  EXPECT_THAT(bench.PullNow(0, table, 2), Each(13));
}

TEST(Softsync, WithFewerWorkersLeftFewerPushesAreEnough) {
  Bench bench({.num_workers = 4, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("softsync:2"));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 3).ok());
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(0));
  bench.SetState(1, proto::WorkerState::kLeft);
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(3));  // ⌊3/2⌋ is 1
}

TEST(FedBuff, AnUpdateHasSoManyPushes) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("fedbuff:3", Aggregate::kMean));
  for (int push = 0; push < 2; ++push) EXPECT_TRUE(bench.PushNow(0, table, 0, 3).ok());
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(0));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 6).ok());
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(4));
  EXPECT_EQ(bench.counters().pushes_collected, 3u);
  EXPECT_EQ(bench.counters().pushes_applied, 3u);
}

TEST(FedBuff, ItsUpdateIsOneStepOfTheUpdater) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  TableSpec spec = TableOf("fedbuff:2");
  spec.updater = {.name = "momentum", .parameters = {{"learning_rate", 0.5}, {"momentum", 0.5}}};
  const std::uint32_t table = bench.Install(spec);
  for (int push = 0; push < 4; ++push) EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  // v = 2, w = -1; v = 0.5 * 2 + 2 = 3, w = -2.5.
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(-2.5f));
}

TEST(FedBuff, TheLastRateCounts) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  TableSpec spec = TableOf("fedbuff:3");
  spec.updater = {.name = "sgd", .parameters = {{"learning_rate", 1}}};
  const std::uint32_t table = bench.Install(spec);
  for (const double rate : {0.5, 0.25, 0.0}) {
    proto::Request push = bench.DensePush(0, table, 0);
    push.has_learning_rate = rate > 0;
    push.learning_rate = rate;
    bench.Send(0, push, Bench::Filled(1));
    EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  }
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(-0.75f));
}

// ---- weights by staleness ----

TEST(Weights, APushIsMultipliedByWhatItsStalenessSays) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("asp,weight=1/tau"));
  bench.Send(0, bench.DensePull(0, table, 0));
  const std::uint64_t read = bench.TakeReply(0).reply().updates;
  EXPECT_EQ(read, 0u);
  for (int push = 0; push < 4; ++push) {  // each computed from the newest
    bench.PullNow(1, table, 0);
    proto::Request fresh = bench.DensePush(1, table, 0);
    fresh.read_updates = read + static_cast<std::uint64_t>(push);
    bench.Send(1, fresh, Bench::Filled(1));
    EXPECT_TRUE(bench.TakeReply(1).reply().result.ok());
  }
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(4));
  proto::Request stale = bench.DensePush(0, table, 0);  // τ = 4
  stale.read_updates = read;
  bench.Send(0, stale, Bench::Filled(8));
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  bench.Send(0, bench.DensePull(0, table, 0));
  const Answer answer = bench.TakeReply(0);
  EXPECT_THAT(answer.floats(), Each(6));
  EXPECT_EQ(answer.reply().updates, 5u);
  const auto status = nlohmann::json::parse(bench.thread().StatusJson());
  EXPECT_EQ(status["tables"][0]["push_staleness"], nlohmann::json({{"0", 4}, {"4", 1}}));
}

TEST(Weights, APushBeyondTheCutOffIsDropped) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("asp,weight=cutoff:1"));
  for (const StatusCode told : {StatusCode::kOk, StatusCode::kOk, StatusCode::kCancelled}) {
    EXPECT_EQ(bench.PushNow(0, table, 0, 1).code(), told);  // τ = 0, 1, 2
  }
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(2));
}

TEST(Weights, CollectedPushesHaveTheirOwn) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("fedbuff:2,weight=table:1/0.5"));
  for (int push = 0; push < 3; ++push) EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  bench.PullNow(0, table, 0);
  proto::Request fresh = bench.DensePush(0, table, 0);
  fresh.read_updates = 1;
  bench.Send(0, fresh, Bench::Filled(1));
  bench.TakeReply(0);
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(2 + 0.5f + 1));
}

// Rows: the table's part of the shard is the target, and its updates are those of what is
// collected.
TEST(Weights, UpdatesOfCollectedRowsAreCounted) {
  Bench bench({.num_workers = 1, .num_shards = 1});
  TableSpec spec = TableSpec::Sparse("w", 1);
  spec.updater.name = "add";
  spec.consistency = Consistency::Parse("fedbuff:2,weight=table:1/0.5").value();
  const std::uint32_t table = bench.Install(spec);
  const auto push = [&](std::uint64_t read_updates) {
    proto::Request request = bench.SparsePull(0, table, 0, 0, 1);
    request.op = proto::Op::kPush;
    request.elements = 1;
    request.read_updates = read_updates;
    Payload payload = Bench::Keys({7});
    payload.push_back(Bench::Values({1})[0]);
    bench.Send(0, request, std::move(payload));
    EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  };
  push(0);
  push(0);  // an update
  push(0);  // τ is 1
  bench.Send(0, bench.SparsePull(0, table, 0, 0, 1), Bench::Keys({7}));
  EXPECT_EQ(bench.TakeReply(0).reply().updates, 1u);
  push(1);
  bench.Send(0, bench.SparsePull(0, table, 0, 0, 1), Bench::Keys({7}));
  const Answer answer = bench.TakeReply(0);
  EXPECT_THAT(answer.floats(), Each(2 + 0.5f + 1));
  EXPECT_EQ(answer.reply().updates, 2u);
}

TEST(Weights, AWorkerThatSaysItReadUpdatesThatAreStillToComeIsRefused) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("asp,weight=1/tau"));
  proto::Request lie = bench.DensePush(0, table, 0);
  lie.read_updates = 7;
  bench.Send(0, lie, Bench::Filled(1));
  const absl::Status told = bench.TakeReply(0).reply().result;
  EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(told.message()), HasSubstr("computed from values with 7 updates"));
}

TEST(Weights, AWorkerThatWasSentNothingHasReadNothing) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("asp,weight=1/tau"));
  for (int push = 0; push < 3; ++push) EXPECT_TRUE(bench.PushNow(1, table, 0, 1).ok());
  proto::Request lie = bench.DensePush(0, table, 0);
  lie.read_updates = 3;
  bench.Send(0, lie, Bench::Filled(1));
  const absl::Status told = bench.TakeReply(0).reply().result;
  EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(told.message()), HasSubstr("those that it was sent had 0"));
}

TEST(Weights, AWorkerThatSaysItReadNewerValuesThanItWasSentIsRefused) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("asp,weight=1/tau"));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 1).ok());
  bench.PullNow(0, table, 0);  // 1 update
  for (int push = 0; push < 2; ++push) EXPECT_TRUE(bench.PushNow(1, table, 0, 1).ok());
  proto::Request lie = bench.DensePush(0, table, 0);
  lie.read_updates = 2;
  bench.Send(0, lie, Bench::Filled(1));
  const absl::Status told = bench.TakeReply(0).reply().result;
  EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(told.message()),
              HasSubstr("computed from values with 2 updates; those that it was sent had 1"));
  bench.PullNow(0, table, 0);
  proto::Request fresh = bench.DensePush(0, table, 0);
  fresh.read_updates = 3;
  bench.Send(0, fresh, Bench::Filled(1));
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
}

TEST(Weights, MemoryOfAWorkersReadingsIsBounded) {
  UpdatesSent sent;
  for (std::uint64_t block = 0; block <= kUpdatesSentMax; ++block) sent.Note(0, block, 5);
  sent.Note(0, 0, 4);  // an earlier answer, later
  EXPECT_EQ(sent.Of(0, 0), 5u);
  EXPECT_EQ(sent.Of(1, 0), std::nullopt);
  EXPECT_EQ(sent.Of(0, kUpdatesSentMax), std::nullopt);
}

// What a table refuses, or counts, is also what a weight or a compensation makes of finite values.
// Neither leaves a trace: the mean of an adaptive compensation goes on without it.
TEST(NonFinite, IsWhatAWeightMakes) {
  for (const char* const consistency : {"asp,weight=table:1e30", "fedbuff:1,weight=table:1e30"}) {
    for (const NonFinite policy : {NonFinite::kRefuse, NonFinite::kCount}) {
      SCOPED_TRACE(consistency);
      Bench bench({.num_workers = 2, .num_shards = 1});
      TableSpec spec = TableOf(consistency);
      spec.nonfinite = policy;
      const std::uint32_t table = bench.Install(spec);
      EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
      const absl::Status pushed = bench.PushNow(0, table, 0, 1e10f);
      EXPECT_EQ(bench.counters().nonfinite_pushes, 1u);
      if (policy == NonFinite::kCount) {
        EXPECT_TRUE(pushed.ok()) << pushed;
        continue;
      }
      EXPECT_EQ(pushed.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(pushed.message()), HasSubstr("multiplied by its weight, which"));
      EXPECT_THAT(bench.PullNow(1, table, 0), Each(1e30f));
    }
  }
}

TEST(NonFinite, IsWhatACompensationMakes) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  TableSpec spec = TableOf("asp,dc=adaptive:1e38/0.5");
  spec.nonfinite = NonFinite::kRefuse;
  const std::uint32_t table = bench.Install(spec);
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(0));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 10).ok());  // it has pulled nothing: as it is
  for (int again = 0; again < 2; ++again) {
    const absl::Status pushed = bench.PushNow(0, table, 0, 1e5f);
    EXPECT_EQ(pushed.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(pushed.message()), HasSubstr("when it is compensated, which"));
  }
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(10));
  EXPECT_EQ(bench.counters().nonfinite_pushes, 2u);
  // v = 0.5 g²: λ g² (w − w_bak) = 1e38 / √(v + 1e-7) · 1e-10 · 10.
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1e-5f).ok());
  const auto added = static_cast<float>(1e38 / std::sqrt(0.5 * 1e-10 + 1e-7) * 1e-10 * 10);
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(testing::FloatNear(added, added * 1e-4f)));
}

// 16-bit values overflow by the push as it is weighted.
TEST(NonFinite, IsAnOverflowThatAWeightMakesOrAvoids) {
  for (const TableKind kind : {TableKind::kDense, TableKind::kSparse}) {
    for (const char* const weights : {"asp,weight=table:8", "asp,weight=table:0.25"}) {
      SCOPED_TRACE(weights);
      Bench bench({.num_workers = 1, .num_shards = 1});
      TableSpec spec = kind == TableKind::kDense ? TableSpec::Dense("w", {1}, DType::kFloat16)
                                                 : TableSpec::Sparse("w", 1, DType::kFloat16);
      spec.updater.name = "add";
      spec.consistency = Consistency::Parse(weights).value();
      spec.nonfinite = NonFinite::kRefuse;
      const std::uint32_t table = bench.Install(spec);
      std::vector<StatusCode> told;
      for (int push = 0; push < 3; ++push) {
        proto::Request request = bench.DensePush(0, table, 0);
        request.dtype = DType::kFloat16;
        request.kind = kind;
        request.elements = 1;
        Payload payload;
        if (kind == TableKind::kSparse) {
          request.keys = 1;
          payload = Bench::Keys({7});
        }
        const Float16 value(32768.0f);
        payload.push_back(runtime::Buffer::CopyOf(&value, sizeof(value)));
        bench.Send(0, request, std::move(payload));
        told.push_back(bench.TakeReply(0).reply().result.code());
      }
      const StatusCode expected =
          std::string(weights).ends_with("8") ? StatusCode::kInvalidArgument : StatusCode::kOk;
      EXPECT_THAT(told, Each(expected));
    }
  }
}

TEST(NonFinite, IsASumOfIntegersThatWrapsAround) {
  Bench bench({.num_workers = 1, .num_shards = 1});
  TableSpec spec = TableSpec::Dense("w", {1}, DType::kInt64);
  spec.updater.name = "add";
  spec.consistency = Consistency::FedBuff(2);
  const std::uint32_t table = bench.Install(spec);
  for (int push = 0; push < 2; ++push) {
    proto::Request request = bench.DensePush(0, table, 0);
    request.dtype = DType::kInt64;
    request.elements = 1;
    const std::int64_t value = std::int64_t{1} << 62;
    bench.Send(0, request, {runtime::Buffer::CopyOf(&value, sizeof(value))});
    EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  }
  EXPECT_EQ(bench.counters().pushes_applied, 2u);
  EXPECT_EQ(bench.counters().overflows, 1u);
}

// ---- delay compensation ----

// The reply is encoded: what its worker has is what it decodes.
TEST(DelayCompensatedTable, PulledValuesAreKnownWhereRepliesAreEncoded) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  TableSpec spec = TableOf("asp,dc=1");
  spec.codec = "sparse";
  const std::uint32_t table = bench.Install(spec);
  const auto push = [&](std::uint32_t worker, float value) {
    std::vector<float> values(Bench::kBlock);
    values[3] = value;
    bench.Send(worker, bench.DensePush(worker, table, 0), Bench::Values(values));
    EXPECT_TRUE(bench.TakeReply(worker).reply().result.ok());
  };
  push(1, 1);
  bench.Send(0, bench.DensePull(0, table, 0));
  EXPECT_TRUE(bench.TakeReply(0).reply().coded);
  EXPECT_EQ(bench.counters().uncompensated, 1u);
  push(1, 1);
  EXPECT_EQ(bench.counters().uncompensated, 2u);
  push(0, 2);
  EXPECT_EQ(bench.counters().uncompensated, 2u);
}

TEST(DelayCompensatedTable, AGradientIsCompensatedForWhatChangedSinceItsWorkerPulled) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  TableSpec spec = TableOf("asp,dc=0.5");
  spec.updater = {.name = "sgd", .parameters = {{"learning_rate", 1}}};
  const std::uint32_t table = bench.Install(spec);
  EXPECT_TRUE(bench.PushNow(0, table, 0, 3).ok());  // before its first pull: as it is
  EXPECT_EQ(bench.counters().uncompensated, 1u);
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(-3));
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(-3));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 1).ok());  // nothing has changed
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(-4));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 2).ok());  // 2 + 0.5 * 4 * (-4 - -3) = 0
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(-4));
  EXPECT_EQ(bench.counters().uncompensated, 1u);
}

// ---- pulls ----

TEST(Psp, APullWaitsForItsSampleAlone) {
  Bench bench({.num_workers = 4, .num_shards = 1});
  const std::uint32_t all = bench.Install(TableOf("psp:0/3"));
  const std::uint32_t one = bench.Install(TableOf("psp:0/1"));
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    for (std::uint64_t clock = 1; clock <= 20; ++clock) bench.Tick(rank, clock);
    bench.Take(rank);
  }
  bench.Send(0, bench.DensePull(0, all, 20));
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(3, 20);
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(0));
  int served = 0;
  for (std::uint64_t clock = 21; clock < 51; ++clock) {
    for (const std::uint32_t rank : {0u, 1u, 2u}) {
      bench.Tick(rank, clock);
      bench.Take(rank);
    }
    bench.Send(0, bench.DensePull(0, one, clock));
    served += bench.GotReply(0);
    bench.Take(0);
  }
  EXPECT_GT(served, 10);  // two of three samples have not the slow one
  EXPECT_LT(served, 29);
}

TEST(Dssp, AFastWorkerGoesBeyondTheLowerBoundWhereThatMakesItWaitLess) {
  Bench bench({.num_workers = 2, .num_shards = 1});
  const std::uint32_t table = bench.Install(TableOf("dssp:1-4"));
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(0));
  // The slow one takes 40 ms for an iteration, the fast one 10.
  bench.Tick(1, 1);
  for (std::uint64_t clock = 1; clock <= 4; ++clock) {
    bench.world().RunFor(absl::Milliseconds(10));
    if (clock == 4) bench.Tick(1, 2);
    bench.world().RunFor(absl::Milliseconds(clock == 4 ? 10 : 0));
    bench.Tick(0, clock);
    bench.Take(0);
  }
  bench.Take(1);
  EXPECT_THAT(bench.PullNow(0, table, 4), Each(0));  // 2 ahead
  bench.world().RunFor(absl::Milliseconds(10));
  for (const std::uint64_t clock : {5u, 6u, 7u}) bench.Tick(0, clock);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, table, 7));  // 5 ahead
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(1, 6);
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(0));
}

}  // namespace
}  // namespace leeway::ps
