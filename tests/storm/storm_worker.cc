#include "tests/storm/storm_worker.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/recorder.h"
#include "examples/fashion_mnist/settings.h"
#include "examples/fashion_mnist/sharding.h"
#include "leeway/worker.h"
#include "runtime/base/status_macros.h"
#include "tests/storm/counters.h"
#include "tests/storm/pace.h"
#include "tests/storm/traced_tables.h"
#include "tests/storm/worker_reports.h"

namespace leeway::storm {
namespace {

namespace fm = fashion_mnist;

constexpr double kLearningRate = 0.0015;
// The last barrier waits for workers that have come back, too.
constexpr absl::Duration kClosingTimeout = absl::Minutes(10);

fm::Settings SettingsFor(const WorkerOptions& options, Consistency consistency,
                         const Worker& worker) {
  fm::Settings settings;
  settings.model = options.model;
  settings.consistency = consistency;
  settings.workers = worker.num_workers();
  settings.updater = {.name = "adam", .parameters = {{"learning_rate", kLearningRate}}};
  settings.steps = options.steps;
  return settings;
}

// The times at which pushes to all shards were acknowledged. Called on the thread that turns the
// loop.
class Acknowledgements {
 public:
  void Add() {
    const std::lock_guard<std::mutex> lock(mutex_);
    times_.push_back(absl::Now());
  }
  std::vector<absl::Time> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(times_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<absl::Time> times_;  // under mutex_
};

class StormRun {
 public:
  StormRun(fm::Settings settings, TracerOptions tracing, const fm::Dataset* data,
           std::unique_ptr<fm::Model> model, Worker* worker, const Pace* pace)
      : settings_(std::move(settings)),
        tracing_(std::move(tracing)),
        data_(data),
        model_(std::move(model)),
        worker_(worker),
        pace_(pace),
        sharding_(data->train.size(), settings_.batch, worker->num_workers(), settings_.seed) {}

  absl::Status Run() {
    LEEWAY_RETURN_IF_ERROR(OpenTables());
    Say(Began{worker_->rank(), worker_->clock()});
    for (std::uint64_t step = worker_->clock(); step < settings_.steps; ++step) {
      const absl::Time before = absl::Now();
      LEEWAY_RETURN_IF_ERROR(PullParameters(tracer_->Read(step)));
      absl::Duration waited = absl::Now() - before;
      ComputeGradients(step);
      absl::SleepFor(pace_->Get());
      Push(step);
      const absl::Time pushed = absl::Now();
      LEEWAY_RETURN_IF_ERROR(tracer_->BeforeClock());
      LEEWAY_RETURN_IF_ERROR(worker_->Clock());
      const absl::Time end = absl::Now();
      waited += end - pushed;
      Say(Step{step, end, waited, acknowledgements_->Take()});
    }
    LEEWAY_RETURN_IF_ERROR(worker_->Wait(std::exchange(pushes_, {})));
    LEEWAY_RETURN_IF_ERROR(TellDropped());
    LEEWAY_RETURN_IF_ERROR(worker_->Barrier(Group::kWorkers, "done", kClosingTimeout));
    LEEWAY_RETURN_IF_ERROR(worker_->Wait(tracer_->ReadAll()));
    if (worker_->rank() == 0) LEEWAY_RETURN_IF_ERROR(TellResults());
    const WorkerStats stats = worker_->stats();
    Say(Finished{stats.resends, stats.staleness_violations, stats.max_staleness});
    return worker_->Leave();
  }

 private:
  absl::Status OpenTables() {
    for (const fm::Parameter& parameter : model_->parameters()) {
      LEEWAY_ASSIGN_OR_RETURN(Table table,
                              worker_->CreateTable(fm::TableFor(parameter, settings_)));
      tables_.push_back(std::move(table));
      values_.emplace_back(parameter.size());
      gradients_.emplace_back(parameter.size());
    }
    for (const auto& [name, consistency] :
         {std::pair("mode", settings_.consistency), std::pair("asp", Consistency::Asp())}) {
      LEEWAY_ASSIGN_OR_RETURN(Counters counters, Counters::Create(name, consistency, worker_));
      counters_.push_back(std::move(counters));
    }
    LEEWAY_ASSIGN_OR_RETURN(Tracer tracer,
                            Tracer::Create(tracing_, settings_.consistency, worker_));
    tracer_.emplace(std::move(tracer));
    return absl::OkStatus();
  }

