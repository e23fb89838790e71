#include "benchmarks/lab/engine/train.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "benchmarks/lab/experiment/straggler.h"
#include "leeway/local_sgd.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

constexpr absl::Duration kBarrierPatience = absl::Hours(24);  // the others may be slow indeed
constexpr double kLookAgain_s = 0.01;                         // for what no message tells
constexpr std::uint64_t kProbes = 8;  // steps by which a worker's speed is measured
constexpr std::uint64_t kStepSeeds = 0x57e9;
constexpr std::size_t kTimelineSteps = 400;

std::uint64_t SamplesOf(const RunContext& context) {
  return static_cast<std::uint64_t>(context.plan.epochs *
                                    static_cast<double>(context.workload->samples()));
}

// All of a dense table, or those rows of a sparse one, into `values`, which are made as long.
Ticket PullInto(const Table& table, const std::vector<std::uint64_t>& keys,
                std::vector<float>* values) {
  const TableSpec& spec = table.spec();
  const bool dense = spec.kind == TableKind::kDense;
  values->resize(dense ? spec.NumElements() : keys.size() * spec.row_width);
  return dense ? table.Pull(std::span<float>(*values))
               : table.Pull(std::span<const std::uint64_t>(keys), std::span<float>(*values));
}

class TrainingRun {
 public:
  TrainingRun(const RunContext& context, Surroundings* time, Worker* worker)
      : context_(context),
        plan_(context.plan),
        workload_(*context.workload),
        time_(time),
        worker_(worker),
        straggler_(*Straggler::Parse(plan_.straggler)) {}

  absl::StatusOr<WorkerRecord> Run() {
    LEEWAY_RETURN_IF_ERROR(OpenTables());
    LEEWAY_RETURN_IF_ERROR(ShareOut());
    if (worker_->rank() == 0) SleepUntil([&] { return context_.progress->watched != 0; });
    LEEWAY_RETURN_IF_ERROR(worker_->Barrier(Group::kWorkers, "start", kBarrierPatience));
    LEEWAY_RETURN_IF_ERROR(plan_.local_steps > 0 ? TrainLocally() : TrainByGradients());
    record_.end_s = time_->Now();
    const WorkerStats stats = worker_->stats();
    record_.clock_staleness = stats.staleness_histogram;
    record_.dropped = stats.parts_dropped;
    record_.violations = stats.staleness_violations;
    ++context_.progress->workers_done;
    // The tables are there until the last worker has left.
    if (worker_->rank() == 0) LEEWAY_RETURN_IF_ERROR(StayForTheEvaluator());
    return std::move(record_);
  }

 private:
  // Nobody waits for this worker meanwhile: its clock goes on. Where clocks close by workers that
  // end them, all workers take the same number of steps, and none is left to wait.
  absl::Status StayForTheEvaluator() {
    const bool goes_on = !tables_.front().spec().consistency.closes_clocks();
    while (context_.progress->evaluated == 0) {
      if (goes_on) LEEWAY_RETURN_IF_ERROR(worker_->Clock());
      time_->Sleep(std::clamp(plan_.step_ms * 1e-3 / 4, 1e-4, kLookAgain_s));
    }
    return absl::OkStatus();
  }

  void SleepUntil(absl::FunctionRef<bool()> holds) {
    while (!holds()) time_->Sleep(kLookAgain_s);
  }

  absl::Status OpenTables() {
    LEEWAY_ASSIGN_OR_RETURN(const auto specs, TablesOf(plan_, workload_.tables()));
    step_.keys.resize(specs.size());
    step_.values.resize(specs.size());
    step_.gradients.resize(specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      LEEWAY_ASSIGN_OR_RETURN(Table table, worker_->CreateTable(specs[i]));
      tables_.push_back(std::move(table));
      if (specs[i].kind == TableKind::kDense) step_.values[i].resize(specs[i].NumElements());
      step_.gradients[i].resize(step_.values[i].size());
    }
    return absl::OkStatus();
  }

  // Each worker measures its own speed, and all share the samples out by what all have measured.
  absl::Status ShareOut() {
    std::vector<std::uint32_t> sizes(plan_.workers, plan_.batch);
    if (plan_.balance == "speed") {
      const double begin = time_->Now();
      for (std::uint64_t i = 0; i < kProbes; ++i) Probe(i);
      context_.progress->speed[worker_->rank()] = kProbes / (time_->Now() - begin);
      LEEWAY_RETURN_IF_ERROR(worker_->Barrier(Group::kWorkers, "speeds", kBarrierPatience));
      const std::atomic<double>* const speeds = context_.progress->speed;
      sizes = BalancedSizes(plan_.batch, std::vector<double>(speeds, speeds + plan_.workers));
    }
    batches_.emplace(workload_.samples(), std::move(sizes), plan_.seed);
    return absl::OkStatus();
  }

