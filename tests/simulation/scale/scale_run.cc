#include "tests/simulation/scale/scale_run.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/stepping_worker.h"

namespace leeway::simulation {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(10);  // of virtual time, for any phase
// In the first steps, which are like all others: to measure a heap of gigabytes takes long.
constexpr int kHeapLooksPerStep = 10;
constexpr int kStepsWithHeapLooks = 3;

std::uint64_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

class ScaleRun {
 public:
  explicit ScaleRun(const ScalePlan& plan);
  absl::StatusOr<ScaleFigures> Run();

 private:
  struct Mark {
    absl::Time time;
    van::SimNetwork::Traffic scheduler;
    double real_seconds = 0;
  };

  absl::Status Begin();
  absl::Status CreateTables();
  absl::Status Train();
  absl::Status Leave();

  absl::Status Until(const char* what, const std::function<bool()>& done);
  void OnStep(const absl::Status& status, int step);
  void WatchHeap();
  Mark Now();
  // Returns the load since the last call, and begins the next phase.
  SchedulerLoad Lap(Mark* since, double* real_seconds);
  std::vector<van::SimNetwork::Traffic> Servers();

  const ScalePlan plan_;
  const std::vector<TableSpec> model_;
  const std::uint64_t heap_before_ = HeapBytes();
  ScaleFigures figures_;
  absl::Status trouble_;
  std::vector<std::uint32_t> workers_done_;                 // by step
  std::vector<absl::Time> ends_;                            // by step, of the last worker
  std::vector<std::vector<SteppingWorker::Table>> tables_;  // by worker
  // Destroyed after the cores that call them.
  std::vector<std::unique_ptr<SteppingWorker>> workers_;
  SimCluster cluster_;
  std::vector<worker::Core*> cores_;
};

SimCluster::Setup SetupOf(const ScalePlan& plan) {
  SimCluster::Setup setup;
  setup.seed = plan.seed;
  setup.config.num_workers = plan.workers;
  setup.config.num_servers = plan.servers;
  setup.config.block_bytes = plan.block_bytes;
  if (plan.configure) plan.configure(&setup.config);
  return setup;
}

ScaleRun::ScaleRun(const ScalePlan& plan)
    : plan_(plan),
      model_(Model(plan)),
      workers_done_(plan.warm_up + plan.StepsMeasured()),
      ends_(workers_done_.size()),
      tables_(plan.workers, std::vector<SteppingWorker::Table>(model_.size())),
      cluster_(SetupOf(plan)) {
  cluster_.network().SetNics({.egress_bytes_per_second = plan.bytes_per_second,
                              .ingress_bytes_per_second = plan.bytes_per_second});
  van::LinkFaults link;
  link.delay_min = link.delay_max = plan.delay;
  cluster_.network().SetFaults(link);
}

absl::StatusOr<ScaleFigures> ScaleRun::Run() {
  figures_.ideal = IdealStep(plan_);
  Mark mark = Now();
  LEEWAY_RETURN_IF_ERROR(Begin());
  LEEWAY_RETURN_IF_ERROR(CreateTables());
  figures_.joining = Lap(&mark, &figures_.joining_seconds);
  figures_.idle_bytes = HeapBytes() - heap_before_;
  LEEWAY_RETURN_IF_ERROR(Train());
  Lap(&mark, &figures_.training_seconds);
  LEEWAY_RETURN_IF_ERROR(Leave());
  figures_.leaving = Lap(&mark, &figures_.leaving_seconds);
  return figures_;
}

absl::Status ScaleRun::Begin() {
  cluster_.Start(Role::kScheduler);
  for (std::uint32_t i = 0; i < plan_.servers; ++i) cluster_.Start(Role::kServer, i);
  std::uint32_t ready = 0;
  for (std::uint32_t i = 0; i < plan_.workers; ++i) {
    cores_.push_back(cluster_.Start(Role::kWorker, i)->core());
    cores_.back()->Start([this, &ready](const absl::Status& status) {
      trouble_.Update(status);
      ++ready;
    });
  }
  return Until("joining", [&] { return ready == plan_.workers; });
}

// Every worker asks for every table, as a program that all workers run.
absl::Status ScaleRun::CreateTables() {
  std::size_t missing = plan_.workers * model_.size();
  for (std::uint32_t i = 0; i < plan_.workers; ++i) {
    for (std::size_t t = 0; t < model_.size(); ++t) {
      cores_[i]->CreateTable(model_[t], kPatience, [this, i, t, &missing](auto created) {
        trouble_.Update(created.status());
        if (created.ok()) tables_[i][t] = *created;
        --missing;
      });
    }
  }
  return Until("creating tables", [&] { return missing == 0; });
}

absl::Status ScaleRun::Train() {
  const auto arrays = std::make_shared<SteppingWorker::Arrays>(tables_[0]);
  for (std::uint32_t i = 0; i < plan_.workers; ++i) {
    workers_.push_back(std::make_unique<SteppingWorker>(
        &cluster_.world(), cores_[i], static_cast<int>(ends_.size()), plan_.compute,
        [this](const absl::Status& status, int step) { OnStep(status, step); }));
    workers_.back()->Run(tables_[i], arrays);
  }
  WatchHeap();
  const auto ended = [this](int steps) { return workers_done_[steps - 1] == plan_.workers; };
  LEEWAY_RETURN_IF_ERROR(Until("warming up", [&] { return ended(plan_.warm_up); }));
  Mark mark = Now();
  const auto before = Servers();
  LEEWAY_RETURN_IF_ERROR(Until("training", [&] { return ended(static_cast<int>(ends_.size())); }));
  double real_seconds = 0;
  figures_.steady = Lap(&mark, &real_seconds);
  figures_.step = figures_.steady.time / plan_.StepsMeasured();
  for (std::size_t i = plan_.warm_up; i < ends_.size(); ++i) {
    figures_.slowest_step = std::max(figures_.slowest_step, ends_[i] - ends_[i - 1]);
  }
  const auto after = Servers();
  std::uint64_t fullest = 0, messages = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    fullest = std::max(fullest, after[i].bytes_in - before[i].bytes_in);
    messages +=
        after[i].frames_in - before[i].frames_in + after[i].frames_out - before[i].frames_out;
  }
  figures_.messages_a_step = messages / plan_.StepsMeasured();
  figures_.bytes_vs_payload =
      static_cast<double>(fullest) /
      static_cast<double>(plan_.workers * FullestServerBytes(plan_) * plan_.StepsMeasured());
  return absl::OkStatus();
}

