// Measures how much readers that come and go slow down training. A worker's program:
//
//     leeway launch -s 2 -w 2 -- readers_benchmark --seconds 60
//
// All workers train a dense table in SSP(3): push, clock, pull. In every second window a reader
// comes each second, pulls the whole table, and goes. Worker 0 counts clocks and prints those of
// both kinds of windows, their medians, and the slowdown.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

#include "leeway/config.h"
#include "leeway/worker.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds kWindow(5);

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "readers_benchmark: %s\n", status.ToString().c_str());
  return 1;
}

// One visit of a reader: joins, pulls, leaves.
absl::Status Visit(leeway::Config config) {
  config.read_only = true;
  auto reader = leeway::Worker::Connect(config);
  if (!reader.ok()) return reader.status();
  auto table = (*reader)->OpenTable("w");
  if (!table.ok()) return table.status();
  std::vector<float> values(table->spec().NumElements());
  return (*reader)->Wait(table->Pull(std::span<float>(values)));
}

class Visits {
 public:
  explicit Visits(const leeway::Config& config) : thread_([this, config] { Run(config); }) {}
  ~Visits() {
    over_ = true;
    thread_.join();
  }
  void Allow(bool allowed) { allowed_ = allowed; }
  int made() const { return made_; }
  int failed() const { return failed_; }

 private:
  void Run(const leeway::Config& config) {
    while (!over_) {
      const auto next = Clock::now() + seconds(1);
      if (allowed_) ++(Visit(config).ok() ? made_ : failed_);
      std::this_thread::sleep_until(next);
    }
  }

  std::atomic<bool> allowed_ = false, over_ = false;
  std::atomic<int> made_ = 0, failed_ = 0;
  std::thread thread_;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

absl::Status Train(leeway::Worker* worker, leeway::Table table, int windows, Visits* visits) {
  std::vector<float> gradient(table.spec().NumElements(), 1e-3f), values(gradient.size());
  std::vector<double> rates[2];  // clocks a second, without and with readers
  for (int window = 0; window < windows; ++window) {
    const bool with = window % 2 == 1;
    if (visits != nullptr) visits->Allow(with);
    // All begin together, so that all have equally many windows.
    if (absl::Status status = worker->Barrier(); !status.ok()) return status;
    const auto start = Clock::now();
    int clocks = 0;
    for (; Clock::now() - start < kWindow; ++clocks) {
      absl::Status status = worker->Wait(table.Push(std::span<const float>(gradient)));
      if (status.ok()) status = worker->Clock();
      if (status.ok()) status = worker->Wait(table.Pull(std::span<float>(values)));
      if (!status.ok()) return status;
    }
    rates[with].push_back(clocks / std::chrono::duration<double>(Clock::now() - start).count());
    // A worker that is still in the window is at most four clocks ahead, and must not wait for
    // this.
    for (int i = 0; i < 4; ++i) {
      if (absl::Status status = worker->Clock(); !status.ok()) return status;
    }
  }
  if (visits == nullptr) return absl::OkStatus();
  const double without = Median(rates[0]), with = Median(rates[1]);
  std::printf("clocks a second without readers:");
  for (double rate : rates[0]) std::printf(" %.1f", rate);
  std::printf("\nwith one that comes each second:");
  for (double rate : rates[1]) std::printf(" %.1f", rate);
  std::printf("\nmedians %.1f and %.1f: %.2f %% slower; %d visits, %d failed\n", without, with,
              100 * (1 - with / without), visits->made(), visits->failed());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  int seconds_all = 60;
  std::uint64_t elements = 250000;
  CLI::App app("what readers cost");
  app.add_option("--seconds", seconds_all, "how long readers come and go")
      ->check(CLI::Range(5, 600));
  app.add_option("--elements", elements, "of the table")->check(CLI::Range(1, 100000000));
  CLI11_PARSE(app, argc, argv);
  const auto config = leeway::Config::FromEnvironment();
  if (!config.ok()) return Complain(config.status());
  const auto worker = leeway::Worker::Connect(*config);
  if (!worker.ok()) return Complain(worker.status());
  leeway::TableSpec spec = leeway::TableSpec::Dense("w", {elements});
  spec.consistency = leeway::Consistency::Ssp(3);
  const auto table = (*worker)->CreateTable(spec);
  if (!table.ok()) return Complain(table.status());
  const int windows = 2 * static_cast<int>(seconds_all / kWindow.count());
  std::unique_ptr<Visits> visits;
  if ((*worker)->rank() == 0) visits = std::make_unique<Visits>(*config);
  const absl::Status trained = Train(worker->get(), *table, windows, visits.get());
  visits.reset();
  return trained.ok() ? 0 : Complain(trained);
}
