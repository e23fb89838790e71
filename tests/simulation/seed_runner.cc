#include "tests/simulation/seed_runner.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {
namespace {

std::uint64_t Median(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Runs seeds in their order, until there are none below `end`.
void RunUntil(const Campaign& campaign, std::atomic<std::uint64_t>* end,
              const std::function<void(const SeedResult&)>& on_result) {
  std::atomic<std::uint64_t> next = 0;
  std::mutex mutex;
  const auto work = [&] {
    for (std::uint64_t i = next++; i < *end; i = next++) {
      SeedOptions options = campaign.options;
      options.seed = campaign.start + i;
      const SeedResult result = RunSeed(options);
      const std::lock_guard<std::mutex> lock(mutex);
      on_result(result);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < campaign.jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void RunSeeds(const Campaign& campaign) {
  std::atomic<std::uint64_t> end = campaign.seeds;
  RunUntil(campaign, &end, campaign.on_result);
}

std::optional<SeedResult> FirstFailure(const Campaign& campaign) {
  std::optional<SeedResult> first;
  std::atomic<std::uint64_t> end = campaign.seeds;
  RunUntil(campaign, &end, [&](const SeedResult& result) {
    if (!result.violation.has_value()) return;
    if (first.has_value() && first->seed < result.seed) return;
    first = result;
    end = result.seed - campaign.start;  // those before it may still fail
  });
  return first;
}

std::string DescribeFailure(const SeedResult& result) {
  if (!result.violation.has_value()) return "";
  std::string text = absl::StrCat("seed ", result.seed, " broke: ", result.violation->invariant,
                                  "\n  ", result.violation->what, "\n", result.setting);
  for (const std::string& line : result.tail) absl::StrAppend(&text, "    ", line, "\n");
  absl::StrAppend(&text, "replay: ./dev sim --seed ", result.seed,
                  result.over_rdma ? " --rdma" : "", " --trace\n");
  return text;
}

std::string DescribeFaults(const std::vector<FaultCounts>& seeds) {
  std::vector<std::uint64_t> kinds;
  for (const FaultCounts& counts : seeds) {
    kinds.push_back(static_cast<std::uint64_t>(
        std::count_if(counts.begin(), counts.end(), [](std::uint64_t n) { return n > 0; })));
  }
  std::string text = absl::StrCat(Median(kinds), " kinds of fault in the median seed:");
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    std::vector<std::uint64_t> counts;
    std::uint64_t seeds_hit = 0;
    for (const FaultCounts& seed : seeds) {
      counts.push_back(seed[kind]);
      seeds_hit += seed[kind] > 0 ? 1 : 0;
    }
    if (seeds_hit == 0) continue;
    absl::StrAppend(&text, " ", NameOf(static_cast<FaultKind>(kind)), " ", Median(counts), " (in ",
                    100 * seeds_hit / seeds.size(), " % of the seeds)");
  }
  return text;
}

}  // namespace leeway::simulation
