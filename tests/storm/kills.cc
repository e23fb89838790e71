// Servers are killed and replaced while training goes on.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/memory/sanitized.h"
#include "tests/storm/storm.h"
#include "tools/format/progress_bar.h"

namespace leeway::storm {
namespace {

constexpr std::uint32_t kServers = 3;
constexpr double kAccuracyTolerance = 0.005;
constexpr absl::Duration kWantedRecovery = absl::Milliseconds(200);
// A first estimate of the time from one kill to the next, to pace the training.
constexpr absl::Duration kFirstRound = absl::Seconds(3);
constexpr absl::Duration kPaceMin = absl::Milliseconds(1);
constexpr absl::Duration kPaceMax = absl::Seconds(1);
const absl::Duration kDeathPatience =
    Cluster::kFailureTimeout + absl::Seconds(runtime::kSanitized ? 30 : 5);

struct Kill {
  std::uint32_t server = 0;
  bool stopped = false;  // for a while, instead of killed
  absl::Time at, detected, next;
};

// The figures of kills, known once all workers have reported.
struct Figures {
  std::vector<absl::Duration> detection, recovery, recovery_of_all, pause;

  void Add(const Figures& other) {
    detection.insert(detection.end(), other.detection.begin(), other.detection.end());
    recovery.insert(recovery.end(), other.recovery.begin(), other.recovery.end());
    recovery_of_all.insert(recovery_of_all.end(), other.recovery_of_all.begin(),
                           other.recovery_of_all.end());
    pause.insert(pause.end(), other.pause.begin(), other.pause.end());
  }
};

std::string Shown(absl::Duration duration) {
  return absl::StrFormat("%.0f ms", absl::ToDoubleMilliseconds(duration));
}

std::string MedianAndLargest(const std::vector<absl::Duration>& durations) {
  return absl::StrCat(Shown(MedianOf(durations)), ", ", Shown(LargestOf(durations)));
}

class KillStorm {
 public:
  KillStorm(const StormOptions& options, const std::string& mode, std::uint32_t kills)
      : options_(options),
        mode_(mode),
        kills_wanted_(kills),
        random_(options.seed),
        cluster_(ClusterFor(options, mode, "kills")),
        bar_(true) {}

  absl::Status Run() {
    LEEWAY_RETURN_IF_ERROR(cluster_.Start());
    while (kills_.size() < kills_wanted_) {
      LEEWAY_RETURN_IF_ERROR(AwaitWhole());
      SetPace();
      LEEWAY_RETURN_IF_ERROR(SomeTime(absl::Milliseconds(random_() % 500)));
      if (cluster_.acknowledged().StepsDone() >= options_.steps) break;
      LEEWAY_RETURN_IF_ERROR(KillOne());
    }
    LEEWAY_RETURN_IF_ERROR(AwaitWhole());
    const absl::Status finished = Finish(&cluster_);
    if (finished.ok() && kills_.size() < kills_wanted_) {
      return absl::FailedPreconditionError(absl::StrCat("the training was over after ",
                                                        kills_.size(), " of ", kills_wanted_,
                                                        " kills: it needs more --steps"));
    }
    return finished;
  }

  std::size_t kills() const { return kills_.size(); }
  std::optional<double> accuracy() { return cluster_.acknowledged().accuracy(); }

  Figures Summary() {
    Figures figures;
    const AcknowledgedPushes& acknowledged = cluster_.acknowledged();
    for (const Kill& kill : kills_) {
      figures.detection.push_back(kill.detected - kill.at);
      figures.recovery.push_back(acknowledged.FirstAcknowledgement(kill.detected) - kill.detected);
      figures.recovery_of_all.push_back(acknowledged.LastFirstAcknowledgement(kill.detected) -
                                        kill.detected);
      figures.pause.push_back(acknowledged.LongestWait(kill.at, kill.next));
    }
    return figures;
  }

 private:
  absl::Status AwaitWhole() {
    LEEWAY_RETURN_IF_ERROR(cluster_.AwaitWhole(kServers));
    if (kills_.empty()) return absl::OkStatus();
    kills_.back().next = absl::Now();
    Show();
    return absl::OkStatus();
  }

  absl::Status SomeTime(absl::Duration time) {
    const absl::Time until = absl::Now() + time;
    return cluster_.Await("", absl::InfiniteDuration(), [&] { return absl::Now() >= until; });
  }

  absl::Status KillOne() {
    Kill kill;
    kill.server = static_cast<std::uint32_t>(random_() % kServers);
    kill.stopped = options_.stops && random_() % 4 == 0;
    Child* victim = cluster_.ServerOf(kill.server);
    if (victim == nullptr) {
      return absl::InternalError(absl::StrCat("nobody runs as server ", kill.server));
    }
    const std::size_t deaths = cluster_.deaths().size();
    cluster_.Expect(victim);
    kill.at = absl::Now();
    victim->Signal(kill.stopped ? SIGSTOP : SIGKILL);
    // A replacement for a server that still seems to live is refused.
    if (!kill.stopped) {
      LEEWAY_RETURN_IF_ERROR(cluster_.StartServer().status());
    }
    LEEWAY_RETURN_IF_ERROR(
        cluster_.Await(absl::StrCat("the scheduler finds server ", kill.server, " dead"),
                       kDeathPatience, [&] { return cluster_.deaths().size() > deaths; }));
    const Death& death = cluster_.deaths().back();
    if (death.who != absl::StrCat("server ", kill.server)) {
      return absl::InternalError(absl::StrCat("it was server ", kill.server, " that was ",
                                              kill.stopped ? "stopped" : "killed", ", but ",
                                              death.who, " is dead: ", death.why));
    }
    kill.detected = death.at;
    kills_.push_back(kill);
    if (!kill.stopped) return absl::OkStatus();
    LEEWAY_RETURN_IF_ERROR(cluster_.StartServer().status());
    // When it continues, the cluster has replaced it.
    LEEWAY_RETURN_IF_ERROR(SomeTime(absl::Milliseconds(random_() % 1000)));
    victim->Signal(SIGCONT);
    return cluster_.Await(
        absl::StrCat("server ", kill.server, ", deposed while it was stopped, ends"),
        absl::Seconds(30), [&] { return !victim->running(); });
  }

