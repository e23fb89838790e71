#include "tests/storm/cluster.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "leeway/config.h"
#include "runtime/base/monotonic_time.h"
#include "runtime/base/status_macros.h"
#include "runtime/memory/sanitized.h"
#include "tests/storm/history_file.h"
#include "tools/admin/inquiry.h"

namespace leeway::storm {
namespace {

// Smaller than the default, so that the model is spread over all servers.
constexpr char kBlockBytes[] = "16384";
constexpr absl::Duration kStatusPatience = absl::Seconds(2);
// The pause between two requests of the status while a condition is awaited.
constexpr absl::Duration kLookInterval = absl::Milliseconds(100);
constexpr absl::Duration kWholePatience = absl::Seconds(runtime::kSanitized ? 240 : 60);

// "2026-05-04T03:02:01.000+00:00 warning scheduler: text"
std::optional<std::pair<absl::Time, std::string>> ParseLogLine(absl::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
  absl::Time time;
  std::string error;
  if (words.size() != 4 || !absl::ParseTime(absl::RFC3339_full, words[0], &time, &error)) {
    return std::nullopt;
  }
  return std::pair(time, words[3]);
}

View ViewFrom(const nlohmann::json& status) {
  View view;
  const auto& shards = status.at("shards");
  view.complete = status.at("complete");
  view.epoch = status.at("epoch");
  view.lost = shards.at("lost");
  view.whole = view.complete && shards.at("settled") && view.lost == 0 &&
               shards.at("filling") == 0 && shards.at("moving") == 0;
  for (const auto& server : status.at("servers")) {
    view.servers.push_back({.alive = server.at("state") == "alive"});
    if (server.contains("endpoints")) view.servers.back().endpoints = server.at("endpoints");
  }
  for (const auto& worker : status.at("workers")) view.workers.push_back(worker.at("state"));
  for (const auto& server : shards.at("servers")) {
    View::Server& of = view.servers.at(server.at("rank").get<std::size_t>());
    of.places =
        server.at("heads").get<std::uint64_t>() + server.at("replicas").get<std::uint64_t>();
    of.bytes = server.at("bytes");
  }
  return view;
}

}  // namespace

std::uint64_t View::living_servers() const {
  return static_cast<std::uint64_t>(
      std::count_if(servers.begin(), servers.end(), [](const Server& s) { return s.alive; }));
}

absl::Status Cluster::Start() {
  std::error_code error;
  std::filesystem::remove_all(options_.folder, error);
  if (!std::filesystem::create_directories(options_.folder, error)) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", options_.folder, ": ", error.message()));
  }
  LEEWAY_ASSIGN_OR_RETURN(Pace pace, Pace::Open(options_.folder + "/pace"));
  pace_.emplace(std::move(pace));
  LEEWAY_RETURN_IF_ERROR(StartScheduler());
  for (std::uint32_t i = 0; i < options_.servers; ++i) {
    LEEWAY_RETURN_IF_ERROR(StartServer({{"LEEWAY_RANK", absl::StrCat(i)}}).status());
  }
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    LEEWAY_RETURN_IF_ERROR(StartWorker(i).status());
  }
  return AwaitWhole(options_.servers);
}

absl::Status Cluster::StartScheduler() {
  const auto set = options_.settings.find("LEEWAY_HOST");
  const std::string host = options_.host                    ? options_.host("scheduler")
                           : set != options_.settings.end() ? set->second
                                                            : "127.0.0.1";
  std::map<std::string, std::string> own = {
      {"LEEWAY_SCHEDULER", address_.empty() ? absl::StrCat(host, ":0") : address_}};
  if (options_.keeps_scheduler_state) own["LEEWAY_SCHEDULER_STATE"] = options_.folder + "/state";
  scheduler_listens_ = false;
  LEEWAY_ASSIGN_OR_RETURN(scheduler_,
                          StartNode("scheduler", {LEEWAY_BINARY, "scheduler"}, std::move(own), {},
                                    [this](absl::string_view line) { OnSchedulerLine(line); }));
  return Await("the scheduler listens", absl::Seconds(20), [&] { return scheduler_listens_; });
}

