// Whole clusters whose tables have codecs: valid combinations train to the same minimum with fewer
// bytes, invalid ones are refused in one line when the table is created.
#include <cmath>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leeway/worker.h"
#include "runtime/base/random.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

using testing::HasSubstr;
using testing::Values;

constexpr std::uint64_t kElements = 5000;
constexpr std::uint64_t kRows = 40;
constexpr std::uint64_t kWidth = 64;
constexpr int kSteps = 150;

float TargetOf(std::uint64_t i) { return static_cast<float>(runtime::NormalAt(9, 0, i)); }

struct Case {
  std::string codec;
  ErrorFeedback feedback = ErrorFeedback::kAuto;
  Consistency consistency = Consistency::Bsp();
  LocalCluster::Net net = LocalCluster::Net::kTcp;
  std::uint32_t servers = 2;
  std::uint32_t replication = 1;
  int priority = 0;
};

Options At(double learning_rate, int priority) {
  Options options;
  options.learning_rate = learning_rate;
  options.priority = priority;
  return options;
}

std::string NameOf(const testing::TestParamInfo<Case>& tested) {
  const Case& one = tested.param;
  const char* feedback[] = {"auto", "off", "worker", "server", "both"};
  std::string name = one.codec + "_" + feedback[static_cast<int>(one.feedback)] + "_" +
                     one.consistency.ToString() + "_" +
                     (one.net == LocalCluster::Net::kTcp    ? "tcp"
                      : one.net == LocalCluster::Net::kRdma ? "rdma"
                                                            : "zmq") +
                     "_r" + std::to_string(one.replication) + "_p" + std::to_string(one.priority);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

class CompressedClusterTest : public testing::TestWithParam<Case> {
 protected:
  static LocalCluster::Setup SetupFor(const Case& one) {
    LocalCluster::Setup setup;
    setup.servers = one.servers;
    setup.workers = 3;
    setup.net = one.net;
    setup.config.replication = one.replication;
    setup.config.block_bytes = 8192;  // three blocks
    setup.config.residual_bytes_max = 32 << 10;
    return setup;
  }

  static TableSpec With(TableSpec spec, const Case& one) {
    spec.codec = one.codec;
    spec.error_feedback = one.feedback;
    spec.consistency = one.consistency;
    if (one.consistency.is_bsp()) spec.aggregate = Aggregate::kMean;
    return spec;
  }
};

// A quadratic, ½‖w − target‖², whose gradient each worker sees with its own noise.
TEST_P(CompressedClusterTest, DenseTablesReachTheMinimum) {
  const Case& one = GetParam();
  auto cluster = *LocalCluster::Start(SetupFor(one));
  std::mutex mutex;
  WorkerStats stats;
  double distance = 0;
  const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
    TableSpec spec = With(TableSpec::Dense("w", {100, 50}), one);
    spec.updater = {"sgd", {{"learning_rate", 0.05}}};
    const auto table = worker->CreateTable(spec);
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> w(kElements), gradient(kElements);
    for (int step = 0; step < kSteps; ++step) {
      const Options options = At(step < 100 ? 0.05 : 0.02, one.priority);
      const absl::Status pulled = worker->Wait(table->Pull(std::span(w)));
      ASSERT_TRUE(pulled.ok()) << pulled;
      for (std::uint64_t i = 0; i < kElements; ++i) {
        const double noise =
            0.1 * runtime::NormalAt(worker->rank(), static_cast<std::uint64_t>(step), i);
        gradient[i] = w[i] - TargetOf(i) + static_cast<float>(noise);
      }
      const absl::Status pushed =
          worker->Wait(table->Push(std::span<const float>(gradient), options));
      ASSERT_TRUE(pushed.ok()) << pushed;
      ASSERT_TRUE(worker->Clock().ok());
    }
    ASSERT_TRUE(worker->Barrier().ok());
    ASSERT_TRUE(worker->Wait(table->Pull(std::span(w))).ok());
    double squares = 0;
    for (std::uint64_t i = 0; i < kElements; ++i) {
      squares += std::pow(static_cast<double>(w[i]) - static_cast<double>(TargetOf(i)), 2);
    }
    const std::lock_guard lock(mutex);
    distance = std::max(distance, std::sqrt(squares / kElements));
    EXPECT_EQ(worker->stats().staleness_violations, 0u);
    stats.bytes_pushed += worker->stats().bytes_pushed;
    stats.bytes_pulled += worker->stats().bytes_pulled;
  });
  ASSERT_TRUE(ran.ok()) << ran;
  // The target's root mean square is 1.
  EXPECT_LT(distance, 0.2);
  const double plain = 3.0 * kSteps * kElements * sizeof(float);
  RecordProperty("pushed_part", std::to_string(static_cast<double>(stats.bytes_pushed) / plain));
  RecordProperty("pulled_part", std::to_string(static_cast<double>(stats.bytes_pulled) / plain));
  if (one.codec == "onebit") {
    EXPECT_LT(static_cast<double>(stats.bytes_pushed), plain / 31);
  }
  if (one.codec == "onebit" && one.feedback != ErrorFeedback::kWorker) {
    // Without a common clock a worker may lack several versions at a time.
    const double part = one.consistency.is_bsp() ? 1.0 / 20 : 1.0 / 8;
    EXPECT_LT(static_cast<double>(stats.bytes_pulled), part * plain);
  }
}

