// Compressed training on clusters of processes: failures and moves of servers change no bit of the
// result.
//
// In BSP contributions are added in worker order, so that two runs on the same gradients give the
// same bits as long as every residual, on both ends, survives. identity_test.cc shows that the
// undisturbed run is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leeway/worker.h"
#include "runtime/base/random.h"
#include "runtime/testing/temp_folder.h"
#include "tests/commands/cluster.h"

namespace leeway::tests {
namespace processes_test {

constexpr int kServers = 3;
constexpr std::uint32_t kWorkers = 2;
constexpr std::uint64_t kMiddle = 10, kEnd = 24;  // clocks
constexpr std::uint64_t kElements = 3000, kKeys = 60, kWidth = 16;

enum class Event { kNone, kFailover, kMove, kRestore, kRestoreWithoutResiduals };

const char* Name(Event event) {
  const char* const names[] = {"undisturbed", "failover", "move", "restore",
                               "restore without the workers' residuals"};
  return names[static_cast<int>(event)];
}

// The tables that one worker trains, with their values at the end.
struct Model {
  std::vector<float> dense = std::vector<float>(kElements);  // a parameter table
  std::vector<float> reduced =
      std::vector<float>(kElements);  // updated by the worker itself, by a gradient table
  std::vector<float> sparse = std::vector<float>(kKeys * kWidth);
  friend bool operator==(const Model&, const Model&) = default;
};

// Reports how much differs instead of the bytes.
void ExpectEqual(const std::vector<Model>& one, const std::vector<Model>& other,
                 const std::string& when) {
  for (std::size_t rank = 0; rank < kWorkers; ++rank) {
    for (const auto part : {&Model::dense, &Model::reduced, &Model::sparse}) {
      const std::vector<float>&a = one[rank].*part, &b = other[rank].*part;
      std::size_t differ = 0;
      for (std::size_t i = 0; i < a.size(); ++i) differ += a[i] != b[i] ? 1 : 0;
      EXPECT_EQ(differ, 0u) << when << ": of " << a.size() << " elements of "
                            << (part == &Model::dense     ? "the dense table"
                                : part == &Model::reduced ? "what the gradient table updates"
                                                          : "the sparse table")
                            << ", worker " << rank;
    }
  }
}

TableSpec Compressed(TableSpec spec, const std::string& updater, const std::string& codec) {
  spec.updater.name = updater;
  if (updater == "sgd") spec.updater.parameters["learning_rate"] = 0.1;
  spec.codec = codec;
  if (spec.kind == TableKind::kDense) spec.aggregate = Aggregate::kMean;
  return spec;
}

// A worker's part of the training: the same gradients in each run.
class Trainer {
 public:
  Trainer(Worker* worker, const std::string& codec, Model* model)
      : worker_(worker), model_(*model) {
    Open(Compressed(TableSpec::Dense("w", {60, kElements / 60}), "sgd", codec), &dense_);
    Open(Compressed(TableSpec::Dense("g", {kElements}), "gradient", codec), &reduced_);
    // Rows of sparse tables have no momentum.
    Open(Compressed(TableSpec::Sparse("e", kWidth), "sgd", codec.substr(0, codec.find(','))),
         &sparse_);
    for (std::uint64_t key = 0; key < kKeys; ++key) keys_.push_back(key * key + 3);
  }

  void RunUntil(std::uint64_t end) {
    while (!testing::Test::HasFailure() && worker_->clock() < end) Step();
  }
  void Read() {
    Expect(worker_->Wait(dense_.Pull(std::span(model_.dense))));
    Expect(worker_->Wait(sparse_.Pull(keys_, std::span(model_.sparse))));
  }

 private:
  static void Expect(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }
  void Open(const TableSpec& spec, Table* table) {
    auto created = worker_->CreateTable(spec);
    Expect(created.status());
    if (created.ok()) *table = *std::move(created);
  }

  void Step() {
    const std::uint64_t clock = worker_->clock();
    Options options;
    options.learning_rate = clock % 5 == 3 ? 0.02 : 0.1;
    Expect(worker_->Wait(dense_.Pull(std::span(model_.dense))));
    const std::vector<float> dense = Gradient(0, kElements), reduced = Gradient(1, kElements),
                             sparse = Gradient(2, kKeys * kWidth);
    std::vector<float> mean(kElements);
    const std::vector<Ticket> tickets = {
        dense_.Push(std::span<const float>(dense), options),
        sparse_.Push(keys_, std::span<const float>(sparse), options),
        reduced_.PushPull(std::span<const float>(reduced), std::span(mean), options)};
    Expect(worker_->Clock());
    Expect(worker_->Wait(tickets));
    for (std::uint64_t i = 0; i < kElements; ++i) {
      model_.reduced[i] -= static_cast<float>(*options.learning_rate) * mean[i];
    }
  }
  std::vector<float> Gradient(std::uint64_t table, std::uint64_t size) const {
    std::vector<float> gradient(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      gradient[i] =
          static_cast<float>(runtime::NormalAt(worker_->clock() * 3 + table, worker_->rank(), i));
    }
    return gradient;
  }