// "…: server 2 of the cluster of …"
absl::StatusOr<Child*> Cluster::StartServer(const std::map<std::string, std::string>& more) {
  const auto asked = more.find("LEEWAY_RANK");
  const std::string name = asked == more.end() ? "server" : absl::StrCat("server ", asked->second);
  const auto self = std::make_shared<Child*>(nullptr);
  LEEWAY_ASSIGN_OR_RETURN(
      Child * child,
      StartNode(name, {LEEWAY_BINARY, "server"}, more, {}, [this, self](absl::string_view line) {
        const std::vector<std::string> words = absl::StrSplit(line, ' ');
        std::uint32_t got = 0;
        for (std::size_t i = 0; i + 3 < words.size(); ++i) {
          if (words[i] == "server" && words[i + 2] == "of" &&
              absl::SimpleAtoi(words[i + 1], &got)) {
            ranks_[*self] = got;
          }
        }
      }));
  *self = child;
  servers_.push_back(child);
  return child;
}

absl::StatusOr<Child*> Cluster::StartWorker(std::uint32_t rank) {
  const std::string name = absl::StrCat("worker ", rank);
  std::uint64_t pushes_before = 0;
  for (const WorkerProcess& before : worker_processes_) {
    if (before.rank != rank) continue;
    LEEWAY_ASSIGN_OR_RETURN(pushes_before, PushesNumbered(before.history, pushes_before));
  }
  WorkerProcess process;
  process.rank = rank;
  process.life = acknowledged_.NewLife(rank);
  process.history =
      absl::StrCat(options_.folder, "/worker-", rank, ".", started_[name] + 1, ".history");
  const WorkerOptions& training = options_.training;
  LEEWAY_ASSIGN_OR_RETURN(
      process.child,
      StartNode(
          name,
          {launch::OwnProgram(), "work", "--mode", training.mode, "--model", training.model,
           "--steps", absl::StrCat(training.steps), "--pace", options_.folder + "/pace",
           "--history", process.history, "--pushes-before", absl::StrCat(pushes_before)},
          {{"LEEWAY_RANK", absl::StrCat(rank)}},
          [this, life = process.life](absl::string_view line) { acknowledged_.OnLine(life, line); },
          {}));
  worker_processes_.push_back(process);
  return process.child;
}

void Cluster::KillWorker(std::uint32_t rank) {
  const auto newest =
      std::find_if(worker_processes_.rbegin(), worker_processes_.rend(),
                   [&](const WorkerProcess& process) { return process.rank == rank; });
  Expect(newest->child);
  newest->killed_at = runtime::MonotonicNow();
  newest->child->Signal(SIGKILL);
  acknowledged_.Killed(newest->life);
}

absl::StatusOr<Child*> Cluster::StartTool(const std::string& name,
                                          const std::vector<std::string>& command) {
  absl::StatusOr<Child*> child = StartNode(name, command, {}, {}, {});
  if (child.ok()) Expect(*child);
  return child;
}

absl::StatusOr<Child*> Cluster::StartNode(const std::string& name, std::vector<std::string> command,
                                          std::map<std::string, std::string> more,
                                          const std::function<void(absl::string_view)>& on_output,
                                          const std::function<void(absl::string_view)>& on_error) {
  std::map<std::string, std::string> environment = {
      {"LEEWAY_NUM_SERVERS", absl::StrCat(options_.servers)},
      {"LEEWAY_NUM_WORKERS", absl::StrCat(options_.workers)},
      {"LEEWAY_REPLICATION", "2"},
      {"LEEWAY_BLOCK_BYTES", kBlockBytes},
      {"LEEWAY_HEARTBEAT_INTERVAL_MS", "250"},
      {"LEEWAY_FAILURE_TIMEOUT_MS", absl::StrCat(absl::ToInt64Milliseconds(kFailureTimeout))},
      {"LEEWAY_SCHEDULER", address_},
      {"LEEWAY_HOST", options_.host ? options_.host(name) : "127.0.0.1"}};
  for (const auto& [setting, value] : options_.settings) environment[setting] = value;
  for (const auto& [setting, value] : more) environment[setting] = value;
  if (options_.inside) {
    std::vector<std::string> wrapped = options_.inside(name);
    wrapped.insert(wrapped.end(), command.begin(), command.end());
    command = std::move(wrapped);
  }
  const int number = ++started_[name];
  auto log = std::make_shared<std::ofstream>(absl::StrCat(
      options_.folder, "/", absl::StrReplaceAll(name, {{" ", "-"}}), ".", number, ".log"));
  launch::ProcessSpec spec;
  spec.name = name;
  spec.arguments = std::move(command);
  spec.environment = std::move(environment);
  return children_.Start(
      std::move(spec), [log, on_output, on_error](launch::Stream stream, absl::string_view line) {
        *log << line << std::endl;
        const auto& told = stream == launch::Stream::kOutput ? on_output : on_error;
        if (told) told(line);
      });
}

