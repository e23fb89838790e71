// `leeway-scale`: simulates one cluster of a given size on virtual time, and prints its figures as
// JSON.
#include <CLI/CLI.hpp>
#include <iostream>

#include "runtime/log/log.h"
#include "tests/simulation/scale/scale_run.h"

int main(int argc, char** argv) {
  using leeway::simulation::ScalePlan;
  CLI::App app(
      "Trains on a simulated cluster and prints its step time and the ideal one, as JSON.");
  ScalePlan plan;
  const auto option = [&app](const char* name, auto* value, const char* what) {
    app.add_option(name, *value, what)->capture_default_str()->check(CLI::PositiveNumber);
  };
  option("--workers", &plan.workers, "number of workers");
  option("--servers", &plan.servers, "number of servers");
  option("--steps", &plan.steps, "number of measured steps");
  option("--block-bytes", &plan.block_bytes, "bytes of the model on each server");
  option("--bytes-per-second", &plan.bytes_per_second, "speed of each network card, each way");
  option("--seed", &plan.seed, "seed of everything random");
  CLI11_PARSE(app, argc, argv);
  leeway::runtime::SetLogLevel(leeway::runtime::LogLevel::kOff);
  const auto figures = RunScale(plan);
  if (!figures.ok()) {
    std::cerr << "leeway-scale: " << figures.status().message() << std::endl;
    return 1;
  }
  std::cout << ToJson(plan, *figures) << std::endl;
  return 0;
}
