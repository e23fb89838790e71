#include "examples/wordnet/train_worker.h"

#include <array>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "examples/wordnet/complex_model.h"
#include "examples/wordnet/ranking.h"
#include "examples/wordnet/sampler.h"

namespace leeway::wordnet {
namespace {

// Worker 0 evaluates while the others wait.
constexpr absl::Duration kMeetingTimeout = absl::Hours(1);

TableSpec RowsOf(const std::string& name, const Settings& settings) {
  TableSpec spec = TableSpec::Sparse(name, settings.width);
  spec.updater = {.name = settings.updater,
                  .parameters = {{"learning_rate", settings.learning_rate}}};
  spec.initializer = Initializer::Normal(0, settings.deviation, settings.seed);
  spec.consistency = settings.consistency;
  spec.codec = settings.codec;
  if (settings.plain_epochs > 0) {
    spec.codec = "none";
    spec.codecs = {settings.codec};
  }
  spec.error_feedback = settings.error_feedback;
  return spec;
}

class TrainingRun {
 public:
  TrainingRun(const Settings& settings, const Graph& graph, Worker* worker)
      : settings_(settings),
        graph_(graph),
        worker_(worker),
        sampler_(&graph, settings.batch, settings.negatives, worker->num_workers(), settings.seed),
        model_(settings.width, settings.decay) {}

  absl::StatusOr<Outcome> Run(const std::function<void(const EpochPoint&)>& on_epoch) {
    if (absl::Status status = OpenTables(); !status.ok()) return status;
    Outcome outcome;
    if (is_first()) {
      const absl::StatusOr<Ranking> ranking = Evaluate();
      if (!ranking.ok()) return ranking.status();
      outcome.mrr_untrained = ranking->mrr;
    }
    if (absl::Status status = Meet("start"); !status.ok()) return status;
    const WorkerStats before = worker_->stats();
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };

    std::size_t step = 0;
    for (std::size_t epoch = 1; epoch <= settings_.epochs; ++epoch) {
      if (absl::Status status = ChooseCodec(epoch); !status.ok()) return status;
      double loss = 0;
      std::size_t triples = 0;
      for (; step < epoch * sampler_.steps_per_epoch(); ++step) {
        if (absl::Status status = TakeStep(step, &loss, &triples); !status.ok()) return status;
      }
      if (is_first()) {
        on_epoch({.epoch = epoch,
                  .epochs = settings_.epochs,
                  .loss = loss / static_cast<double>(triples),
                  .seconds = seconds()});
      }
    }
    if (absl::Status status = worker_->Wait(pushes_); !status.ok()) return status;
    const WorkerStats after = worker_->stats();
    if (absl::Status status = Meet("done"); !status.ok()) return status;
    outcome.seconds = seconds();
    if (absl::Status status = AddUpBytes(before, after, &outcome); !status.ok()) return status;
    if (!is_first()) return outcome;
    const absl::StatusOr<Ranking> ranking = Evaluate();
    if (!ranking.ok()) return ranking.status();
    outcome.mrr = ranking->mrr;
    outcome.hits_at_10 = ranking->hits_at_10;
    return outcome;
  }

 private:
  bool is_first() const { return worker_->rank() == 0; }

  absl::Status Meet(absl::string_view name) {
    return worker_->Barrier(Group::kWorkers, name, kMeetingTimeout);
  }

  absl::Status OpenTables() {
    absl::StatusOr<Table> entities = worker_->CreateTable(RowsOf("wordnet.entities", settings_));
    if (!entities.ok()) return entities.status();
    absl::StatusOr<Table> relations = worker_->CreateTable(RowsOf("wordnet.relations", settings_));
    if (!relations.ok()) return relations.status();
    entities_ = *std::move(entities);
    relations_ = *std::move(relations);
    return absl::OkStatus();
  }

  // All workers switch at one clock, soon after this.
  absl::Status ChooseCodec(std::size_t epoch) {
    if (!is_first() || settings_.plain_epochs == 0 || epoch != settings_.plain_epochs + 1) {
      return absl::OkStatus();
    }
    for (const char* const table : {"wordnet.entities", "wordnet.relations"}) {
      const auto clock = worker_->SetCodec(table, settings_.codec);
      if (!clock.ok()) return clock.status();
    }
    return absl::OkStatus();
  }