  // A step like those of training, whose gradient nobody uses.
  void Probe(std::uint64_t step) {
    samples_.resize(plan_.batch);
    std::iota(samples_.begin(), samples_.end(), 0u);
    Step probe;
    probe.keys.resize(tables_.size());
    probe.values.resize(tables_.size());
    probe.gradients.resize(tables_.size());
    workload_.Choose(samples_, StepSeed(step), &probe);
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const TableSpec& spec = tables_[i].spec();
      probe.values[i].resize(spec.kind == TableKind::kDense
                                 ? spec.NumElements()
                                 : probe.keys[i].size() * spec.row_width);
      probe.gradients[i].resize(probe.values[i].size());
    }
    Compute(step, plan_.batch, [&] { workload_.Gradient(samples_, StepSeed(step), &probe); });
  }

  // All workers together have processed the samples. Where workers go step by step together, each
  // takes as many steps as that needs.
  bool IsOver(std::uint64_t step) const {
    if (tables_.front().spec().consistency.closes_clocks()) {
      const std::uint64_t step_samples = std::uint64_t{plan_.batch} * plan_.workers;
      return step * step_samples >= SamplesOf(context_);
    }
    return context_.progress->samples >= SamplesOf(context_);
  }

  void Compute(std::uint64_t step, std::size_t samples, absl::FunctionRef<void()> work) {
    const double usual_s =
        plan_.step_ms * 1e-3 * static_cast<double>(samples) / static_cast<double>(plan_.batch);
    time_->Compute(
        usual_s,
        [&](double begin_s, double usual) {
          return straggler_.StepSeconds(plan_.seed, worker_->rank(), step, begin_s, usual);
        },
        work);
  }

  void ComputeGradient(std::uint64_t step) {
    double loss = 0;
    Compute(step, samples_.size(),
            [&] { loss = workload_.Gradient(samples_, StepSeed(step), &step_); });
    record_.losses.push_back(loss / static_cast<double>(samples_.size()));
  }

  std::uint64_t StepSeed(std::uint64_t step) const {
    return runtime::RandomAt(plan_.seed, kStepSeeds + worker_->rank(), step);
  }

  void Count() {
    context_.progress->samples += samples_.size();
    const WorkerStats stats = worker_->stats();
    const std::uint64_t bytes = stats.bytes_pushed + stats.bytes_pulled;
    context_.progress->bytes += bytes - std::exchange(bytes_, bytes);
  }

  // ---- gradients ----

  absl::Status TrainByGradients() {
    std::vector<Ticket> pushes;
    for (std::uint64_t step = 0; !IsOver(step); ++step) {
      TimelineStep times{.pull_s = time_->Now()};
      samples_ = batches_->Take(step, worker_->rank());
      workload_.Choose(samples_, StepSeed(step), &step_);
      std::vector<Ticket> tickets = Pull();
      tickets.insert(tickets.end(), pushes.begin(), pushes.end());
      LEEWAY_RETURN_IF_ERROR(worker_->Wait(tickets));
      times.compute_s = time_->Now();
      ComputeGradient(step);
      pushes = Push();
      LEEWAY_RETURN_IF_ERROR(worker_->Clock());
      times.push_s = time_->Now();
      record_.steps.push_back(times);
      Count();
    }
    return worker_->Wait(pushes);
  }

  std::vector<Ticket> Pull() {
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      tickets.push_back(PullInto(tables_[i], step_.keys[i], &step_.values[i]));
      step_.gradients[i].resize(step_.values[i].size());
    }
    return tickets;
  }

  // The next step's Wait covers these.
  std::vector<Ticket> Push() {
    Options options;
    options.copy = true;  // the next batch's keys are chosen before these are sent
    if (plan_.rate_falls) options.learning_rate = plan_.learning_rate * (1 - PartDone());
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const std::span<const float> gradients(step_.gradients[i]);
      tickets.push_back(
          tables_[i].spec().kind == TableKind::kDense
              ? tables_[i].Push(gradients, options)
              : tables_[i].Push(std::span<const std::uint64_t>(step_.keys[i]), gradients, options));
    }
    return tickets;
  }

  double PartDone() const {
    return std::min(1.0, static_cast<double>(context_.progress->samples) /
                             static_cast<double>(SamplesOf(context_)));
  }

  // ---- local steps ----

  absl::Status TrainLocally() {
    std::vector<LocalSgd::Part> parts;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      parts.push_back({tables_[i], std::span<float>(step_.values[i])});
    }
    LocalSgd local(worker_, std::move(parts), {.steps = plan_.local_steps});
    LEEWAY_RETURN_IF_ERROR(local.Begin());
    for (std::uint64_t step = 0; !IsOver(step); ++step) {
      TimelineStep times{.compute_s = time_->Now()};
      times.pull_s = step == 0 ? times.compute_s : record_.steps.back().push_s;
      samples_ = batches_->Take(step, worker_->rank());
      ComputeGradient(step);
      for (std::size_t i = 0; i < tables_.size(); ++i) {
        for (std::size_t j = 0; j < step_.values[i].size(); ++j) {
          step_.values[i][j] -= static_cast<float>(plan_.inner_rate) * step_.gradients[i][j];
        }
      }
      times.push_s = time_->Now();
      LEEWAY_RETURN_IF_ERROR(local.Step());
      record_.steps.push_back(times);
      Count();
    }
    return local.Finish();
  }

  const RunContext& context_;
  const RunPlan& plan_;
  const Workload& workload_;
  Surroundings* const time_;
  Worker* const worker_;
  const Straggler straggler_;
  std::optional<Batches> batches_;
  std::vector<Table> tables_;
  std::vector<std::uint32_t> samples_;
  Step step_;
  WorkerRecord record_;
  std::uint64_t bytes_ = 0;  // counted so far
};

