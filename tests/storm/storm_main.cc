// `leeway-storm`: training by real processes under failures.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/log/log.h"
#include "tests/storm/attack.h"
#include "tests/storm/storm.h"
#include "tests/storm/storm_worker.h"
#include "tools/launch/guard.h"

namespace leeway::storm {
namespace {

int Report(const char* what, const absl::Status& status) {
  if (status.ok()) {
    std::printf("%s: every promise was held\n", what);
    return 0;
  }
  std::fflush(stdout);
  std::fprintf(stderr, "leeway-storm: %s: %s\n", what, std::string(status.message()).c_str());
  return 1;
}

struct Kind {
  const char* option;
  const char* help;
  absl::Status (*run)(const StormOptions&);
  bool wanted = false;
};

int Main(int argc, char** argv) {
  CLI::App app("Trains Fashion-MNIST on a cluster of real processes under failures.");
  StormOptions options;
  WorkerOptions work;
  std::string mode = "both";
  std::vector<std::string> settings;
  bool quick = false, untimed = false;
  std::vector<Kind> kinds = {
      {"--scheduler", "the scheduler is killed and comes back 10 s later", &RunSchedulerAway},
      {"--elastic", "a server is added and another drained", &RunElastic},
      {"--restarts", "each server gets SIGTERM and is replaced; no replicas", &RunRestarts},
      {"--hostile", "peers that have not joined flood all nodes (needs --steps 100000)",
       &RunHostile},
      {"--worker", "a worker is killed and comes back", &RunLostWorker},
      {"--partitions", "the network between nodes breaks (needs root and iproute2)",
       &RunPartitions}};
  app.add_option("--kills", options.kills, "servers to kill and replace, over all modes")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "seed of the choice of servers, times and ways")
      ->capture_default_str();
  app.add_option("--mode", mode,
                 "a consistency, e.g. bsp, ssp:N, backup:K/N or softsync:N, or both: bsp and ssp:3")
      ->capture_default_str();
  app.add_option("--model", options.model, "mlp or softmax")->capture_default_str();
  app.add_option("--steps", options.steps, "number of steps of each worker")->capture_default_str();
  app.add_option("--folder", options.folder, "folder of the logs")->capture_default_str();
  app.add_option("--set", settings, "NAME=VALUE: a setting of all nodes");
  app.add_option("--attacks", options.attacks, "only hostile peers with this in their names");
  app.add_flag("--quick", quick,
               "only kill servers, and do not compare with a training without kills");
  app.add_flag("--untimed", untimed,
               "print times without limits, and check the counters alone: for emulated machines");
  for (Kind& kind : kinds) app.add_flag(kind.option, kind.wanted, kind.help);
  CLI::App* worker = app.add_subcommand("work", "what each worker runs")->group("");
  worker->add_option("--mode", work.mode);
  worker->add_option("--model", work.model);
  worker->add_option("--steps", work.steps);
  worker->add_option("--pace", work.pace);
  worker->add_option("--history", work.history);
  worker->add_option("--pushes-before", work.pushes_before);
  std::string attack;
  std::vector<std::string> addresses;
  CLI::App* attacker = app.add_subcommand("attack", "what a hostile peer runs")->group("");
  attacker->add_option("kind", attack)->required();
  attacker->add_option("addresses", addresses)->required();
  CLI11_PARSE(app, argc, argv);
  if (attacker->parsed()) return RunAttack(attack, addresses);
  if (worker->parsed()) return RunStormWorker(work);

  if (mode != "both") options.modes = {mode};
  options.stops = options.compares = !quick;
  options.judges_times = !untimed;
  for (const std::string& setting : settings) {
    options.settings.insert(
        std::pair<std::string, std::string>(absl::StrSplit(setting, absl::MaxSplits('=', 1))));
  }
  runtime::SetLogLevel(runtime::LogLevel::kOff);
  return launch::RunGuarded([&] {
    int code = 0;
    bool any = false;
    for (const Kind& kind : kinds) {
      if (!kind.wanted) continue;
      any = true;
      code |= Report(kind.option + 2, kind.run(options));
    }
    return any ? code : Report("kills", RunKills(options));
  });
}

}  // namespace
}  // namespace leeway::storm

int main(int argc, char** argv) { return leeway::storm::Main(argc, argv); }