// As workers' programs end that were not started together.
absl::Status ScaleRun::Leave() {
  for (std::uint32_t i = 0; i < plan_.workers; ++i) {
    cluster_.world().Schedule(plan_.leave_within * i / plan_.workers, [this, i] {
      cores_[i]->Leave(kPatience, [this](const absl::Status& left) { trouble_.Update(left); });
    });
  }
  const SimProcess* scheduler = cluster_.Find(SimCluster::HostName(Role::kScheduler, 0));
  LEEWAY_RETURN_IF_ERROR(Until("leaving", [&] { return scheduler->over().has_value(); }));
  return *scheduler->over();
}

absl::Status ScaleRun::Until(const char* what, const std::function<bool()>& done) {
  const absl::Status result =
      cluster_.world().RunUntil([&] { return done() || !trouble_.ok(); }, kPatience);
  const absl::Status& why = trouble_.ok() ? result : trouble_;
  if (why.ok()) return why;
  return absl::Status(why.code(), absl::StrCat(what, ": ", std::string(why.message())));
}

void ScaleRun::OnStep(const absl::Status& status, int step) {
  trouble_.Update(status);
  if (status.ok() && ++workers_done_[step] == plan_.workers) ends_[step] = cluster_.world().Now();
}

void ScaleRun::WatchHeap() {
  const std::uint64_t heap = HeapBytes();
  figures_.peak_bytes = std::max(figures_.peak_bytes, heap - std::min(heap, heap_before_));
  const int steps = std::min<int>(kStepsWithHeapLooks, static_cast<int>(workers_done_.size()));
  if (workers_done_[steps - 1] == plan_.workers) return;
  cluster_.world().Schedule(figures_.ideal / kHeapLooksPerStep, [this] { WatchHeap(); });
}

