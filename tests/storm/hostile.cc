// Training at full speed while hostile peers attack all its nodes.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "tests/storm/attack.h"
#include "tests/storm/storm.h"
#include "tools/launch/process.h"

namespace leeway::storm {
namespace {

constexpr absl::Duration kSpell = absl::Seconds(6);
// An attack learns about the cluster first, and what its nodes take.
constexpr absl::Duration kPrepares = absl::Minutes(1);
constexpr double kSlowerMax = 0.10;
constexpr std::uint64_t kGrowthMaxBytes = 256ull << 20;
constexpr absl::Duration kStatusWithin = absl::Seconds(2);

std::uint64_t ResidentBytes(pid_t pid) {
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  std::uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

// The CPU time that a process has used.
absl::Duration CpuTimeOf(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::vector<std::string> fields =
      absl::StrSplit(text.substr(text.rfind(')') + 1), ' ', absl::SkipEmpty());
  std::int64_t user = 0, system = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user) ||
      !absl::SimpleAtoi(fields[12], &system)) {
    return absl::ZeroDuration();
  }
  return absl::Seconds(1) * static_cast<double>(user + system) /
         static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Spell {
  double steps_per_s = 0;
  std::uint64_t growth_bytes = 0;  // of the node that has grown most
  double cores = 0;                // that all nodes have used
};

absl::StatusOr<Spell> Watch(Cluster* cluster, const std::vector<const Child*>& nodes) {
  std::map<const Child*, std::uint64_t> before;
  absl::Duration cpu_before;
  for (const Child* node : nodes) {
    before[node] = ResidentBytes(node->pid());
    cpu_before += CpuTimeOf(node->pid());
  }
  Spell spell;
  const absl::Time begin = absl::Now();
  const std::uint64_t steps = cluster->acknowledged().StepsDone();
  LEEWAY_RETURN_IF_ERROR(cluster->Await("a while passes", 2 * kSpell, [&] {
    for (const Child* node : nodes) {
      const std::uint64_t now = ResidentBytes(node->pid());
      spell.growth_bytes = std::max(spell.growth_bytes, now - std::min(now, before[node]));
    }
    return absl::Now() - begin >= kSpell;
  }));
  const absl::Duration time = absl::Now() - begin;
  spell.steps_per_s = static_cast<double>(cluster->acknowledged().StepsDone() - steps) /
                      absl::ToDoubleSeconds(time);
  absl::Duration cpu;
  for (const Child* node : nodes) cpu += CpuTimeOf(node->pid());
  spell.cores = absl::FDivDuration(cpu - cpu_before, time);
  return spell;
}

absl::Status RunOne(Cluster* cluster, const std::vector<const Child*>& nodes,
                    const std::vector<std::string>& addresses, const Attack& attack, bool judges) {
  LEEWAY_ASSIGN_OR_RETURN(const Spell before, Watch(cluster, nodes));
  std::vector<std::string> command = {launch::OwnProgram(), "attack", attack.name};
  command.insert(command.end(), addresses.begin(), addresses.end());
  LEEWAY_ASSIGN_OR_RETURN(Child* const attacker, cluster->StartTool("attacker", command));
  LEEWAY_RETURN_IF_ERROR(cluster->Await(absl::StrCat(attack.name, " begins"), kPrepares, [&] {
    return attacker->last_words() == kAttacks || !attacker->running();
  }));
  const absl::Duration before_it = CpuTimeOf(attacker->pid());
  LEEWAY_ASSIGN_OR_RETURN(const Spell during, Watch(cluster, nodes));
  const bool went_on = attacker->running();
  // It runs on the same cores as the attacked nodes, which a hostile peer seldom does.
  const double own_share = absl::FDivDuration(CpuTimeOf(attacker->pid()) - before_it, kSpell) /
                           static_cast<double>(std::thread::hardware_concurrency());
  // The status is answered meanwhile.
  const absl::Time asked = absl::Now();
  const absl::StatusOr<View> view = cluster->Look();
  const absl::Status looked = view.status();
  const absl::Duration answered = absl::Now() - asked;
  attacker->Signal(SIGKILL);
  LEEWAY_RETURN_IF_ERROR(
      cluster->Await("the attacker ends", absl::Seconds(10), [&] { return !attacker->running(); }));
  LEEWAY_ASSIGN_OR_RETURN(const Spell after, Watch(cluster, nodes));
  const double without = (before.steps_per_s + after.steps_per_s) / 2;
  const double ratio = during.steps_per_s / without + own_share;
  PrintRow(attack.name,
           absl::StrFormat(
               "%4.0f steps/s of %4.0f and %2.0f %% of the CPU for "
               "itself: %.2f; nodes use %.2f cores (%.2f before); +%d MB, status after %s",
               during.steps_per_s, without, 100 * own_share, ratio, during.cores, before.cores,
               static_cast<int>(during.growth_bytes >> 20),
               looked.ok() ? absl::FormatDuration(absl::Trunc(answered, absl::Milliseconds(1)))
                           : std::string(looked.message())));
  std::fflush(stdout);
  if (!went_on) {
    return absl::InternalError(absl::StrCat("the attacker has ended: ", attacker->last_words()));
  }
  if (during.growth_bytes > kGrowthMaxBytes) {
    return absl::InternalError(
        absl::StrCat(attack.name, ": a node has grown by ", during.growth_bytes >> 20, " MB"));
  }
  if (!looked.ok() && !attack.floods_connections) return looked;
  if (looked.ok() && !view->whole) {
    return absl::InternalError(absl::StrCat(attack.name, ": a replica has left its chain"));
  }
  if (judges && answered > kStatusWithin && !attack.floods_connections) {
    return absl::InternalError(
        absl::StrCat(attack.name, ": status took ", absl::FormatDuration(answered)));
  }
  if (judges && ratio < 1 - kSlowerMax) {
    return absl::InternalError(
        absl::StrFormat("%s: %.0f %% slower", attack.name, 100 * (1 - ratio)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunHostile(const StormOptions& options) {
  const ClusterOptions wanted = ClusterFor(options, options.modes.back(), "hostile");
  Cluster cluster(wanted);
  std::printf("\n%s, hostile peers at the scheduler and all servers\n",
              options.modes.back().c_str());
  std::fflush(stdout);
  LEEWAY_RETURN_IF_ERROR(cluster.Start());
  LEEWAY_RETURN_IF_ERROR(cluster.AwaitWhole(wanted.servers));
  LEEWAY_RETURN_IF_ERROR(cluster.Await("the training is under way", absl::Minutes(2),
                                       [&] { return cluster.acknowledged().StepsDone() > 20; }));
  LEEWAY_ASSIGN_OR_RETURN(const View view, cluster.Look());
  std::vector<std::string> addresses = {cluster.address()};
  std::vector<const Child*> nodes = {cluster.scheduler()};
  for (std::uint32_t rank = 0; rank < wanted.servers; ++rank) {
    nodes.push_back(cluster.ServerOf(rank));
    for (const std::string& endpoint : view.servers[rank].endpoints) addresses.push_back(endpoint);
  }
  absl::Status result;
  for (const Attack& attack : Attacks()) {
    if (!options.attacks.empty() && !absl::StrContains(attack.name, options.attacks)) continue;
    const absl::Status one = RunOne(&cluster, nodes, addresses, attack, options.judges_times);
    if (cluster.acknowledged().StepsDone() + 50 >= options.steps) {
      return absl::FailedPreconditionError(
          "the training was over too early: it needs more --steps");
    }
    result.Update(one);
  }
  return result;
}

}  // namespace leeway::storm
