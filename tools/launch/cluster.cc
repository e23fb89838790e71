#include "tools/launch/cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"

namespace leeway::launch {
namespace {

constexpr char kThisMachine[] = "127.0.0.1";

// A port that nothing listens on now. Another process may take it before the scheduler does, which
// then fails with a clear error.
absl::StatusOr<std::uint16_t> FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      fd >= 0 && bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (found) return ntohs(address.sin_port);
  return absl::UnavailableError(absl::StrCat("cannot find a free port on ", kThisMachine, ": ",
                                             std::strerror(error), "; name one with --scheduler"));
}

absl::Status CheckNumber(const char* what, std::uint32_t number, std::uint32_t max) {
  if (number >= 1 && number <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a cluster has 1 to ", max, " ", what, ", not ", number));
}

// Reports errors of the environment once, before any process has started and would report them too.
absl::Status CheckEnvironment(const ProcessSpec& process) {
  const absl::StatusOr<Config> config =
      Config::From([&](const std::string& name) -> std::optional<std::string> {
        const auto told = process.environment.find(name);
        if (told != process.environment.end()) return told->second;
        const auto& unset = process.unset;
        if (std::find(unset.begin(), unset.end(), name) != unset.end()) return std::nullopt;
        const char* inherited = std::getenv(name.c_str());
        if (inherited == nullptr) return std::nullopt;
        return inherited;
      });
  return config.ok() ? config->Validate() : config.status();
}

bool IsSet(const char* name) { return std::getenv(name) != nullptr; }

// The settings that all nodes get alike.
absl::StatusOr<std::map<std::string, std::string>> CommonEnvironment(const ClusterSpec& cluster) {
  std::map<std::string, std::string> environment = cluster.environment;
  std::string scheduler = cluster.scheduler;
  if (scheduler.empty()) {
    absl::StatusOr<std::uint16_t> port = FreePort();
    if (!port.ok()) return port.status();
    const char* const host = std::getenv("LEEWAY_HOST");
    scheduler = absl::StrCat(host != nullptr ? host : kThisMachine, ":", *port);
    // No process outside takes part, so the loopback is enough.
    if (!IsSet("LEEWAY_HOST") && !IsSet("LEEWAY_INTERFACE") && !IsSet("DMLC_NODE_HOST") &&
        !IsSet("DMLC_INTERFACE")) {
      environment["LEEWAY_HOST"] = kThisMachine;
    }
  }
  environment["LEEWAY_SCHEDULER"] = scheduler;
  environment["LEEWAY_NUM_SERVERS"] = absl::StrCat(cluster.servers);
  environment["LEEWAY_NUM_WORKERS"] = absl::StrCat(cluster.workers);
  return environment;
}

}  // namespace

absl::Duration EndGrace() {
  const absl::StatusOr<Config> config = Config::FromEnvironment();
  // A scheduler waits up to 5 s for nodes that it tells that the cluster ends.
  const absl::Duration end_grace = absl::Seconds(6);
  return config.ok() && config->checkpoint_at_end ? end_grace + config->checkpoint_timeout
                                                  : end_grace;
}

absl::StatusOr<std::vector<ProcessSpec>> PlanCluster(const ClusterSpec& cluster) {
  absl::Status status = CheckNumber("servers", cluster.servers, ClusterSpec::kServersMax);
  status.Update(CheckNumber("workers", cluster.workers, ClusterSpec::kWorkersMax));
  if (!status.ok()) return status;
  if (cluster.program.empty()) return absl::InvalidArgumentError("no program to run as worker");
  absl::StatusOr<std::map<std::string, std::string>> common = CommonEnvironment(cluster);
  if (!common.ok()) return common.status();

  std::vector<ProcessSpec> processes;
  auto add = [&](std::string name, const char* role, std::vector<std::string> arguments) {
    ProcessSpec process;
    process.name = std::move(name);
    process.arguments = std::move(arguments);
    process.environment = *common;
    process.environment["LEEWAY_ROLE"] = role;
    // Inherited values of these would contradict the cluster's own.
    process.unset = {"LEEWAY_RANK",      "LEEWAY_READ_ONLY",  "LEEWAY_ELASTIC",  "DMLC_ROLE",
                     "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER"};
    processes.push_back(std::move(process));
  };
  add("scheduler", "scheduler", {cluster.leeway, "scheduler"});
  for (std::uint32_t rank = 0; rank < cluster.servers; ++rank) {
    std::vector<std::string> server = {cluster.leeway, "server"};
    if (!cluster.server_program.empty()) server = {cluster.server_program};
    add(absl::StrCat("server ", rank), "server", std::move(server));
    processes.back().environment["LEEWAY_RANK"] = absl::StrCat(rank);
  }
  for (std::uint32_t rank = 0; rank < cluster.workers; ++rank) {
    add(absl::StrCat("worker ", rank), "worker", cluster.program);
    processes.back().environment["LEEWAY_RANK"] = absl::StrCat(rank);
    processes.back().is_work = true;
  }
  for (const ProcessSpec& process : processes) {
    if (absl::Status sane = CheckEnvironment(process); !sane.ok()) return sane;
  }
  return processes;
}

void ReplaceFailedServers(std::vector<ProcessSpec>* processes) {
  const absl::StatusOr<Config> config = Config::FromEnvironment();
  const bool others_have_it = !config.ok() || config->replication > 1;
  for (ProcessSpec& process : *processes) {
    if (process.environment["LEEWAY_ROLE"] != "server") continue;
    process.may_restart = others_have_it;
    if (others_have_it) continue;
    process.stays_down_because =
        "with LEEWAY_REPLICATION=1 no other server has its shards, so it is not replaced "
        "(LEEWAY_REPLICATION=2 keeps the cluster up)";
  }
}

}  // namespace leeway::launch