TEST_P(CompressedClusterTest, SparseTablesReachTheMinimum) {
  Case one = GetParam();
  if (one.feedback == ErrorFeedback::kBoth) one.feedback = ErrorFeedback::kWorker;
  auto cluster = *LocalCluster::Start(SetupFor(one));
  const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
    TableSpec spec = With(TableSpec::Sparse("e", kWidth), one);
    spec.updater = {"sgd", {{"learning_rate", 0.1}}};
    const auto table = worker->CreateTable(spec);
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<std::uint64_t> keys(kRows);
    for (std::uint64_t i = 0; i < kRows; ++i) keys[i] = i * i + 7;
    std::vector<float> rows(kRows * kWidth), gradient(kRows * kWidth);
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(worker->Wait(table->Pull(keys, std::span(rows))).ok());
      for (std::uint64_t i = 0; i < rows.size(); ++i) gradient[i] = rows[i] - TargetOf(i);
      const absl::Status pushed = worker->Wait(table->Push(keys, std::span<const float>(gradient)));
      ASSERT_TRUE(pushed.ok()) << pushed;
      ASSERT_TRUE(worker->Clock().ok());
    }
    ASSERT_TRUE(worker->Barrier().ok());
    ASSERT_TRUE(worker->Wait(table->Pull(keys, std::span(rows))).ok());
    double squares = 0;
    for (std::uint64_t i = 0; i < rows.size(); ++i) {
      squares += std::pow(static_cast<double>(rows[i]) - static_cast<double>(TargetOf(i)), 2);
    }
    EXPECT_LT(std::sqrt(squares / static_cast<double>(rows.size())), 0.2);
  });
  ASSERT_TRUE(ran.ok()) << ran;
}

// Workers that update the parameters themselves, as with an all-reduce.
TEST_P(CompressedClusterTest, GradientTablesReachTheMinimum) {
  const Case& one = GetParam();
  if (!one.consistency.is_bsp()) GTEST_SKIP() << "gradient tables are BSP";
  auto cluster = *LocalCluster::Start(SetupFor(one));
  std::mutex mutex;
  std::vector<std::vector<float>> results;
  const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
    TableSpec spec = With(TableSpec::Dense("g", {kElements}), one);
    spec.updater = {"gradient", {}};
    const auto table = worker->CreateTable(spec);
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> w(kElements), gradient(kElements), sum(kElements);
    for (int step = 0; step < kSteps; ++step) {
      for (std::uint64_t i = 0; i < kElements; ++i) gradient[i] = w[i] - TargetOf(i);
      const double rate = step < 100 ? 0.1 : 0.03;
      const Ticket ticket =
          table->PushPull(std::span<const float>(gradient), std::span(sum), At(rate, one.priority));
      ASSERT_TRUE(worker->Clock().ok());
      const absl::Status done = worker->Wait(ticket);
      ASSERT_TRUE(done.ok()) << done;
      for (std::uint64_t i = 0; i < kElements; ++i) w[i] -= static_cast<float>(rate) * sum[i];
    }
    double squares = 0;
    for (std::uint64_t i = 0; i < kElements; ++i) {
      squares += std::pow(static_cast<double>(w[i]) - static_cast<double>(TargetOf(i)), 2);
    }
    EXPECT_LT(std::sqrt(squares / kElements), 0.25);
    const std::lock_guard lock(mutex);
    results.push_back(w);
  });
  ASSERT_TRUE(ran.ok()) << ran;
  for (const std::vector<float>& result : results) EXPECT_EQ(result, results.front());
}

