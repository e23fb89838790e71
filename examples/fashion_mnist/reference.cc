#include "examples/fashion_mnist/reference.h"

#include <utility>
#include <vector>

#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/recorder.h"
#include "examples/fashion_mnist/sharding.h"

namespace leeway::fashion_mnist {
namespace {

using Tables = std::vector<std::unique_ptr<LocalTable>>;

absl::Status PullAll(const Tables& tables, std::vector<Tensor>* values) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (absl::Status status = tables[i]->Pull((*values)[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PushAll(const Tables& tables, const std::vector<Tensor>& gradients,
                     std::optional<double> rate) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (absl::Status status = tables[i]->Push(gradients[i], rate); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> TrainReference(const Settings& settings, const Dataset& data,
                                       const Observer& observer,
                                       const LocalTableFactory& make_table) {
  absl::StatusOr<std::unique_ptr<Model>> made = MakeModel(settings.model, settings.seed);
  if (!made.ok()) return made.status();
  Model* model = made->get();
  Tables tables;
  std::vector<Tensor> values, gradients;
  for (const Parameter& parameter : model->parameters()) {
    absl::StatusOr<std::unique_ptr<LocalTable>> table = make_table(TableFor(parameter, settings));
    if (!table.ok()) return table.status();
    tables.push_back(*std::move(table));
    values.emplace_back(parameter.size());
    gradients.emplace_back(parameter.size());
  }

  Sharding sharding(data.train.size(), settings.batch * settings.workers, 1, settings.seed);
  const std::size_t steps = TotalSteps(settings, sharding);
  Recorder recorder(&data.test, model, &observer, steps);
  Batch batch;
  for (std::size_t step = 0; step < steps; ++step) {
    if (absl::Status status = PullAll(tables, &values); !status.ok()) return status;
    if (step > 0 && step % sharding.steps_per_epoch() == 0) {
      recorder.AddPoint(sharding.EpochOf(step), values);
    }
    FillBatch(data.train, sharding.Take(step, 0), &batch);
    const double loss =
        model->Gradients(batch, values, static_cast<double>(batch.size()), &gradients);
    if (absl::Status status = PushAll(tables, gradients, RateAt(settings, step, steps));
        !status.ok())
      return status;
    recorder.AddStep(loss, batch.size());
  }
  Outcome outcome;
  outcome.steps = steps;
  outcome.wall_time_s = recorder.seconds();
  outcome.idle_s = {0};
  if (absl::Status status = PullAll(tables, &values); !status.ok()) return status;
  recorder.AddPoint(sharding.EpochOf(steps), values);
  outcome.curve = recorder.curve();
  outcome.values = std::move(values);
  return outcome;
}

}  // namespace leeway::fashion_mnist