  Worker* const worker_;
  Model& model_;
  Table dense_, reduced_, sparse_;
  std::vector<std::uint64_t> keys_;
};

class CompressedProcessesTest : public CommandsTest {
 protected:
  // The models of both workers.
  std::vector<Model> Train(const std::string& van, const std::string& codec, Event event) {
    std::vector<Model> models(kWorkers);
    if (event == Event::kRestore || event == Event::kRestoreWithoutResiduals) {
      const bool with_residuals = event == Event::kRestore;
      std::string saved;
      {
        Cluster cluster(kServers - 1, kWorkers, EnvironmentOf(van));
        ForEachWorker(cluster, [&](Worker* worker) {
          Trainer trainer(worker, codec, &models[worker->rank()]);
          trainer.RunUntil(kMiddle);
          Save(worker, &saved);
        });
      }
      Environment environment = EnvironmentOf(van);
      environment["LEEWAY_RESTORE"] = saved;
      Cluster cluster(kServers, kWorkers, environment);
      ForEachWorker(cluster, [&](Worker* worker) {
        EXPECT_EQ(worker->clock(), kMiddle);
        Trainer trainer(worker, codec, &models[worker->rank()]);
        if (with_residuals) {
          const absl::Status loaded = worker->LoadResiduals(saved);
          EXPECT_TRUE(loaded.ok()) << loaded;
        }
        trainer.RunUntil(kEnd);
        trainer.Read();
      });
      return models;
    }
    Cluster cluster(kServers, kWorkers, EnvironmentOf(van));
    std::thread mover;
    ForEachWorker(cluster, [&](Worker* worker) {
      Trainer trainer(worker, codec, &models[worker->rank()]);
      trainer.RunUntil(kMiddle);
      if (worker->rank() == 0 && event == Event::kFailover) cluster.server(1)->Signal(SIGKILL);
      if (worker->rank() == 0 && event == Event::kMove) {
        mover = std::thread([&] { Drain(cluster); });
      }
      trainer.RunUntil(kEnd - 1);
      if (worker->rank() == 0 && mover.joinable()) mover.join();
      trainer.RunUntil(kEnd);
      trainer.Read();
    });
    return models;
  }

 private:
  static Environment EnvironmentOf(const std::string& van) {
    return {{"LEEWAY_VAN", van},
            {"LEEWAY_HOST", "127.0.0.1"},
            {"LEEWAY_REPLICATION", "2"},
            {"LEEWAY_BLOCK_BYTES", "4096"},
            {"LEEWAY_NUM_SHARDS", "8"},
            {"LEEWAY_HEARTBEAT_INTERVAL_MS", "200"},
            {"LEEWAY_SUSPICION_MS", "300"},
            {"LEEWAY_RESEND_INTERVAL_MS", "300"}};
  }

  static void ForEachWorker(const Cluster& cluster, const std::function<void(Worker*)>& body) {
    Environment environment = cluster.environment();
    environment["LEEWAY_ROLE"] = "worker";
    const auto config = Config::From([&](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      if (found == environment.end()) return std::nullopt;
      return found->second;
    });
    ASSERT_TRUE(config.ok()) << config.status();
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      threads.emplace_back([&] {
        const auto worker = Worker::Connect(*config);
        ASSERT_TRUE(worker.ok()) << worker.status();
        body(worker->get());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static void Drain(const Cluster& cluster) {
    const Ended ended = RunToEnd({LEEWAY_BINARY, "drain", "server:1"}, cluster.environment());
    EXPECT_EQ(ended.code, 0) << ended.errors;
  }

  // All workers are in the same clock, and have pushed nothing of it.
  void Save(Worker* worker, std::string* saved) {
    EXPECT_TRUE(worker->Barrier().ok());
    if (worker->rank() == 0) {
      const auto path = worker->Checkpoint(folder_);
      EXPECT_TRUE(path.ok()) << path.status();
      if (path.ok()) *saved = *path;
    }
    EXPECT_TRUE(worker->Barrier().ok());
    if (worker->rank() == 0) return;
    const absl::Status written = worker->SaveResiduals(*saved);
    EXPECT_TRUE(written.ok()) << written;
  }

  const runtime::TempFolder temp_folder_;
  const std::string folder_ = temp_folder_.path();
};

TEST_F(CompressedProcessesTest, EndWithTheSameBitsWhateverHappensToServers) {
  for (const std::string codec : {"onebit", "topk:0.05,momentum=0.5"}) {
    const std::vector<Model> undisturbed = Train("tcp", codec, Event::kNone);
    EXPECT_TRUE(undisturbed[0] == undisturbed[1]);
    for (const Event event : {Event::kFailover, Event::kMove, Event::kRestore}) {
      ExpectEqual(Train("tcp", codec, event), undisturbed, absl::StrCat(codec, ", ", Name(event)));
    }
    EXPECT_FALSE(Train("tcp", codec, Event::kRestoreWithoutResiduals) == undisturbed) << codec;
    if (HasFailure()) return;
  }
}

TEST_F(CompressedProcessesTest, EndWithTheSameBitsOverEveryVan) {
  const std::vector<Model> undisturbed = Train("tcp", "onebit", Event::kNone);
  for (const std::string van : {"shm", "zmq"}) {
    for (const Event event : {Event::kNone, Event::kFailover, Event::kMove}) {
      ExpectEqual(Train(van, "onebit", event), undisturbed, absl::StrCat(van, ", ", Name(event)));
    }
  }
}

}  // namespace processes_test
}  // namespace leeway::tests
