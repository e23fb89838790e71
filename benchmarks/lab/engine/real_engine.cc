#include "benchmarks/lab/engine/real_engine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "benchmarks/lab/engine/shaped_network.h"
#include "benchmarks/lab/engine/surroundings.h"
#include "benchmarks/lab/engine/train.h"
#include "benchmarks/lab/experiment/links.h"
#include "benchmarks/lab/results/folder.h"
#include "benchmarks/lab/workloads/registry.h"
#include "runtime/base/monotonic_time.h"
#include "runtime/base/status_macros.h"
#include "tools/admin/inquiry.h"
#include "tools/launch/cluster.h"
#include "tools/launch/supervisor.h"

namespace leeway::lab {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStatusPatience = absl::Seconds(10);
constexpr int kSchedulerPort = 9000;  // in a network of its own

class RealSurroundings final : public Surroundings {
 public:
  double Now() override {
    return absl::ToDoubleSeconds(runtime::MonotonicNow() - absl::UnixEpoch());
  }
  void Sleep(double seconds) override { absl::SleepFor(absl::Seconds(seconds)); }
  void Compute(double usual_s, const Stretched& stretched,
               absl::FunctionRef<void()> work) override {
    const double begin = Now();
    work();
    const double until = begin + stretched(begin, std::max(usual_s, Now() - begin));
    if (until > Now()) Sleep(until - Now());
  }
};

// The run's Progress, in a file that its processes map.
class ProgressFile {
 public:
  static absl::StatusOr<ProgressFile> Map(const std::string& path, bool make) {
    const int fd =
        open(path.c_str(), make ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
    void* memory = MAP_FAILED;
    if (fd >= 0 && (!make || ftruncate(fd, sizeof(Progress)) == 0)) {
      memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    const int error = errno;
    if (fd >= 0) close(fd);
    if (memory == MAP_FAILED) {
      return absl::UnavailableError(absl::StrCat("cannot map ", path, ": ", std::strerror(error)));
    }
    ProgressFile file;
    file.progress_.reset(make ? new (memory) Progress : static_cast<Progress*>(memory));
    return file;
  }
  Progress* get() const { return progress_.get(); }

 private:
  struct Unmap {
    void operator()(Progress* progress) const { munmap(progress, sizeof(Progress)); }
  };
  std::unique_ptr<Progress, Unmap> progress_;
};

// A folder that is removed again.
class WorkFolder {
 public:
  static absl::StatusOr<std::unique_ptr<WorkFolder>> Make() {
    std::string path = (fs::temp_directory_path() / "leeway-lab-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot make ", path, ": ", std::strerror(errno)));
    }
    auto folder = std::make_unique<WorkFolder>();
    folder->path_ = path;
    return folder;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string WorkerFile(const std::string& folder, std::uint32_t rank) {
  return absl::StrCat(folder, "/worker-", rank, ".json");
}
std::string PointsFile(const std::string& folder) { return folder + "/points.json"; }

absl::StatusOr<nlohmann::json> ReadJson(const std::string& path) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::DataLossError(absl::StrCat(path, " is no JSON"));
  return json;
}

// In the order of ProcessesOf: scheduler, servers, workers, evaluator.
std::vector<NodeLink> LinksOf(const RunPlan& plan) {
  std::vector<NodeLink> nodes(1 + plan.servers + plan.workers + 1,
                              {.up_mbit = plan.link_mbit, .down_mbit = plan.link_mbit});
  const std::vector<WorkerLink> links = *ParseLinks(plan.links);
  for (const WorkerLink& link : links) {
    nodes[1 + plan.servers + link.rank] = {.up_mbit = link.up_mbit, .down_mbit = link.down_mbit};
  }
  return nodes;
}

// Moves each process to its node of the network.
void PlaceInNetwork(std::vector<launch::ProcessSpec>* processes) {
  for (std::size_t node = 0; node < processes->size(); ++node) {
    launch::ProcessSpec& process = (*processes)[node];
    const std::vector<std::string> inside = ShapedNetwork::Inside(node);
    process.arguments.insert(process.arguments.begin(), inside.begin(), inside.end());
    process.environment["LEEWAY_HOST"] = ShapedNetwork::AddressOf(node);
    process.environment["LEEWAY_VAN"] = "tcp";
  }
}

absl::StatusOr<std::vector<launch::ProcessSpec>> ProcessesOf(const RunPlan& plan,
                                                             const std::string& folder) {
  launch::ClusterSpec cluster;
  cluster.servers = plan.servers;
  cluster.workers = plan.workers;
  cluster.leeway = launch::OwnProgram();
  cluster.program = {cluster.leeway, "node", folder};
  cluster.environment = {{"LEEWAY_LOG", "warning"},
                         {"LEEWAY_CONNECT_TIMEOUT_MS", "120000"},
                         {"LEEWAY_REQUEST_TIMEOUT_MS", "600000"}};
  if (plan.has_shaped_links()) {
    cluster.scheduler = absl::StrCat(ShapedNetwork::AddressOf(0), ":", kSchedulerPort);
  }
  LEEWAY_ASSIGN_OR_RETURN(auto processes, launch::PlanCluster(cluster));
  launch::ProcessSpec evaluator = processes.back();
  evaluator.name = "evaluator";
  evaluator.environment["LEEWAY_READ_ONLY"] = "1";
  evaluator.environment.erase("LEEWAY_RANK");
  std::erase(evaluator.unset, "LEEWAY_READ_ONLY");
  processes.push_back(std::move(evaluator));
  if (plan.has_shaped_links()) PlaceInNetwork(&processes);
  return processes;
}

// The staleness of pushes in updates, as `leeway status` shows it.
absl::StatusOr<nlohmann::json> PushStaleness(const Config& config) {
  LEEWAY_ASSIGN_OR_RETURN(
      const std::string text,
      tools::AskForStatus({config.scheduler}, Role::kScheduler, kStatusPatience, config)[0]);
  const nlohmann::json status = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::string> endpoints;
  for (const auto& server : status.value("servers", nlohmann::json::array())) {
    for (const auto& endpoint : server.value("endpoints", nlohmann::json::array())) {
      endpoints.push_back(endpoint.get<std::string>());
    }
  }
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const auto& answer :
       tools::AskForStatus(endpoints, Role::kServer, kStatusPatience, config)) {
    LEEWAY_RETURN_IF_ERROR(answer.status());
    const nlohmann::json thread = nlohmann::json::parse(*answer, nullptr, false);
    for (const auto& table : thread.value("tables", nlohmann::json::array())) {
      const nlohmann::json staleness = table.value("push_staleness", nlohmann::json());
      for (const auto& [tau, count] : staleness.items()) {
        std::uint64_t updates = 0;
        if (absl::SimpleAtoi(absl::StripSuffix(absl::string_view(tau), "+"), &updates)) {
          counts[updates] += count.get<std::uint64_t>();
        }
      }
    }
  }
  return counts;
}

absl::Status RunEvaluator(const RunContext& context, const Config& config,
                          const std::string& folder, RealSurroundings* time, Worker* reader) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<Snapshot> snapshots, WatchRun(context, time, reader));
  nlohmann::json json;
  LEEWAY_ASSIGN_OR_RETURN(json["update_staleness"], PushStaleness(config));
  context.progress->evaluated = 1;
  json["points"] = nlohmann::json::array();
  for (const Point& point : Evaluated(*context.workload, snapshots)) {
    json["points"].push_back(nlohmann::json(ToJson(point)));
  }
  return WriteFile(PointsFile(folder), json.dump());
}