// What an undisturbed pull takes: the shortest of all workers'. With local steps, that of the
// exchanges.
double ShortestPull(const std::vector<WorkerRecord>& workers, std::size_t local_steps) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const WorkerRecord& worker : workers) {
    const std::size_t stride = std::max<std::size_t>(1, local_steps);
    for (std::size_t i = local_steps; i < worker.steps.size(); i += stride) {
      shortest = std::min(shortest, worker.steps[i].compute_s - worker.steps[i].pull_s);
    }
  }
  return shortest;
}

WorkerTime TimeOf(const WorkerRecord& worker, double shortest_pull) {
  WorkerTime time{.steps = worker.steps.size()};
  for (std::size_t i = 0; i < worker.steps.size(); ++i) {
    const TimelineStep& step = worker.steps[i];
    const double before = i == 0 ? step.pull_s : worker.steps[i - 1].push_s;
    const double waited = step.compute_s - before;
    const double communicated = std::min(waited, shortest_pull);
    time.communicate_s += communicated;
    time.wait_s += waited - communicated;
    time.compute_s += step.push_s - step.compute_s;
  }
  if (!worker.steps.empty()) time.last_s = worker.steps.back().push_s;
  const std::size_t tenth = std::max<std::size_t>(1, worker.losses.size() / 10);
  if (worker.losses.size() >= tenth) {
    time.train_loss = std::accumulate(worker.losses.end() - static_cast<std::ptrdiff_t>(tenth),
                                      worker.losses.end(), 0.0) /
                      static_cast<double>(tenth);
  }
  return time;
}

// Times count from the first step of any worker. The run ends when the last worker's pushes have
// been applied, not when the evaluator next looks.
void BeginAtZero(std::vector<WorkerRecord>* workers, std::vector<Point>* points) {
  double begin_s = std::numeric_limits<double>::infinity(), end_s = 0;
  for (const WorkerRecord& worker : *workers) {
    end_s = std::max(end_s, worker.end_s);
    if (!worker.steps.empty()) begin_s = std::min(begin_s, worker.steps.front().pull_s);
  }
  for (WorkerRecord& worker : *workers) {
    for (TimelineStep& step : worker.steps) {
      step.pull_s -= begin_s;
      step.compute_s -= begin_s;
      step.push_s -= begin_s;
    }
  }
  points->back().seconds = end_s;
  for (Point& point : *points) {
    point.seconds = std::max(0.0, std::min(point.seconds, end_s) - begin_s);
  }
}

// Pulls whole dense tables, and the rows of sparse ones that the evaluation needs.
class Watcher {
 public:
  Watcher(const RunContext& context, Surroundings* time, Worker* reader)
      : context_(context),
        time_(time),
        reader_(reader),
        rows_(context.workload->rows_to_evaluate()) {
    rows_.resize(context.workload->tables().size());  // of dense tables none are named
  }

