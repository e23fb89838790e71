// `leeway-sim`: runs seeds of the simulator, or replays one.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/log/log.h"
#include "tests/simulation/seed_runner.h"

namespace leeway::simulation {
namespace {

constexpr std::uint64_t kSeedsMax = 1'000'000'000;
constexpr unsigned kJobsMax = 1024;

int Replay(const SeedOptions& options) {
  const SeedResult result = RunSeed(options);
  std::cout << result.trace << "seed " << result.seed << ": " << result.setting;
  std::cout << result.operations << " operations, " << result.reads << " reads checked, "
            << absl::FormatDuration(result.virtual_time) << " of virtual time\n";
  std::cout << DescribeFaults({result.faults}) << "\n";
  std::cout << "trace " << std::hex << std::setw(16) << std::setfill('0') << result.trace_hash
            << std::dec << "\n"
            << DescribeFailure(result);
  std::cout << (result.violation ? "0 passed, 1 failed" : "1 passed, 0 failed") << std::endl;
  return result.violation ? 1 : 0;
}

int RunMany(Campaign campaign, bool meetings) {
  std::uint64_t passed = 0, failed = 0, operations = 0, reads = 0, checkpoints = 0;
  std::uint64_t second_lives = 0;
  std::uint64_t codec_switches = 0, table_changes = 0, reader_visits = 0, reader_reads = 0;
  std::uint64_t handler_calls = 0, versions = 0;
  std::vector<FaultCounts> faults;
  std::vector<Met> met;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  campaign.on_result = [&](const SeedResult& result) {
    ++(result.violation ? failed : passed);
    operations += result.operations;
    reads += result.reads;
    checkpoints += result.checkpoints;
    second_lives += result.second_life ? 1 : 0;
    codec_switches += result.codec_switches;
    table_changes += result.table_changes;
    reader_visits += result.reader_visits;
    reader_reads += result.reader_reads;
    handler_calls += result.handler_calls;
    versions += result.versions;
    faults.push_back(result.faults);
    met.push_back(result.met);
    if (result.violation) std::cout << DescribeFailure(result) << std::endl;
    if (terminal) {
      std::cerr << "\r" << passed + failed << " of " << campaign.seeds << std::flush;
    } else if ((passed + failed) % 100 == 0) {
      std::cout << passed + failed << " of " << campaign.seeds << std::endl;
    }
  };
  RunSeeds(campaign);
  if (terminal) std::cerr << "\r";
  if (meetings) std::cout << DescribeMeetings(met);
  std::cout << operations << " operations, " << reads << " reads and " << checkpoints
            << " checkpoints checked, " << second_lives << " second lives, " << codec_switches
            << " changes of codecs, " << table_changes << " of tables, " << handler_calls
            << " calls of a handler, " << versions << " published versions, " << reader_reads
            << " reads in " << reader_visits << " visits of readers\n"
            << DescribeFaults(faults) << "\n"
            << passed << " passed, " << failed << " failed" << std::endl;
  return failed == 0 ? 0 : 1;
}

// Seeds that have most likely never run: they follow from the date and time.
std::uint64_t FreshStart() { return static_cast<std::uint64_t>(std::time(nullptr)) * 1000; }

int Main(int argc, char** argv) {
  CLI::App app(
      "Runs whole clusters on virtual time under seeded faults, and checks what they "
      "promise.");
  Campaign campaign;
  campaign.seeds = 100;
  campaign.jobs = std::max(1u, std::thread::hardware_concurrency());
  std::optional<std::uint64_t> seed;
  bool fresh = false, meetings = false;
  std::string faults = "all";
  app.add_option("--seeds", campaign.seeds, "number of seeds to run")
      ->check(CLI::Range(std::uint64_t{1}, kSeedsMax))
      ->capture_default_str();
  app.add_option("--start", campaign.start, "first seed")->capture_default_str();
  app.add_flag("--fresh", fresh,
               "start at a seed derived from the date and time: most likely a new one");
  app.add_flag("--meetings", meetings,
               "also print in how many seeds each event met each state, as a table");
  app.add_option("--seed", seed, "run this seed alone");
  app.add_flag("--trace", campaign.options.keep_trace, "with --seed: print every event of the run");
  app.add_option("--faults", faults,
                 "kinds of faults: all, none, or names with commas; with a leading - all but these")
      ->capture_default_str();
  app.add_flag("--rdma", campaign.options.over_rdma,
               "over the rdma transport on verbs in memory, which fail instead of links");
  app.add_option("--jobs", campaign.jobs, "number of seeds that run at a time")
      ->check(CLI::Range(1u, kJobsMax))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<FaultSet> kinds = ParseFaults(faults);
  if (!kinds.ok()) {
    std::cerr << "leeway-sim: --faults: " << kinds.status().message() << std::endl;
    return 2;
  }
  campaign.options.faults = *kinds;
  runtime::SetLogLevel(runtime::LogLevel::kOff);
  if (fresh) {
    campaign.start = FreshStart();
    std::cout << "seeds from " << campaign.start << std::endl;
  }
  if (!seed.has_value()) {
    campaign.options.keep_trace = false;
    return RunMany(std::move(campaign), meetings);
  }
  campaign.options.seed = *seed;
  return Replay(campaign.options);
}

}  // namespace
}  // namespace leeway::simulation

int main(int argc, char** argv) { return leeway::simulation::Main(argc, argv); }