  // So that the training ends soon after the last kill, and not before: each round has as many
  // steps as are left for each of the following rounds.
  void SetPace() {
    const std::uint64_t steps = cluster_.acknowledged().StepsDone();
    const auto done = static_cast<double>(steps - std::exchange(steps_before_, steps));
    const double wanted = static_cast<double>(options_.steps - steps) /
                          static_cast<double>(kills_wanted_ - kills_.size() + 1);
    if (kills_.empty()) {
      pace_ = kFirstRound / wanted;
    } else {
      pace_ = std::clamp(pace_ * std::clamp(done / wanted, 0.5, 2.0), kPaceMin, kPaceMax);
    }
    cluster_.pace().Set(pace_);
  }

  void Show() {
    const Kill& kill = kills_.back();
    const AcknowledgedPushes& acknowledged = cluster_.acknowledged();
    const absl::Time first = acknowledged.FirstAcknowledgement(kill.detected);
    bar_.Print(
        absl::StrFormat("%s kill %d/%d  server %d %s  dead after %4s  first push %s later  whole "
                        "after %4s  step %d/%d",
                        mode_, kills_.size(), kills_wanted_, kill.server,
                        kill.stopped ? "stopped" : "killed ", Shown(kill.detected - kill.at),
                        first == absl::InfiniteFuture() ? "…" : Shown(first - kill.detected),
                        Shown(kill.next - kill.at), acknowledged.StepsDone(), options_.steps));
  }

  const StormOptions& options_;
  const std::string mode_;
  const std::uint32_t kills_wanted_;
  std::mt19937_64 random_;
  Cluster cluster_;
  tools::ProgressBar bar_;
  std::vector<Kill> kills_;
  std::uint64_t steps_before_ = 0;
  absl::Duration pace_;
};

absl::StatusOr<double> AccuracyWithout(const StormOptions& options, const std::string& mode) {
  Cluster cluster(ClusterFor(options, mode, "calm"));
  LEEWAY_RETURN_IF_ERROR(cluster.Start());
  std::printf("\n%s, nobody killed\n", mode.c_str());
  LEEWAY_RETURN_IF_ERROR(Finish(&cluster));
  return cluster.acknowledged().accuracy().value_or(0);
}

absl::Status RunMode(const StormOptions& options, const std::string& mode, std::uint32_t kills,
                     Figures* all) {
  double calm = 0;
  if (options.compares) {
    LEEWAY_ASSIGN_OR_RETURN(calm, AccuracyWithout(options, mode));
  }
  std::printf("\n%s, %d kills, seed %d\n", mode.c_str(), static_cast<int>(kills),
              static_cast<int>(options.seed));
  std::fflush(stdout);
  KillStorm storm(options, mode, kills);
  const absl::Status status = storm.Run();
  const Figures figures = storm.Summary();
  all->Add(figures);
  PrintRow("kills", absl::StrCat(storm.kills()));
  PrintRow("until declared dead (median, largest)", MedianAndLargest(figures.detection));
  PrintRow("from there to the first acknowledged push", MedianAndLargest(figures.recovery));
  PrintRow("… of every worker", MedianAndLargest(figures.recovery_of_all));
  PrintRow("pause of a worker", MedianAndLargest(figures.pause));
  LEEWAY_RETURN_IF_ERROR(status);
  if (!options.compares) return status;
  const double stormy = storm.accuracy().value_or(0);
  PrintRow("accuracy with and without kills",
           absl::StrFormat("%.2f %%, %.2f %%", 100 * stormy, 100 * calm));
  if (std::abs(stormy - calm) <= kAccuracyTolerance) return status;
  return absl::InternalError(
      absl::StrFormat("%s: the accuracy is %.2f %% with kills and %.2f %% without", mode,
                      100 * stormy, 100 * calm));
}

}  // namespace

absl::Status RunKills(const StormOptions& options) {
  Figures all;
  const auto modes = static_cast<std::uint32_t>(options.modes.size());
  for (std::uint32_t i = 0; i < modes; ++i) {
    const std::uint32_t kills = options.kills * (i + 1) / modes - options.kills * i / modes;
    LEEWAY_RETURN_IF_ERROR(RunMode(options, options.modes[i], kills, &all));
  }
  const absl::Duration median = MedianOf(all.recovery);
  std::printf("\nall together\n");
  PrintRow("kills", absl::StrCat(all.pause.size()));
  PrintRow("detection to the first acknowledged push", MedianAndLargest(all.recovery));
  PrintRow("pause of a worker (median, largest)", MedianAndLargest(all.pause));
  if (runtime::kSanitized || !options.judges_times || median < kWantedRecovery)
    return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("from detection to the first acknowledged push it takes ", Shown(median),
                   " in the median, ", Shown(kWantedRecovery), " are wanted"));
}

}  // namespace leeway::storm