absl::StatusOr<RunResult> Collect(const RunContext& context, const std::string& folder) {
  std::vector<WorkerRecord> records;
  for (std::uint32_t rank = 0; rank < context.plan.workers; ++rank) {
    LEEWAY_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(WorkerFile(folder, rank)));
    records.push_back(RecordFrom(json));
  }
  LEEWAY_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(PointsFile(folder)));
  std::vector<Point> points;
  for (const auto& point : json.at("points")) points.push_back(PointFrom(point));
  RunResult result = Assemble(context, std::move(records), std::move(points));
  json.at("update_staleness").get_to(result.update_staleness);
  return result;
}

}  // namespace

absl::StatusOr<RunResult> RunReal(const RunPlan& plan, const Workload& workload) {
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFolder> folder, WorkFolder::Make());
  LEEWAY_RETURN_IF_ERROR(WriteFile(folder->path() + "/plan.json", ToJson(plan).dump()));
  LEEWAY_ASSIGN_OR_RETURN(const ProgressFile progress,
                          ProgressFile::Map(folder->path() + "/progress", /*make=*/true));
  if (plan.has_shaped_links()) LEEWAY_RETURN_IF_ERROR(ShapedNetwork::Make(LinksOf(plan)));
  LEEWAY_ASSIGN_OR_RETURN(const auto processes, ProcessesOf(plan, folder->path()));
  std::string said;  // the last line of an error
  launch::SupervisorOptions options;
  options.on_line = [&](std::size_t index, launch::Stream, absl::string_view line) {
    said = absl::StrCat(processes[index].name, ": ", line);
    return true;
  };
  launch::AdoptOrphans();
  const launch::SupervisorResult ended = launch::Supervise(processes, options);
  if (!ended.failure.empty()) {
    return absl::InternalError(
        absl::StrCat(ended.failure, said.empty() ? "" : "; the last line was: ", said));
  }
  return Collect({.plan = plan, .workload = &workload, .progress = progress.get()}, folder->path());
}

absl::Status RunNode(const std::string& folder) {
  LEEWAY_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(folder + "/plan.json"));
  LEEWAY_ASSIGN_OR_RETURN(const RunPlan plan, PlanFromJson(json));
  LEEWAY_ASSIGN_OR_RETURN(const ProgressFile progress,
                          ProgressFile::Map(folder + "/progress", /*make=*/false));
  LEEWAY_ASSIGN_OR_RETURN(const auto workload, NewWorkload(plan.workload, plan.seed));
  const RunContext context{.plan = plan, .workload = workload.get(), .progress = progress.get()};
  LEEWAY_ASSIGN_OR_RETURN(const Config config, Config::FromEnvironment());
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Connect(config));
  RealSurroundings time;
  if (config.read_only) return RunEvaluator(context, config, folder, &time, worker.get());
  LEEWAY_ASSIGN_OR_RETURN(const WorkerRecord record, TrainWorker(context, &time, worker.get()));
  return WriteFile(WorkerFile(folder, worker->rank()), ToJson(record).dump());
}

}  // namespace leeway::lab
