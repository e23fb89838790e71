#include "tests/simulation/simulation.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/random.h"
#include "tests/simulation/fault_injector.h"
#include "tests/simulation/scripted_worker.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {
namespace {

constexpr std::size_t kLinesKept = 2000, kLinesShown = 40;
constexpr absl::Duration kRunMax = absl::Minutes(10);
constexpr absl::Duration kLookEvery = absl::Seconds(1);

SimCluster::Setup ChooseCluster(const SeedOptions& options, runtime::Random* random) {
  SimCluster::Setup setup;
  setup.seed = options.seed;
  setup.data_options = options.data_options;
  Config& config = setup.config;
  config.num_servers = static_cast<std::uint32_t>(1 + random->Below(3));
  config.num_workers = static_cast<std::uint32_t>(2 + random->Below(3));
  config.server_threads = static_cast<std::uint32_t>(1 + random->Below(2));
  config.num_shards = static_cast<std::uint32_t>(6 + random->Below(10));
  config.block_bytes = kBlockBytes;
  config.heartbeat_interval = absl::Milliseconds(250);
  config.failure_timeout = absl::Seconds(5);
  // Short, so that a lost message does not keep the script out of the faults for long.
  config.resend_interval = absl::Milliseconds(30);
  return setup;
}

class Run {
 public:
  explicit Run(const SeedOptions& options)
      : options_(options),
        random_(runtime::RandomAt(options.seed, runtime::StableHash("simulation"), 0)),
        cluster_(ChooseCluster(options, &random_)),
        window_(absl::Seconds(8) + absl::Seconds(12) * random_.Uniform()),
        script_(ChooseScript()),
        history_(script_.tables.size(), cluster_.config().num_workers),
        checker_(&history_),
        injector_(&cluster_, MakeFaultPlan(cluster_.config(), options.faults, window_, &random_),
                  [this](const Episode& episode) { return Strike(episode); }) {
    cluster_.world().KeepTrace(options.keep_trace);
    cluster_.world().KeepLastLines(kLinesKept);
    for (std::uint32_t rank = 0; rank < cluster_.config().num_workers; ++rank) {
      workers_.push_back(std::make_unique<ScriptedWorker>(rank, &script_, &cluster_, &history_,
                                                          &checker_, random_.Next()));
    }
  }

  SeedResult Go() {
    StartAll();
    injector_.Start();
    Look();
    const bool ended =
        cluster_.RunUntil([this] { return checker_.violation().has_value() || Ended(); }, kRunMax);
    if (!ended) checker_.Fail("the run ends", "it is not over after 10 minutes");
    return Result();
  }

 private:
  Script ChooseScript() {
    Script script;
    script.tables = ChooseTables(cluster_.config().num_workers, &random_);
    script.iterations = static_cast<std::uint32_t>(200 + random_.Below(300));
    // Faults slow the workers down, so that they outlast most of them.
    script.think_max = window_ / script.iterations;
    return script;
  }

  // In any order, some a little later than others.
  void StartAll() {
    const auto soon = [this](runtime::Task task) {
      cluster_.world().Schedule(absl::Milliseconds(300) * random_.Uniform(), std::move(task));
    };
    soon([this] { cluster_.Start(Role::kScheduler); });
    for (std::uint32_t rank = 0; rank < cluster_.config().num_servers; ++rank) {
      soon([this, rank] { cluster_.Start(Role::kServer, rank); });
    }
    for (const auto& worker : workers_) soon([raw = worker.get()] { raw->Start(); });
  }

  // Processes die only once the cluster is complete; one worker stays in any case.
  FaultInjector::Struck Strike(const Episode& episode) {
    using Struck = FaultInjector::Struck;
    const auto works = [](const auto& worker) { return worker->ready() && !worker->finished(); };
    complete_ = complete_ || std::all_of(workers_.begin(), workers_.end(),
                                         [](const auto& worker) { return worker->ready(); });
    if (!complete_) return Struck::kAskAgain;
    const auto victim = std::find_if(workers_.begin(), workers_.end(), [&](const auto& worker) {
      return episode.host == SimCluster::HostName(Role::kWorker, worker->rank());
    });
    if (victim == workers_.end()) {
      if (cluster_.Find(episode.host) == nullptr) return Struck::kNo;
      cluster_.Kill(episode.host);
      return Struck::kYes;
    }
    if (!works(*victim) || std::count_if(workers_.begin(), workers_.end(), works) < 2) {
      return Struck::kNo;
    }
    cluster_.Kill(episode.host);
    (*victim)->OnKilled();
    if (episode.kind == FaultKind::kRestartWorker) {
      cluster_.world().Schedule(episode.length, [raw = victim->get()] { raw->Start(); });
    }
    return Struck::kYes;
  }

  // Every second: is anyone waiting for too long?
  void Look() {
    if (!quiet_ && injector_.over()) {
      quiet_ = true;
      checker_.SetQuietFrom(cluster_.world().Now());
      cluster_.Note("no more faults");
    }
    for (const auto& worker : workers_) worker->CheckWaiting();
    cluster_.world().Schedule(kLookEvery, [this] { Look(); });
  }

  // All workers that live have left, and the cluster has ended by itself.
  bool Ended() const {
    for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
      if (!workers_[rank]->finished() &&
          !cluster_.WasKilled(SimCluster::HostName(Role::kWorker, rank))) {
        return false;
      }
    }
    for (const std::string& host : cluster_.HostNames()) {
      const SimProcess* process = cluster_.Find(host);
      const bool is_worker = absl::StartsWith(host, leeway::Name(Role::kWorker));
      if (!is_worker && process != nullptr && !process->over().has_value()) return false;
    }
    return true;
  }

  SeedResult Result() {
    SeedResult result;
    runtime::SimWorld& world = cluster_.world();
    result.seed = options_.seed;
    result.violation = checker_.violation();
    result.setting = Setting();
    result.trace = world.trace();
    result.trace_hash = world.trace_hash();
    result.faults = injector_.counts();
    for (const auto& worker : workers_) result.operations += worker->operations();
    result.reads = checker_.reads();
    result.virtual_time = world.Now() - started_;
    if (result.violation.has_value()) result.tail = Tail();
    return result;
  }

  std::string Setting() const {
    std::string text =
        absl::StrCat(cluster_.config().num_servers, " servers of ",
                     cluster_.config().server_threads, " threads, ", cluster_.config().num_workers,
                     " workers, ", script_.iterations, " iterations;");
    for (const SimTable& table : script_.tables) {
      absl::StrAppend(&text, " ", table.spec.name, " ", table.spec.consistency.ToString());
    }
    return absl::StrCat(text, "\n", injector_.plan().ToString());
  }

  std::vector<std::string> Tail() {
    std::deque<std::string> told;
    for (const std::string& line : cluster_.world().last_lines()) {
      if (absl::StrContains(line, "Heartbeat") || absl::StrContains(line, "Credit")) continue;
      if (told.size() == kLinesShown) told.pop_front();
      told.push_back(line);
    }
    return {told.begin(), told.end()};
  }

  const SeedOptions& options_;
  runtime::Random random_;
  SimCluster cluster_;
  const absl::Duration window_;
  const Script script_;
  History history_;
  Checker checker_;
  FaultInjector injector_;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
  const absl::Time started_ = cluster_.world().Now();
  bool complete_ = false, quiet_ = false;
};

}  // namespace

SeedResult RunSeed(const SeedOptions& options) { return Run(options).Go(); }

}  // namespace leeway::simulation