  absl::Status OpenTables() {
    for (const TableSpec& spec : context_.workload->tables()) {
      absl::StatusOr<Table> table = reader_->OpenTable(spec.name);
      while (absl::IsNotFound(table.status())) {
        time_->Sleep(kLookAgain_s);
        table = reader_->OpenTable(spec.name);
      }
      LEEWAY_RETURN_IF_ERROR(table.status());
      tables_.push_back(*std::move(table));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Snapshot> Take() {
    Snapshot snapshot;
    snapshot.values.resize(tables_.size());
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      tickets.push_back(PullInto(tables_[i], rows_[i], &snapshot.values[i]));
    }
    LEEWAY_RETURN_IF_ERROR(reader_->Wait(tickets));
    snapshot.at.seconds = time_->Now();
    snapshot.at.epochs = static_cast<double>(context_.progress->samples) /
                         static_cast<double>(context_.workload->samples());
    snapshot.at.bytes = static_cast<double>(context_.progress->bytes);
    return snapshot;
  }

 private:
  const RunContext& context_;
  Surroundings* const time_;
  Worker* const reader_;
  std::vector<std::vector<std::uint64_t>> rows_;
  std::vector<Table> tables_;
};

}  // namespace

absl::StatusOr<WorkerRecord> TrainWorker(const RunContext& context, Surroundings* time,
                                         Worker* worker) {
  return TrainingRun(context, time, worker).Run();
}

absl::StatusOr<std::vector<Snapshot>> WatchRun(const RunContext& context, Surroundings* time,
                                               Worker* reader) {
  const RunPlan& plan = context.plan;
  Watcher watcher(context, time, reader);
  LEEWAY_RETURN_IF_ERROR(watcher.OpenTables());
  const double usual_s =
      static_cast<double>(SamplesOf(context)) / plan.workers / plan.batch * plan.step_ms * 1e-3;
  const double interval_s = std::max(usual_s / plan.points, kLookAgain_s);
  std::vector<Snapshot> snapshots;
  const auto all_done = [&] { return context.progress->workers_done == plan.workers; };
  while (!all_done()) {
    LEEWAY_ASSIGN_OR_RETURN(Snapshot snapshot, watcher.Take());
    snapshots.push_back(std::move(snapshot));
    context.progress->watched = 1;
    const double next_s = snapshots.back().at.seconds + interval_s;
    while (!all_done() && time->Now() < next_s) {
      time->Sleep(std::clamp(next_s - time->Now(), 1e-6, 0.1));
    }
  }
  LEEWAY_ASSIGN_OR_RETURN(Snapshot last, watcher.Take());
  snapshots.push_back(std::move(last));
  return snapshots;
}

std::vector<Point> Evaluated(const Workload& workload, const std::vector<Snapshot>& snapshots) {
  std::vector<Point> points;
  for (const Snapshot& snapshot : snapshots) {
    const bool is_last = &snapshot == &snapshots.back();
    const Evaluation evaluation = workload.Evaluate(snapshot.values, !is_last);
    Point point = snapshot.at;
    point.loss = evaluation.loss;
    point.score = evaluation.score;
    point.others = evaluation.others;
    points.push_back(point);
  }
  return points;
}

RunResult Assemble(const RunContext& context, std::vector<WorkerRecord> workers,
                   std::vector<Point> points) {
  BeginAtZero(&workers, &points);
  RunResult result;
  result.plan = context.plan;
  result.score_name = context.workload->score_name();
  const double shortest_pull = ShortestPull(workers, context.plan.local_steps);
  for (const WorkerRecord& worker : workers) {
    result.workers.push_back(TimeOf(worker, shortest_pull));
    const std::size_t shown = std::min(worker.steps.size(), kTimelineSteps);
    result.timeline.emplace_back(worker.steps.begin(),
                                 worker.steps.begin() + static_cast<std::ptrdiff_t>(shown));
    for (const auto& [clocks, count] : worker.clock_staleness) {
      result.clock_staleness[clocks] += count;
    }
    result.dropped += worker.dropped;
    result.violations += worker.violations;
  }
  result.last = points.back();
  points.pop_back();
  result.points = std::move(points);
  return result;
}

nlohmann::json ToJson(const WorkerRecord& record) {
  nlohmann::json json = {{"losses", record.losses},
                         {"end_s", record.end_s},
                         {"clock_staleness", record.clock_staleness},
                         {"dropped", record.dropped},
                         {"violations", record.violations}};
  json["steps"] = nlohmann::json::array();
  for (const TimelineStep& step : record.steps) {
    json["steps"].push_back({step.pull_s, step.compute_s, step.push_s});
  }
  return json;
}

WorkerRecord RecordFrom(const nlohmann::json& json) {
  WorkerRecord record;
  json.at("losses").get_to(record.losses);
  json.at("end_s").get_to(record.end_s);
  json.at("clock_staleness").get_to(record.clock_staleness);
  json.at("dropped").get_to(record.dropped);
  json.at("violations").get_to(record.violations);
  for (const auto& step : json.at("steps")) {
    record.steps.push_back({.pull_s = step.at(0), .compute_s = step.at(1), .push_s = step.at(2)});
  }
  return record;
}

}  // namespace leeway::lab