constexpr auto kZmq = LocalCluster::Net::kZmqTcp;
constexpr auto kRdma = LocalCluster::Net::kRdma;

INSTANTIATE_TEST_SUITE_P(
    Compositions, CompressedClusterTest,
    Values(Case{"none"}, Case{"onebit", ErrorFeedback::kBoth},
           Case{.codec = "onebit", .feedback = ErrorFeedback::kBoth, .net = kZmq},
           Case{.codec = "none", .net = kRdma, .replication = 2, .priority = 3},
           Case{.codec = "onebit", .feedback = ErrorFeedback::kBoth, .net = kRdma},
           Case{.codec = "onebit",
                .feedback = ErrorFeedback::kBoth,
                .consistency = Consistency::Ssp(2),
                .net = kRdma,
                .replication = 2},
           Case{.codec = "onebit", .feedback = ErrorFeedback::kBoth, .replication = 2},
           Case{.codec = "onebit", .feedback = ErrorFeedback::kWorker, .priority = 3},
           Case{"onebit", ErrorFeedback::kBoth, Consistency::Ssp(2)},
           Case{.codec = "onebit",
                .feedback = ErrorFeedback::kBoth,
                .consistency = Consistency::Ssp(2),
                .replication = 2},
           Case{"onebit", ErrorFeedback::kBoth, Consistency::Asp()},
           Case{.codec = "onebit",
                .feedback = ErrorFeedback::kBoth,
                .consistency = Consistency::Asp(),
                .replication = 2},
           Case{"qsgd:bits=4"}, Case{"qsgd:bits=4", ErrorFeedback::kOff},
           Case{"qsgd:bits=4", ErrorFeedback::kBoth, Consistency::Asp()}),
    NameOf);