ScaleRun::Mark ScaleRun::Now() {
  const auto real = std::chrono::steady_clock::now().time_since_epoch();
  return {.time = cluster_.world().Now(),
          .scheduler = cluster_.network().TrafficOf(SimCluster::HostName(Role::kScheduler, 0)),
          .real_seconds = std::chrono::duration<double>(real).count()};
}

SchedulerLoad ScaleRun::Lap(Mark* since, double* real_seconds) {
  const Mark before = std::exchange(*since, Now());
  *real_seconds = since->real_seconds - before.real_seconds;
  const auto frames = [](const Mark& mark) {
    return mark.scheduler.frames_in + mark.scheduler.frames_out;
  };
  const auto bytes = [](const Mark& mark) {
    return mark.scheduler.bytes_in + mark.scheduler.bytes_out;
  };
  return {.messages = frames(*since) - frames(before),
          .bytes = bytes(*since) - bytes(before),
          .time = since->time - before.time};
}

std::vector<van::SimNetwork::Traffic> ScaleRun::Servers() {
  std::vector<van::SimNetwork::Traffic> all;
  for (std::uint32_t i = 0; i < plan_.servers; ++i) {
    all.push_back(cluster_.network().TrafficOf(SimCluster::HostName(Role::kServer, i)));
  }
  return all;
}

// ---- output ----

std::string ToJson(const char* name, const ScalePlan& plan, const SchedulerLoad& load) {
  const double nodes = plan.nodes();
  return absl::StrCat("\"scheduler_", name,
                      "\": {\"messages_per_node\": ", static_cast<double>(load.messages) / nodes,
                      ", \"bytes_per_node\": ", static_cast<double>(load.bytes) / nodes,
                      ", \"virtual_seconds\": ", absl::ToDoubleSeconds(load.time), "}");
}

}  // namespace

double StepVsIdeal(const ScaleFigures& figures) {
  return absl::FDivDuration(figures.step, figures.ideal);
}

double SchedulerMessagesPerNodeSecond(const ScalePlan& plan, const ScaleFigures& figures) {
  return static_cast<double>(figures.steady.messages) / plan.nodes() /
         absl::ToDoubleSeconds(figures.steady.time);
}

absl::StatusOr<ScaleFigures> RunScale(const ScalePlan& plan) { return ScaleRun(plan).Run(); }

std::string ToJson(const ScalePlan& plan, const ScaleFigures& figures) {
  const double nodes = plan.nodes();
  return absl::StrCat(
      "{\"workers\": ", plan.workers, ", \"servers\": ", plan.servers,
      ", \"steps\": ", plan.StepsMeasured(), ", \"block_bytes\": ", plan.block_bytes,
      ", \"bytes_per_second\": ", plan.bytes_per_second,
      ", \"delay_s\": ", absl::ToDoubleSeconds(plan.delay),
      ", \"compute_s\": ", absl::ToDoubleSeconds(plan.compute),
      ", \"ideal_step_s\": ", absl::ToDoubleSeconds(figures.ideal),
      ", \"step_s\": ", absl::ToDoubleSeconds(figures.step),
      ", \"slowest_step_s\": ", absl::ToDoubleSeconds(figures.slowest_step),
      ", \"step_vs_ideal\": ", StepVsIdeal(figures),
      ", \"scheduler_messages_per_node_s\": ", SchedulerMessagesPerNodeSecond(plan, figures), ", ",
      ToJson("joining", plan, figures.joining), ", ", ToJson("steady", plan, figures.steady), ", ",
      ToJson("leaving", plan, figures.leaving),
      ", \"bytes_vs_payload\": ", figures.bytes_vs_payload,
      ", \"messages_a_step\": ", figures.messages_a_step,
      ", \"idle_bytes_per_node\": ", static_cast<double>(figures.idle_bytes) / nodes,
      ", \"peak_bytes_per_node\": ", static_cast<double>(figures.peak_bytes) / nodes,
      ", \"real_seconds\": {\"joining\": ", figures.joining_seconds,
      ", \"training\": ", figures.training_seconds, ", \"leaving\": ", figures.leaving_seconds,
      "}}");
}

}  // namespace leeway::simulation
