// The scheduler is killed, and comes back after its absence was noticed.
#include <signal.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "tests/storm/storm.h"

namespace leeway::storm {
namespace {

constexpr absl::Duration kAway = absl::Seconds(10);
constexpr absl::Duration kSchedulerAwayRun = absl::Seconds(25);  // of the training, at least

absl::Status LoseScheduler(const StormOptions& options, const std::string& mode) {
  ClusterOptions wanted = ClusterFor(options, mode, "scheduler");
  wanted.keeps_scheduler_state = true;
  Cluster cluster(wanted);
  std::printf("\n%s, the scheduler is killed and started again %s later\n", mode.c_str(),
              absl::FormatDuration(kAway).c_str());
  std::fflush(stdout);
  LEEWAY_RETURN_IF_ERROR(cluster.Start());
  cluster.pace().Set(kSchedulerAwayRun / static_cast<double>(options.steps));
  const auto steps = [&] { return cluster.acknowledged().StepsDone(); };
  LEEWAY_RETURN_IF_ERROR(cluster.Await("the training is under way", absl::Minutes(2),
                                       [&] { return steps() > options.steps / 20; }));
  cluster.Expect(cluster.scheduler());
  cluster.scheduler()->Signal(SIGKILL);
  const absl::Time killed = absl::Now();
  const std::uint64_t then = steps();
  LEEWAY_RETURN_IF_ERROR(
      cluster.Await("", absl::InfiniteDuration(), [&] { return absl::Now() > killed + kAway; }));
  const std::uint64_t meanwhile = steps() - then;
  LEEWAY_RETURN_IF_ERROR(cluster.StartScheduler());
  const absl::Time started = absl::Now();
  LEEWAY_RETURN_IF_ERROR(cluster.AwaitWhole(wanted.servers));
  const absl::Duration back = absl::Now() - started;
  const absl::Status finished = Finish(&cluster);
  PrintRow("steps while it was away", absl::StrCat(meanwhile));
  PrintRow("from its start until it had everyone again", absl::FormatDuration(back));
  PrintRow("longest wait of a worker", absl::FormatDuration(cluster.acknowledged().LongestWait(
                                           killed, absl::InfiniteFuture())));
  LEEWAY_RETURN_IF_ERROR(finished);
  if (meanwhile == 0) return absl::InternalError("nobody trained while the scheduler was away");
  if (!cluster.deaths().empty()) {
    return absl::InternalError(
        absl::StrCat(cluster.deaths()[0].who, " was declared dead: ", cluster.deaths()[0].why));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunSchedulerAway(const StormOptions& options) {
  for (const std::string& mode : options.modes)
    LEEWAY_RETURN_IF_ERROR(LoseScheduler(options, mode));
  return absl::OkStatus();
}

}  // namespace leeway::storm
