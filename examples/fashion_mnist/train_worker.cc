#include "examples/fashion_mnist/train_worker.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/recorder.h"
#include "examples/fashion_mnist/sharding.h"
#include "examples/fashion_mnist/totals.h"

namespace leeway::fashion_mnist {
namespace {

// Fast workers wait here for slow ones, which may be slow indeed.
constexpr absl::Duration kClosingTimeout = absl::Hours(24);

class TrainingRun {
 public:
  TrainingRun(const Settings& settings, const Dataset& data, std::unique_ptr<Model> model,
              Worker* worker)
      : settings_(settings),
        data_(data),
        model_(std::move(model)),
        worker_(worker),
        sharding_(data.train.size(), settings.batch, worker->num_workers(), settings.seed) {}

  absl::StatusOr<Outcome> Run(const Observer& observer) {
    if (absl::Status status = OpenTables(); !status.ok()) return status;
    // A cluster that starts from a checkpoint goes on at the checkpoint's clock, and a worker that
    // comes late at that of the others, which have passed the start.
    const std::size_t first = worker_->clock();
    if (first == 0) {
      if (absl::Status status = worker_->Barrier(Group::kWorkers, "start"); !status.ok()) {
        return status;
      }
    }
    const WorkerStats before = worker_->stats();
    const std::size_t steps = TotalSteps(settings_, sharding_);
    Recorder recorder(&data_.test, model_.get(), &observer, steps, first);

    for (std::size_t step = first; step < steps; ++step) {
      if (absl::Status status = PullParameters(); !status.ok()) return status;
      if (is_first() && step > first && step % sharding_.steps_per_epoch() == 0) {
        recorder.AddPoint(sharding_.EpochOf(step), values_);
      }
      const double loss = ComputeGradients(step);
      Dawdle();
      PushGradients(RateAt(settings_, step, steps));
      if (absl::Status status = worker_->Clock(); !status.ok()) return status;
      if (is_first()) recorder.AddStep(loss, batch_.size());
    }
    if (absl::Status status = worker_->Wait(pushes_); !status.ok()) return status;
    const WorkerStats after = worker_->stats();

    if (absl::Status status = worker_->Barrier(Group::kWorkers, "done", kClosingTimeout);
        !status.ok()) {
      return status;
    }
    Outcome outcome;
    outcome.steps = steps;
    outcome.steps_taken = steps - std::min(first, steps);
    outcome.wall_time_s = recorder.seconds();
    if (absl::Status status = GatherTotals(before, after, worker_, &outcome); !status.ok()) {
      return status;
    }
    if (!is_first()) return outcome;
    if (absl::Status status = PullParameters(); !status.ok()) return status;
    recorder.AddPoint(sharding_.EpochOf(steps), values_);
    outcome.curve = recorder.curve();
    outcome.values = std::move(values_);
    return outcome;
  }

 private:
  bool is_first() const { return worker_->rank() == 0; }

  // One dense table a parameter tensor. Every worker asks for all; the first one creates them.
  absl::Status OpenTables() {
    for (const Parameter& parameter : model_->parameters()) {
      absl::StatusOr<Table> table = worker_->CreateTable(TableFor(parameter, settings_));
      if (!table.ok()) return table.status();
      tables_.push_back(*std::move(table));
      values_.emplace_back(parameter.size());
      gradients_.emplace_back(parameter.size());
    }
    return absl::OkStatus();
  }

  // How long this waits depends on the table's consistency: in BSP until all workers have ended the
  // steps before this one, in SSP until the slowest is close enough, in ASP not at all.
  absl::Status PullParameters() {
    std::vector<Ticket> tickets = std::move(pushes_);
    pushes_.clear();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      tickets.push_back(tables_[i].Pull(std::span<float>(values_[i])));
    }
    return worker_->Wait(tickets);
  }

  double ComputeGradients(std::size_t step) {
    FillBatch(data_.train, sharding_.Take(step, worker_->rank()), &batch_);
    // Parts of a step may differ by a sample; dividing by their average size makes the workers'
    // mean the mean over all samples of the step.
    const double part = static_cast<double>(sharding_.StepSize(step)) / worker_->num_workers();
    return model_->Gradients(batch_, values_, part, &gradients_);
  }

  // The next pull waits for the tickets: until then the gradients must stay as they are.
  void PushGradients(std::optional<double> rate) {
    Options options;
    options.learning_rate = rate;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      pushes_.push_back(tables_[i].Push(std::span<const float>(gradients_[i]), options));
    }
  }

  void Dawdle() const {
    const auto slow = settings_.slow.find(worker_->rank());
    if (slow != settings_.slow.end()) absl::SleepFor(slow->second);
  }

  const Settings& settings_;
  const Dataset& data_;
  const std::unique_ptr<Model> model_;
  Worker* const worker_;
  Sharding sharding_;
  std::vector<Table> tables_;  // by parameter, like values_ and gradients_
  std::vector<Tensor> values_;
  std::vector<Tensor> gradients_;
  std::vector<Ticket> pushes_;
  Batch batch_;
};

}  // namespace

absl::StatusOr<Outcome> TrainWorker(const Settings& settings, const Dataset& data,
                                    const Observer& observer, Worker* worker) {
  absl::StatusOr<std::unique_ptr<Model>> model = MakeModel(settings.model, settings.seed);
  if (!model.ok()) return model.status();
  return TrainingRun(settings, data, *std::move(model), worker).Run(observer);
}

}  // namespace leeway::fashion_mnist