// During training one worker switches the table from one codec to another; the other workers learn
// of it by the scheduler's maps. Pushes and pulls of each part have the size that its codec makes.
TEST(CompressedTables, GetOtherCodecsWhileTheyAreTrained) {
  for (const Consistency& consistency :
       {Consistency::Bsp(), Consistency::Ssp(3), Consistency::Asp()}) {
    LocalCluster::Setup setup;
    setup.servers = 2;
    setup.workers = 3;
    setup.config.replication = 2;
    setup.config.block_bytes = 8192;
    auto cluster = *LocalCluster::Start(setup);
    const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
      TableSpec spec = TableSpec::Dense("w", {100, 50});
      spec.updater = {"sgd", {{"learning_rate", 0.05}}};
      spec.consistency = consistency;
      if (consistency.is_bsp()) spec.aggregate = Aggregate::kMean;
      spec.codec = "none";
      spec.codecs = {"onebit", "zstd", "topk:0.1"};
      const auto table = worker->CreateTable(spec);
      ASSERT_TRUE(table.ok()) << table.status();
      std::vector<float> w(kElements), gradient(kElements);
      std::uint64_t bytes_before = 0;
      const std::vector<std::string> parts = {"none", "onebit", "zstd", "topk:0.1", "none"};
      for (const std::string& codec : parts) {
        ASSERT_TRUE(worker->Barrier().ok());
        if (worker->rank() == 0) {
          const absl::Status set = worker->SetCodec("w", codec).status();
          ASSERT_TRUE(set.ok()) << set;
        }
        for (int step = 0; step < 60; ++step) {
          ASSERT_TRUE(worker->Wait(table->Pull(std::span(w))).ok());
          for (std::uint64_t i = 0; i < kElements; ++i) gradient[i] = w[i] - TargetOf(i);
          const absl::Status pushed = worker->Wait(table->Push(std::span<const float>(gradient)));
          ASSERT_TRUE(pushed.ok()) << pushed;
          ASSERT_TRUE(worker->Clock().ok());
        }
        const std::uint64_t bytes = worker->stats().bytes_pushed - bytes_before;
        bytes_before = worker->stats().bytes_pushed;
        const std::uint64_t plain = 60 * kElements * sizeof(float);
        // The first steps have the codec of the part before, more of them on a busy machine.
        const std::map<std::string, double> most = {
            {"none", 1.01}, {"onebit", 0.5}, {"zstd", 1.01}, {"topk:0.1", 0.7}};
        EXPECT_LT(static_cast<double>(bytes), most.at(codec) * static_cast<double>(plain)) << codec;
        if (codec == "none") {
          EXPECT_GT(bytes, plain / 2);
        }
      }
      ASSERT_TRUE(worker->Barrier().ok());
      ASSERT_TRUE(worker->Wait(table->Pull(std::span(w))).ok());
      double squares = 0;
      for (std::uint64_t i = 0; i < kElements; ++i) {
        squares += std::pow(static_cast<double>(w[i]) - static_cast<double>(TargetOf(i)), 2);
      }
      EXPECT_LT(std::sqrt(squares / kElements), 0.01) << consistency.ToString();
      EXPECT_EQ(worker->stats().staleness_violations, 0u);
    });
    ASSERT_TRUE(ran.ok()) << ran;
  }
}

// A worker joins when the others have done a third, and leaves before they end. It gets whole
// blocks first; its pushes count, and its residual is lost when it leaves.
TEST(CompressedTables, TakeInWorkersThatComeLateAndLetThemGo) {
  for (const Consistency& consistency :
       {Consistency::Bsp(), Consistency::Ssp(2), Consistency::Asp()}) {
    LocalCluster::Setup setup;
    setup.servers = setup.workers = 2;
    setup.net = LocalCluster::Net::kTcp;
    setup.config.replication = 2;
    setup.config.block_bytes = 8192;
    auto cluster = *LocalCluster::Start(setup);
    const auto train = [&](Worker* worker, std::uint64_t from, std::uint64_t steps,
                           const std::function<void(std::uint64_t)>& at) {
      TableSpec spec = TableSpec::Dense("w", {100, 50});
      spec.updater = {"sgd", {{"learning_rate", 0.05}}};
      spec.consistency = consistency;
      if (consistency.is_bsp()) spec.aggregate = Aggregate::kMean;
      spec.codec = "onebit";
      const auto table = worker->CreateTable(spec);
      ASSERT_TRUE(table.ok()) << table.status();
      std::vector<float> w(kElements), gradient(kElements);
      for (std::uint64_t step = from; step < from + steps; ++step) {
        at(step);
        ASSERT_TRUE(worker->Wait(table->Pull(std::span(w))).ok());
        for (std::uint64_t i = 0; i < kElements; ++i) gradient[i] = w[i] - TargetOf(i);
        const absl::Status pushed =
            worker->Wait(table->Push(std::span<const float>(gradient), At(0.05, step % 3 == 0)));
        ASSERT_TRUE(pushed.ok()) << pushed;
        ASSERT_TRUE(worker->Clock().ok());
      }
      EXPECT_EQ(worker->stats().staleness_violations, 0u);
      double squares = 0;
      ASSERT_TRUE(worker->Wait(table->Pull(std::span(w))).ok());
      for (std::uint64_t i = 0; i < kElements; ++i) {
        squares += std::pow(static_cast<double>(w[i]) - static_cast<double>(TargetOf(i)), 2);
      }
      EXPECT_LT(std::sqrt(squares / kElements), 0.2) << consistency.ToString();
    };
    std::thread late;
    std::promise<void> joined, left;
    const std::shared_future<void> has_left = left.get_future().share();
    const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
      train(worker, 0, kSteps, [&](std::uint64_t step) {
        // With ASP the other one would be over before the third joins, and leave it its rank.
        if (step == kSteps - 20) has_left.wait();
        if (worker->rank() != 0 || step != kSteps / 3) return;
        late = std::thread([&] {
          Config config = cluster->WorkerConfig();
          config.elastic = true;
          auto third = cluster->Connect(config);
          ASSERT_TRUE(third.ok()) << third.status();
          EXPECT_EQ((*third)->rank(), 2u);
          const std::uint64_t from = (*third)->clock();
          joined.set_value();
          EXPECT_GE(from, static_cast<std::uint64_t>(kSteps) / 3);
          train(third->get(), from, 40, [](std::uint64_t) {});
          third->reset();
          left.set_value();
        });
        joined.get_future().wait();  // so that it has its steps before the others end
      });
    });
    late.join();
    ASSERT_TRUE(ran.ok()) << ran;
  }
}

