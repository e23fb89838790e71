// A server is added, and another one is drained.
#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "tests/storm/storm.h"

namespace leeway::storm {
namespace {

constexpr std::uint32_t kDrained = 1;
constexpr double kDifferenceMax = 0.1;
constexpr absl::Duration kElasticRun = absl::Seconds(20);  // of the training, at least

// The difference between the largest and the smallest, as a part of their mean.
double DifferenceOf(const View& view) {
  double sum = 0, least = 0, most = 0;
  std::uint64_t servers = 0;
  for (const View::Server& server : view.servers) {
    if (!server.alive) continue;
    const auto bytes = static_cast<double>(server.bytes);
    least = servers == 0 ? bytes : std::min(least, bytes);
    most = std::max(most, bytes);
    sum += bytes;
    ++servers;
  }
  return sum == 0 ? 1 : (most - least) / (sum / static_cast<double>(servers));
}

std::string BytesOf(const View& view) {
  std::string text;
  for (std::size_t rank = 0; rank < view.servers.size(); ++rank) {
    if (!view.servers[rank].alive) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", "server ", rank, ": ",
                    view.servers[rank].bytes >> 10, " KiB");
  }
  return text;
}

absl::Status GrowAndShrink(const StormOptions& options, const std::string& mode) {
  const ClusterOptions wanted = ClusterFor(options, mode, "elastic");
  Cluster cluster(wanted);
  std::printf("\n%s, a server is added and server %d drained\n", mode.c_str(),
              static_cast<int>(kDrained));
  std::fflush(stdout);
  LEEWAY_RETURN_IF_ERROR(cluster.Start());
  cluster.pace().Set(kElasticRun / static_cast<double>(options.steps));
  LEEWAY_RETURN_IF_ERROR(cluster.Await("the training is under way", absl::Minutes(2), [&] {
    return cluster.acknowledged().StepsDone() > options.steps / 20;
  }));
  const absl::Time begin = absl::Now();
  LEEWAY_RETURN_IF_ERROR(cluster.StartServer({{"LEEWAY_ELASTIC", "1"}}).status());
  LEEWAY_RETURN_IF_ERROR(cluster.AwaitWhole(wanted.servers + 1));
  LEEWAY_ASSIGN_OR_RETURN(const View with_four, cluster.Look());
  const absl::Duration added = absl::Now() - begin;
  LEEWAY_ASSIGN_OR_RETURN(
      Child * drain,
      cluster.StartTool("drain", {LEEWAY_BINARY, "drain", absl::StrCat("server:", kDrained)}));
  LEEWAY_RETURN_IF_ERROR(
      cluster.Await("the server is drained", absl::Minutes(1), [&] { return !drain->running(); }));
  if (drain->exit_code() != 0) return absl::InternalError(drain->last_words());
  LEEWAY_RETURN_IF_ERROR(cluster.AwaitWhole(wanted.servers));
  LEEWAY_ASSIGN_OR_RETURN(const View after, cluster.Look());
  const absl::Time end = absl::Now();
  const std::uint64_t steps = cluster.acknowledged().StepsDone();
  const absl::Status finished = Finish(&cluster);
  PrintRow("until the new one had its share", absl::FormatDuration(added));
  PrintRow("until the other was drained", absl::FormatDuration(end - begin - added));
  PrintRow("with all four", BytesOf(with_four));
  PrintRow("afterwards", BytesOf(after));
  PrintRow("largest difference", absl::StrFormat("%.1f %%, %.1f %%", 100 * DifferenceOf(with_four),
                                                 100 * DifferenceOf(after)));
  PrintRow("longest wait of a worker meanwhile",
           absl::FormatDuration(cluster.acknowledged().LongestWait(begin, end)));
  LEEWAY_RETURN_IF_ERROR(finished);
  if (steps >= options.steps) {
    return absl::FailedPreconditionError("the training was over too early: it needs more --steps");
  }
  if (std::max(DifferenceOf(with_four), DifferenceOf(after)) >= kDifferenceMax) {
    return absl::InternalError("the servers' bytes differ by more than 10 %");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunElastic(const StormOptions& options) {
  for (const std::string& mode : options.modes)
    LEEWAY_RETURN_IF_ERROR(GrowAndShrink(options, mode));
  return absl::OkStatus();
}

}  // namespace leeway::storm