  // Also waits for these tickets and the pushes of the step before.
  absl::Status PullParameters(std::vector<Ticket> tickets) {
    Move(std::exchange(pushes_, {}), &tickets);
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      tickets.push_back(tables_[i].Pull(std::span<float>(values_[i])));
    }
    LEEWAY_RETURN_IF_ERROR(worker_->Wait(tickets));
    return TellDropped();
  }

  absl::Status TellDropped() {
    for (Counters& counters : counters_) {
      LEEWAY_ASSIGN_OR_RETURN(const std::vector<Dropped> dropped, counters.TakeDropped());
      for (const Dropped& one : dropped) Say(one);
    }
    return absl::OkStatus();
  }

  void ComputeGradients(std::uint64_t step) {
    fm::FillBatch(data_->train, sharding_.Take(step, worker_->rank()), &batch_);
    const double part = static_cast<double>(sharding_.StepSize(step)) / worker_->num_workers();
    model_->Gradients(batch_, values_, part, &gradients_);
  }

  void Push(std::uint64_t step) {
    Options options;
    options.learning_rate = fm::RateAt(settings_, step, settings_.steps);
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      pushes_.push_back(tables_[i].Push(std::span<const float>(gradients_[i]), options));
    }
    for (Counters& counters : counters_) {
      Move(counters.Push(step, [told = acknowledgements_] { told->Add(); }), &pushes_);
    }
    Move(tracer_->Push(step), &pushes_);
  }

  static void Move(std::vector<Ticket> from, std::vector<Ticket>* to) {
    for (Ticket& ticket : from) to->push_back(std::move(ticket));
  }

  absl::Status TellResults() {
    LEEWAY_RETURN_IF_ERROR(PullParameters({}));
    const fm::Observer nobody;
    fm::Recorder recorder(&data_->test, model_.get(), &nobody, settings_.steps);
    recorder.AddPoint(0, values_);
    Say(Accuracy{recorder.curve().back().test_accuracy});
    for (Counters& counters : counters_) {
      LEEWAY_ASSIGN_OR_RETURN(const std::vector<Tally> tallies, counters.Read());
      for (const Tally& tally : tallies) Say(tally);
    }
    return absl::OkStatus();
  }

  // At once and in one piece: the last report is there even if this process is killed.
  static void Say(const Entry& entry) {
    std::puts(ToLine(entry).c_str());
    std::fflush(stdout);
  }

  const fm::Settings settings_;
  const TracerOptions tracing_;
  const fm::Dataset* const data_;
  const std::unique_ptr<fm::Model> model_;
  Worker* const worker_;
  const Pace* const pace_;
  fm::Sharding sharding_;
  std::vector<Table> tables_;  // by parameter, like values_ and gradients_
  std::vector<fm::Tensor> values_, gradients_;
  std::vector<Counters> counters_;
  std::optional<Tracer> tracer_;
  std::vector<Ticket> pushes_;
  std::shared_ptr<Acknowledgements> acknowledgements_ = std::make_shared<Acknowledgements>();
  fm::Batch batch_;
};

absl::Status Train(const WorkerOptions& options) {
  LEEWAY_ASSIGN_OR_RETURN(const Consistency consistency, Consistency::Parse(options.mode));
  LEEWAY_ASSIGN_OR_RETURN(const Pace pace, Pace::Open(options.pace));
  LEEWAY_ASSIGN_OR_RETURN(const fm::Dataset data, fm::LoadDataset(fm::kDefaultFolder));
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::Connect());
  fm::Settings settings = SettingsFor(options, consistency, *worker);
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<fm::Model> model,
                          fm::MakeModel(settings.model, settings.seed));
  TracerOptions tracing{
      .file = options.history, .steps = settings.steps, .pushes_before = options.pushes_before};
  StormRun run(std::move(settings), std::move(tracing), &data, std::move(model), worker.get(),
               &pace);
  const absl::Status status = run.Run();
  worker.reset();  // before the gradients, which it may still be sending
  return status;
}

}  // namespace

int RunStormWorker(const WorkerOptions& options) {
  const absl::Status status = Train(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "leeway-storm: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace leeway::storm