TEST(CompressedTables, GetNoCodecThatTheyMayNotHave) {
  LocalCluster::Setup setup;
  setup.servers = setup.workers = 1;
  auto cluster = *LocalCluster::Start(setup);
  const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
    TableSpec spec = TableSpec::Dense("w", {100});
    spec.codecs = {"zstd"};
    ASSERT_TRUE(worker->CreateTable(spec).ok());
    const absl::Status other = worker->SetCodec("w", "onebit").status();
    EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(other.message(), HasSubstr("'w' may have codec none; zstd, but not \"onebit\""));
    EXPECT_EQ(worker->SetCodec("x", "zstd").status().code(), absl::StatusCode::kNotFound);
    EXPECT_TRUE(worker->SetCodec("w", "zstd").ok());
  });
  ASSERT_TRUE(ran.ok()) << ran;
}

TEST(CompressedTables, OptionsThatDoNotComposeAreRefusedInOneLine) {
  auto cluster = *LocalCluster::Start(LocalCluster::Setup());
  const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
    const auto refusal = [&](TableSpec spec, const std::string& codec,
                             ErrorFeedback feedback = ErrorFeedback::kAuto) {
      spec.codec = codec;
      spec.error_feedback = feedback;
      const absl::Status status = worker->CreateTable(spec).status();
      EXPECT_THAT(status.message(), testing::Not(HasSubstr("\n")));
      return std::string(status.message());
    };
    const TableSpec dense = TableSpec::Dense("w", {16});
    EXPECT_THAT(refusal(dense, "nosuch"), HasSubstr("there is no codec named 'nosuch'"));
    EXPECT_THAT(refusal(dense, "qsgd:bits=9"), HasSubstr("bits is 9, may be"));
    EXPECT_THAT(refusal(dense, "onebit:colour=1"), HasSubstr("no option colour"));
    EXPECT_THAT(refusal(dense, "none", ErrorFeedback::kBoth), HasSubstr("loses nothing"));
    EXPECT_THAT(refusal(TableSpec::Dense("w", {16}, DType::kInt32), "onebit"),
                HasSubstr("does not carry int32"));
    EXPECT_THAT(refusal(TableSpec::Ragged("r"), "onebit"), HasSubstr("not ragged"));
    EXPECT_THAT(refusal(TableSpec::Sparse("s", 4), "onebit", ErrorFeedback::kServer),
                HasSubstr("error_feedback may be worker or off"));
    TableSpec assign = dense;
    assign.updater.name = "assign";
    EXPECT_THAT(refusal(assign, "onebit"), HasSubstr("use a lossless codec"));
    TableSpec gradient = dense;
    gradient.updater.name = "gradient";
    gradient.consistency = Consistency::Asp();
    EXPECT_THAT(refusal(gradient, "none"), HasSubstr("only bsp"));
  });
  ASSERT_TRUE(ran.ok()) << ran;
}

}  // namespace
}  // namespace leeway::tests
