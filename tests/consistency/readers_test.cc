// Readers of a whole cluster: they see the tables, change nothing, and nothing waits for them.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

class ReadersTest : public testing::Test {
 protected:
  void StartCluster(std::uint32_t workers, std::uint32_t servers = 1,
                    std::uint32_t replication = 1) {
    LocalCluster::Setup setup;
    setup.workers = workers;
    setup.servers = servers;
    setup.config.replication = replication;
    setup.config.request_timeout = kPatience;
    auto cluster = LocalCluster::Start(setup);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  absl::StatusOr<std::unique_ptr<Worker>> Reader() {
    Config config = cluster_->WorkerConfig();
    config.read_only = true;
    return cluster_->Connect(config);
  }

  std::unique_ptr<LocalCluster> cluster_;
};

TableSpec SspTable() {
  TableSpec spec = TableSpec::Dense("w", {1000});
  spec.consistency = Consistency::Ssp(3);
  return spec;
}

// All calls that a reader may not make, by name.
std::vector<std::pair<std::string, absl::Status>> TryEverything(Worker* reader,
                                                                const Table& table) {
  std::vector<float> values(1000, 1), result(1000);
  const std::span<const float> in(values);
  return {{"Push", reader->Wait(table.Push(in))},
          {"PushPull", reader->Wait(table.PushPull(in, std::span<float>(result)))},
          {"Clock", reader->Clock()},
          {"Barrier", reader->Barrier()},
          {"CreateTable", reader->CreateTable(TableSpec::Dense("new", {4})).status()},
          {"Checkpoint", reader->Checkpoint("/nowhere").status()},
          {"SetCodec", reader->SetCodec("w", "none").status()},
          {"Call", reader->Call(0, "handler", "").status()},
          {"SaveResiduals", reader->SaveResiduals("/nowhere")},
          {"LoadResiduals", reader->LoadResiduals("/nowhere")}};
}

TEST_F(ReadersTest, AllButOpeningAndPullingFailsAtOnceAndNamesTheSetting) {
  StartCluster(1);
  const absl::Status ran = cluster_->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(SspTable());
    ASSERT_TRUE(table.ok()) << table.status();
    const auto reader = Reader();
    ASSERT_TRUE(reader.ok()) << reader.status();
    // By name, and by the workers' description.
    const auto opened = (*reader)->OpenTable("w");
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto described = (*reader)->CreateTable(SspTable());
    ASSERT_TRUE(described.ok()) << described.status();
    const absl::Time start = absl::Now();
    for (const auto& [what, status] : TryEverything(reader->get(), *opened)) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << what;
      EXPECT_THAT(std::string(status.message()), HasSubstr("LEEWAY_READ_ONLY")) << what;
    }
    EXPECT_LT(absl::Now() - start, kPatience / 2);
    TableSpec other = SspTable();
    other.shape = {999};
    EXPECT_EQ((*reader)->CreateTable(other).status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ((*reader)->OpenTable("none").status().code(), absl::StatusCode::kNotFound);
    std::vector<float> values(1000, -1);
    EXPECT_TRUE((*reader)->Wait(opened->Pull(std::span<float>(values))).ok());
    EXPECT_THAT(values, Each(0));
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

TEST_F(ReadersTest, AreToldClockAndVersionOfDenseSparseAndRaggedValues) {
  StartCluster(1, 2);
  const absl::Status ran = cluster_->RunWorkers([&](Worker* worker) {
    TableSpec sparse = TableSpec::Sparse("e", 2);
    sparse.consistency = Consistency::Asp();
    TableSpec ragged = TableSpec::Ragged("r");
    ragged.updater.name = "assign";
    ragged.consistency = Consistency::Bsp();
    const auto w = worker->CreateTable(SspTable());
    const auto e = worker->CreateTable(sparse);
    const auto r = worker->CreateTable(ragged);
    ASSERT_TRUE(w.ok() && e.ok() && r.ok());
    const auto reader = Reader();
    ASSERT_TRUE(reader.ok()) << reader.status();
    const auto rw = (*reader)->OpenTable("w"), re = (*reader)->OpenTable("e"),
               rr = (*reader)->OpenTable("r");
    ASSERT_TRUE(rw.ok() && re.ok() && rr.ok());
    const std::vector<std::uint64_t> keys = {7, 8};
    std::vector<float> ones(1000, 1), dense(1000), rows(4), ragged_values;
    std::vector<std::uint32_t> widths;
    PullInfo last;
    for (std::uint64_t clock = 0; clock < 3; ++clock) {
      const std::span<const float> in(ones);
      EXPECT_TRUE(worker->Wait(w->Push(in)).ok());
      EXPECT_TRUE(worker->Wait(e->Push(std::span(keys), in.first(4))).ok());
      const std::vector<std::uint32_t> two = {1, 2};
      EXPECT_TRUE(worker->Wait(r->PushRagged(std::span(keys), std::span(two), in.first(3))).ok());
      EXPECT_TRUE(worker->Clock().ok());
      // So that every server counts the clock.
      EXPECT_TRUE(worker->Wait(r->PullRagged(std::span(keys), &widths, &ragged_values)).ok());
      EXPECT_TRUE(worker->Wait(w->Pull(std::span<float>(dense))).ok());

      const Ticket ticket = rw->Pull(std::span<float>(dense));
      EXPECT_EQ((*reader)->Info(Ticket()).status().code(), absl::StatusCode::kFailedPrecondition);
      ASSERT_TRUE((*reader)->Wait(ticket).ok());
      EXPECT_THAT(dense, Each(static_cast<float>(clock + 1)));
      const auto info = (*reader)->Info(ticket);
      ASSERT_TRUE(info.ok()) << info.status();
      EXPECT_LE(info->clock, clock + 1);
      EXPECT_GT(info->version, last.version);
      last = *info;
      EXPECT_TRUE((*reader)->Wait(re->Pull(std::span(keys), std::span<float>(rows))).ok());
      EXPECT_THAT(rows, Each(static_cast<float>(clock + 1)));
      const Ticket rows_ticket = rr->PullRagged(std::span(keys), &widths, &ragged_values);
      ASSERT_TRUE((*reader)->Wait(rows_ticket).ok());
      EXPECT_EQ(widths, (std::vector<std::uint32_t>{1, 2}));
      EXPECT_EQ((*reader)->Info(rows_ticket)->clock, clock + 1);  // the worker's pull waited for it
    }
    // Nothing has changed: neither has the version.
    const Ticket one = rw->Pull(std::span<float>(dense)), two = rw->Pull(std::span<float>(dense));
    ASSERT_TRUE((*reader)->Wait(one).ok() && (*reader)->Wait(two).ok());
    EXPECT_EQ(*(*reader)->Info(one), *(*reader)->Info(two));
    EXPECT_EQ((*reader)->stats().staleness_violations, 0u);
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

// A worker that never ends a clock, such as an elastic one that only pulls, would hold the others
// at clock 3.
TEST_F(ReadersTest, ComeAndGoWhileOthersTrainAndHoldNobody) {
  StartCluster(2, 2, 2);
  std::atomic<bool> training = true;
  std::atomic<int> visits = 0;
  std::thread reader([&] {
    while (training) {
      auto one = Reader();
      ASSERT_TRUE(one.ok()) << one.status();
      const auto table = (*one)->OpenTable("w");
      if (absl::IsNotFound(table.status())) continue;  // the workers will create it
      ASSERT_TRUE(table.ok()) << table.status();
      std::vector<float> values(1000);
      PullInfo last;
      for (int i = 0; i < 3; ++i) {
        const Ticket ticket = table->Pull(std::span<float>(values));
        ASSERT_TRUE((*one)->Wait(ticket).ok());
        const PullInfo info = *(*one)->Info(ticket);
        EXPECT_GE(info.version, last.version);
        // Two workers push 1 in each clock.
        for (const float value : values) ASSERT_GE(value, 2.0f * static_cast<float>(info.clock));
        last = info;
      }
      ++visits;
    }
  });
  std::atomic<int> ready = 0;
  constexpr int kOpenEnd = 1 << 30;
  std::atomic<int> end = kOpenEnd;
  const absl::Status ran = cluster_->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(SspTable());
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> ones(1000, 1), values(1000);
    // At least until there were some readers, each of which would hold up SSP(3) by itself. The
    // worker that sees this first sets the clock at which both end, so that none waits for the
    // other.
    for (int clock = 0; clock < end; ++clock) {
      int open = kOpenEnd;
      if (clock >= 200 && visits >= 5) end.compare_exchange_strong(open, clock + 10);
      ASSERT_EQ(worker->Wait(table->Push(std::span<const float>(ones))), absl::OkStatus());
      ASSERT_EQ(worker->Clock(), absl::OkStatus());
      ASSERT_EQ(worker->Wait(table->Pull(std::span<float>(values))), absl::OkStatus());
      EXPECT_LE(worker->stats().max_staleness, 3u);
    }
    // No worker leaves while a reader is about to join.
    if (++ready == 2) training = false;
    while (training) std::this_thread::yield();
    if (worker->rank() == 0) reader.join();
    ASSERT_TRUE(worker->Barrier().ok());  // a reader counts on those that live
  });
  if (reader.joinable()) reader.join();
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_GE(visits, 5);
  EXPECT_TRUE(cluster_->Finish().ok());
}

TEST_F(ReadersTest, DoNotKeepAClusterThatHasEnded) {
  StartCluster(1);
  std::unique_ptr<Worker> reader;
  const absl::Status ran = cluster_->RunWorkers([&](Worker* worker) {
    ASSERT_TRUE(worker->CreateTable(SspTable()).ok());
    auto one = Reader();
    ASSERT_TRUE(one.ok()) << one.status();
    reader = *std::move(one);
  });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_TRUE(cluster_->Finish().ok());
  EXPECT_FALSE(reader->OpenTable("w").ok());
}

}  // namespace
}  // namespace leeway::tests
