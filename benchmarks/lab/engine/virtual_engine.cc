#include "benchmarks/lab/engine/virtual_engine.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/lab/engine/sim_thread.h"
#include "benchmarks/lab/engine/surroundings.h"
#include "benchmarks/lab/engine/train.h"
#include "benchmarks/lab/experiment/links.h"
#include "runtime/base/status_macros.h"
#include "tests/simulation/sim_cluster.h"
#include "worker/client/client.h"

namespace leeway::lab {
namespace {

using simulation::SimCluster;

constexpr absl::Duration kLongest = absl::Hours(24 * 365);  // of virtual time
constexpr absl::Duration kPatience = absl::Hours(24);

class VirtualSurroundings final : public Surroundings {
 public:
  VirtualSurroundings(const runtime::SimWorld* world, absl::Time begin, SimThread* thread)
      : world_(world), begin_(begin), thread_(thread) {}

  double Now() override { return absl::ToDoubleSeconds(world_->Now() - begin_); }
  void Sleep(double seconds) override { thread_->Sleep(absl::Seconds(seconds)); }
  void Compute(double usual_s, const Stretched& stretched,
               absl::FunctionRef<void()> work) override {
    thread_->Compute(absl::Seconds(stretched(Now(), usual_s)), work);
  }

 private:
  const runtime::SimWorld* const world_;
  const absl::Time begin_;
  SimThread* const thread_;
};

SimCluster::Setup SetupOf(const RunPlan& plan) {
  SimCluster::Setup setup;
  setup.seed = plan.seed;
  setup.config.num_workers = plan.workers;
  setup.config.num_servers = plan.servers;
  setup.config.connect_timeout = kPatience;
  setup.config.request_timeout = kPatience;
  return setup;
}

van::Nic NicOf(double up_mbit, double down_mbit) {
  constexpr double kBytesPerMbit = 1e6 / 8;
  return {.egress_bytes_per_second = up_mbit * kBytesPerMbit,
          .ingress_bytes_per_second = down_mbit * kBytesPerMbit};
}

class VirtualRun {
 public:
  VirtualRun(const RunPlan& plan, const Workload& workload)
      : context_{.plan = plan, .workload = &workload, .progress = &progress_},
        cluster_(SetupOf(plan)),
        begin_(cluster_.world().Now()),
        records_(plan.workers) {
    cluster_.network().SetNics(NicOf(plan.link_mbit, plan.link_mbit));
    const std::vector<WorkerLink> links = *ParseLinks(plan.links);
    for (const WorkerLink& one : links) {
      cluster_.network().SetNic(SimCluster::HostName(Role::kWorker, one.rank),
                                NicOf(one.up_mbit, one.down_mbit));
    }
    van::LinkFaults link;
    link.delay_min = link.delay_max = absl::Microseconds(plan.link_us);
    cluster_.network().SetFaults(link);
  }

  absl::StatusOr<RunResult> Run() {
    cluster_.Start(Role::kScheduler);
    for (std::uint32_t i = 0; i < context_.plan.servers; ++i) cluster_.Start(Role::kServer, i);
    for (std::uint32_t i = 0; i < context_.plan.workers; ++i) {
      Start(Role::kWorker, i, [this, i](Surroundings* time, Worker* worker) -> absl::Status {
        LEEWAY_ASSIGN_OR_RETURN(records_[i], TrainWorker(context_, time, worker));
        if (i == 0) CountPushStaleness();
        return absl::OkStatus();
      });
    }
    Start(Role::kReader, 0, [this](Surroundings* time, Worker* reader) -> absl::Status {
      LEEWAY_ASSIGN_OR_RETURN(snapshots_, WatchRun(context_, time, reader));
      progress_.evaluated = 1;
      return absl::OkStatus();
    });
    const absl::Status ended = cluster_.world().RunUntil(
        [&] { return !trouble_.ok() || over_ == threads_.size(); }, kLongest);
    LEEWAY_RETURN_IF_ERROR(trouble_);
    LEEWAY_RETURN_IF_ERROR(ended);
    RunResult result =
        Assemble(context_, std::move(records_), Evaluated(*context_.workload, snapshots_));
    result.update_staleness = push_staleness_;
    return result;
  }

 private:
  using Body = std::function<absl::Status(Surroundings* time, Worker* worker)>;

  void Start(Role role, std::uint32_t number, Body body) {
    threads_.push_back(std::make_unique<SimThread>(
        &cluster_.world(), [this, role, number, body = std::move(body)](SimThread& self) {
          const absl::Status status = RunWorker(role, number, body, self);
          if (!status.ok() && trouble_.ok()) trouble_ = status;
          ++over_;
        }));
  }

  absl::Status RunWorker(Role role, std::uint32_t number, const Body& body, SimThread& self) {
    const std::string name = SimCluster::HostName(role, number);
    const std::unique_ptr<runtime::Host> host = cluster_.world().NewHost(name);
    const std::unique_ptr<van::Factory> factory = cluster_.NewFactory(name);
    const std::unique_ptr<runtime::LoopRunner> runner = host->Spawn("worker");
    Config config = cluster_.config();
    config.role = Role::kWorker;
    config.read_only = role == Role::kReader;
    if (!config.read_only) config.rank = number;
    worker::Session::World world;
    world.host = host.get();
    world.factory = factory.get();
    world.driver = std::make_unique<SimDriver>(runner->loop(), &self);
    LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker,
                            worker::Client::Connect(config, std::move(world)));
    VirtualSurroundings time(&cluster_.world(), begin_, &self);
    return body(&time, worker.get());
  }

  // The staleness of all pushes in updates, from the servers themselves.
  void CountPushStaleness() {
    for (std::uint32_t i = 0; i < context_.plan.servers; ++i) {
      ps::Server* const server = cluster_.Find(SimCluster::HostName(Role::kServer, i))->server();
      if (server == nullptr) continue;
      for (std::uint32_t t = 0; t < cluster_.config().server_threads; ++t) {
        for (const auto& [id, table] : server->data_thread(t)->tables().all()) {
          const auto& counts = table.push_staleness().counts();
          for (std::size_t tau = 0; tau < counts.size(); ++tau) {
            if (counts[tau] != 0) push_staleness_[tau] += counts[tau];
          }
        }
      }
    }
  }

  Progress progress_;
  const RunContext context_;
  SimCluster cluster_;
  const absl::Time begin_;
  std::vector<WorkerRecord> records_;
  std::vector<Snapshot> snapshots_;
  std::map<std::uint64_t, std::uint64_t> push_staleness_;
  absl::Status trouble_;
  std::size_t over_ = 0;
  std::vector<std::unique_ptr<SimThread>> threads_;
};

}  // namespace

absl::StatusOr<RunResult> RunVirtual(const RunPlan& plan, const Workload& workload) {
  auto run = std::make_unique<VirtualRun>(plan, workload);
  absl::StatusOr<RunResult> result = run->Run();
  if (!result.ok()) static_cast<void>(run.release());  // its threads wait for a world that stands
  return result;
}

}  // namespace leeway::lab
