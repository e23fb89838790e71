// Servers get SIGTERM one after another, and are replaced: as when machines are renewed. There is
// one replica of everything, so a shard that ended with its server would be missing.
#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/memory/sanitized.h"
#include "tests/storm/storm.h"

namespace leeway::storm {
namespace {

// Time of the training for each restart: more than it takes. The remaining steps are not paced.
constexpr absl::Duration kRestartRound = absl::Seconds(runtime::kSanitized ? 40 : 10);

absl::Status RestartOne(Cluster* cluster, std::uint32_t rank, absl::Duration* took) {
  Child* const server = cluster->ServerOf(rank);
  if (server == nullptr) {
    return absl::InternalError(absl::StrCat("nobody runs as server ", rank));
  }
  const absl::Time begin = absl::Now();
  cluster->Expect(server);
  server->Signal(SIGTERM);
  LEEWAY_RETURN_IF_ERROR(cluster->Await(absl::StrCat("server ", rank, " ends after SIGTERM"),
                                        absl::Seconds(runtime::kSanitized ? 120 : 25),
                                        [&] { return !server->running(); }));
  *took = absl::Now() - begin;
  if (server->exit_code() != 0) {
    return absl::InternalError(absl::StrCat("server ", rank, " ended with code ",
                                            server->exit_code(), ": ", server->last_words()));
  }
  return cluster->StartServer({{"LEEWAY_ELASTIC", "1"}}).status();
}

absl::Status RestartServers(const StormOptions& options, const std::string& mode) {
  ClusterOptions wanted = ClusterFor(options, mode, "restarts");
  wanted.settings.insert_or_assign("LEEWAY_REPLICATION", std::string(1, '1'));
  Cluster cluster(wanted);
  std::printf("\n%s, each of %d servers restarted by SIGTERM, no replicas\n", mode.c_str(),
              static_cast<int>(wanted.servers));
  std::fflush(stdout);
  LEEWAY_RETURN_IF_ERROR(cluster.Start());
  cluster.pace().Set(kRestartRound * wanted.servers / static_cast<double>(options.steps));
  LEEWAY_RETURN_IF_ERROR(cluster.AwaitWhole(wanted.servers));
  LEEWAY_RETURN_IF_ERROR(cluster.Await("the training is under way", absl::Minutes(2), [&] {
    return cluster.acknowledged().StepsDone() > options.steps / 20;
  }));
  const absl::Time begin = absl::Now();
  absl::Duration longest;
  for (std::uint32_t rank = 0; rank < wanted.servers; ++rank) {
    absl::Duration took;
    LEEWAY_RETURN_IF_ERROR(RestartOne(&cluster, rank, &took));
    longest = std::max(longest, took);
    LEEWAY_RETURN_IF_ERROR(cluster.AwaitWhole(wanted.servers));
  }
  const absl::Time end = absl::Now();
  const bool too_early = cluster.acknowledged().StepsDone() >= options.steps;
  const absl::Status finished = Finish(&cluster);
  PrintRow("from SIGTERM to the end of a server, at most", absl::FormatDuration(longest));
  PrintRow("longest wait of a worker meanwhile",
           absl::FormatDuration(cluster.acknowledged().LongestWait(begin, end)));
  LEEWAY_RETURN_IF_ERROR(finished);
  if (!too_early) return absl::OkStatus();
  return absl::FailedPreconditionError("the training was over too early: it needs more --steps");
}

}  // namespace

absl::Status RunRestarts(const StormOptions& options) {
  for (const std::string& mode : options.modes)
    LEEWAY_RETURN_IF_ERROR(RestartServers(options, mode));
  return absl::OkStatus();
}

}  // namespace leeway::storm