void Cluster::OnSchedulerLine(absl::string_view line) {
  const auto said = ParseLogLine(line);
  if (!said.has_value()) return;
  const auto& [time, text] = *said;
  if (absl::StartsWith(text, "scheduler of ")) {
    scheduler_listens_ = true;
    address_ = text.substr(text.rfind("tcp://"));
  }
  const std::size_t at = text.find(" is dead: ");
  if (at == std::string::npos) return;
  // "server 1 (tcp://…) is dead: why"
  const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  deaths_.push_back({absl::StrCat(words[0], " ", words[1]), time, text.substr(at + 10)});
}

absl::Status Cluster::UnexpectedEnd() const {
  for (const auto& child : children_.all()) {
    if (child->running() || child->exit_code() == 0) continue;
    if (std::count(may_end_.begin(), may_end_.end(), child.get()) > 0) continue;
    return absl::AbortedError(absl::StrCat(child->name(), " (process ", child->pid(),
                                           ") ended with code ", child->exit_code(), ": ",
                                           child->last_words()));
  }
  return absl::OkStatus();
}

absl::Status Cluster::Await(const std::string& what, absl::Duration patience,
                            const std::function<bool()>& so) {
  const absl::Time deadline = absl::Now() + patience;
  while (!so()) {
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("not within ", absl::FormatDuration(patience), ": ", what));
    }
    Poll();
    LEEWAY_RETURN_IF_ERROR(UnexpectedEnd());
  }
  return absl::OkStatus();
}

absl::Status Cluster::AwaitWhole(std::uint32_t servers) {
  absl::Time next_look = absl::InfinitePast();
  std::uint64_t lost = 0;
  LEEWAY_RETURN_IF_ERROR(Await(
      absl::StrCat("all chains are whole again, on ", servers, " servers"), kWholePatience, [&] {
        if (absl::Now() < next_look) return false;
        const absl::StatusOr<View> view = Look();
        next_look = absl::Now() + kLookInterval;
        if (!view.ok()) return false;
        lost = view->lost;
        return lost > 0 || (view->whole && view->living_servers() == servers);
      }));
  if (lost == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(lost, " shards are lost"));
}

absl::StatusOr<View> Cluster::Look() {
  Config config;
  if (const auto van = options_.settings.find("LEEWAY_VAN"); van != options_.settings.end()) {
    config.van = van->second;  // the scheduler has no other
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::string text, tools::AskForStatus({address_}, Role::kScheduler,
                                                                      kStatusPatience, config)[0]);
  try {
    return ViewFrom(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& wrong) {
    return absl::InternalError(absl::StrCat("the status is not as it should be: ", wrong.what()));
  }
}

Child* Cluster::ServerOf(std::uint32_t rank) const {
  for (auto child = servers_.rbegin(); child != servers_.rend(); ++child) {
    const auto of = ranks_.find(*child);
    if ((*child)->running() && of != ranks_.end() && of->second == rank) return *child;
  }
  return nullptr;
}

bool Cluster::TrainingIsOver() const {
  return std::all_of(worker_processes_.begin(), worker_processes_.end(),
                     [](const WorkerProcess& process) { return !process.child->running(); });
}

absl::Status Cluster::AwaitEnd(absl::Duration patience) {
  LEEWAY_RETURN_IF_ERROR(
      Await("the training is over", patience, [this] { return TrainingIsOver(); }));
  Expect(scheduler_);  // it fails if a node has died and none came in its place
  return Await("all processes have ended", absl::Seconds(30), [this] {
    return std::all_of(children_.all().begin(), children_.all().end(),
                       [](const auto& child) { return !child->running(); });
  });
}

}  // namespace leeway::storm
