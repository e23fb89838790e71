// A worker dies in the middle of a BSP training, and comes back.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "tests/storm/storm.h"

namespace leeway::storm {
namespace {

constexpr std::uint32_t kLostWorker = 2;
constexpr absl::Duration kGrace = absl::Seconds(1);           // on top of the failure timeout
constexpr absl::Duration kLostWorkerRun = absl::Seconds(25);  // of the training, at least

}  // namespace

absl::Status RunLostWorker(const StormOptions& options) {
  const ClusterOptions wanted = ClusterFor(options, "bsp", "worker");
  Cluster cluster(wanted);
  std::printf("\nbsp, worker %d is killed and comes back\n", static_cast<int>(kLostWorker));
  std::fflush(stdout);
  LEEWAY_RETURN_IF_ERROR(cluster.Start());
  cluster.pace().Set(kLostWorkerRun / static_cast<double>(options.steps));
  AcknowledgedPushes& acknowledged = cluster.acknowledged();
  LEEWAY_RETURN_IF_ERROR(cluster.Await("the training is under way", absl::Minutes(2), [&] {
    return acknowledged.StepsDone() > options.steps / 20;
  }));
  cluster.KillWorker(kLostWorker);
  const absl::Time killed = absl::Now();
  const auto steps = [&] { return *acknowledged.lives()[0].last_step; };
  std::uint64_t before = 0;
  LEEWAY_RETURN_IF_ERROR(
      cluster.Await("the scheduler finds the worker dead", absl::Seconds(60), [&] {
        before = steps();
        return !cluster.deaths().empty();
      }));
  LEEWAY_RETURN_IF_ERROR(
      cluster.Await("the others go on", absl::Seconds(60), [&] { return steps() > before + 20; }));
  const absl::Duration longest = acknowledged.LongestWait(killed, absl::Now());
  LEEWAY_RETURN_IF_ERROR(cluster.StartWorker(kLostWorker).status());
  const std::size_t second = acknowledged.lives().size() - 1;
  LEEWAY_RETURN_IF_ERROR(cluster.Await("it is back, and trains", absl::Seconds(60), [&] {
    const AcknowledgedPushes::Life& life = acknowledged.lives()[second];
    return life.last_step.has_value() && *life.last_step > life.began + 20;
  }));
  const absl::Status finished = Finish(&cluster);
  PrintRow("the others' longest wait", absl::FormatDuration(longest));
  PrintRow("it came back at step", absl::StrCat(acknowledged.lives()[second].began));
  LEEWAY_RETURN_IF_ERROR(finished);
  if (longest <= Cluster::kFailureTimeout + kGrace) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the others waited for ", absl::FormatDuration(longest),
                                          ", longer than ",
                                          absl::FormatDuration(Cluster::kFailureTimeout + kGrace)));
}

}  // namespace leeway::storm