  // The gradients of the step before may still be on their way when this one begins: two batches
  // take turns.
  absl::Status TakeStep(std::size_t step, double* loss, std::size_t* triples) {
    Batch& batch = batches_[step % batches_.size()];
    sampler_.Fill(step, worker_->rank(), &batch);
    batch.entity_rows.resize(batch.entities.size() * settings_.width);
    batch.relation_rows.resize(batch.relations.size() * settings_.width);
    std::vector<Ticket> tickets = std::move(pushes_);
    tickets.push_back(entities_.Pull(batch.entities, std::span<float>(batch.entity_rows)));
    tickets.push_back(relations_.Pull(batch.relations, std::span<float>(batch.relation_rows)));
    if (absl::Status status = worker_->Wait(tickets); !status.ok()) return status;
    *loss += model_.Gradients(&batch);
    *triples += batch.triples.size();
    Options options;
    if (settings_.rate_falls) {
      const std::size_t steps = settings_.epochs * sampler_.steps_per_epoch();
      options.learning_rate =
          settings_.learning_rate * (1 - static_cast<double>(step) / static_cast<double>(steps));
    }
    pushes_ = {
        entities_.Push(batch.entities, std::span<const float>(batch.entity_gradients), options),
        relations_.Push(batch.relations, std::span<const float>(batch.relation_gradients),
                        options)};
    return worker_->Clock();
  }

  absl::StatusOr<Ranking> Evaluate() {
    std::vector<std::uint64_t> entities(graph_.entities), relations(graph_.relations);
    std::iota(entities.begin(), entities.end(), std::uint64_t{0});
    std::iota(relations.begin(), relations.end(), std::uint64_t{0});
    std::vector<float> entity_rows(entities.size() * settings_.width);
    std::vector<float> relation_rows(relations.size() * settings_.width);
    const Ticket pulls[] = {entities_.Pull(entities, std::span<float>(entity_rows)),
                            relations_.Pull(relations, std::span<float>(relation_rows))};
    if (absl::Status status = worker_->Wait(pulls); !status.ok()) return status;
    return FilteredRanking(graph_, settings_.width, entity_rows, relation_rows);
  }

  // Every worker adds its pushed and pulled bytes to a table of two numbers.
  absl::Status AddUpBytes(const WorkerStats& before, const WorkerStats& after, Outcome* outcome) {
    TableSpec spec = TableSpec::Dense("wordnet.bytes", {2}, DType::kInt64);
    spec.updater.name = "add";
    spec.consistency = Consistency::Asp();
    const absl::StatusOr<Table> table = worker_->CreateTable(spec);
    if (!table.ok()) return table.status();
    std::array<std::int64_t, 2> bytes = {
        static_cast<std::int64_t>(after.bytes_pushed - before.bytes_pushed),
        static_cast<std::int64_t>(after.bytes_pulled - before.bytes_pulled)};
    absl::Status status = worker_->Wait(table->Push(std::span<const std::int64_t>(bytes)));
    if (!status.ok()) return status;
    if (status = Meet("bytes"); !status.ok()) return status;
    status = worker_->Wait(table->Pull(std::span<std::int64_t>(bytes)));
    outcome->bytes_pushed = static_cast<std::uint64_t>(bytes[0]);
    outcome->bytes_pulled = static_cast<std::uint64_t>(bytes[1]);
    return status;
  }

  const Settings& settings_;
  const Graph& graph_;
  Worker* const worker_;
  Sampler sampler_;
  ComplexModel model_;
  Table entities_, relations_;
  std::array<Batch, 2> batches_;
  std::vector<Ticket> pushes_;
};

}  // namespace

absl::StatusOr<Outcome> TrainWorker(const Settings& settings, const Graph& graph,
                                    const std::function<void(const EpochPoint&)>& on_epoch,
                                    Worker* worker) {
  return TrainingRun(settings, graph, worker).Run(on_epoch);
}

}  // namespace leeway::wordnet
