// A ScalePlan describes a simulated cluster whose growth and ideal speed are measured.
#ifndef LEEWAY_TESTS_SIMULATION_SCALE_SCALE_PLAN_H_
#define LEEWAY_TESTS_SIMULATION_SCALE_SCALE_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "leeway/config.h"
#include "leeway/table_spec.h"

namespace leeway::simulation {

// The bandwidth is scaled down with the blocks: 16 KiB at 200 MB/s take as long as 512 KiB, the
// default block, at 6.4 GB/s (50 Gbit/s). So bytes other than payload weigh 32 times as much as
// there.
struct ScalePlan {
  std::uint32_t workers = 30;
  std::uint32_t servers = 5;
  int warm_up = 2;  // steps before those
  int steps = 24;   // measured steps, at least
  absl::Duration measured =
      absl::Seconds(2);  // measured time, at least, so that heartbeats are in it
  std::uint64_t block_bytes = 16 << 10;
  double bytes_per_second = 200e6;                // of each card, each way
  absl::Duration delay = absl::Microseconds(50);  // from card to card
  absl::Duration compute = absl::Milliseconds(20);
  absl::Duration leave_within = absl::Seconds(2);  // all workers leave, one after the other
  std::uint64_t seed = 1;
  std::function<void(Config*)> configure;  // changes default settings

  std::uint32_t nodes() const { return workers + servers; }
  int StepsMeasured() const;
};

// Dense BSP tables: one with a block for each server, and two small ones, as models have.
std::vector<TableSpec> Model(const ScalePlan& plan);

// The shortest possible step. All workers compute at the same time; then every gradient goes to the
// servers and every parameter comes back, payload only, and the card with the most bytes takes
// longest:
//
//   step  = compute + carry + delay + carry + delay
//   carry = max(bytes of the model, workers * bytes on the fullest server) / bandwidth
//
// In BSP pushes and pulls do not overlap: nothing may be read before the last gradient is there.
absl::Duration IdealStep(const ScalePlan& plan);
std::uint64_t FullestServerBytes(const ScalePlan& plan);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SCALE_SCALE_PLAN_H_
