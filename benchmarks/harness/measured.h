// Measured is the result of one measurement, and Command its order.
#ifndef LEEWAY_BENCHMARKS_HARNESS_MEASURED_H_
#define LEEWAY_BENCHMARKS_HARNESS_MEASURED_H_

#include <cstdint>
#include <string>
#include <vector>

namespace leeway::bench {

// A command of the driver: "push 4194304 8 0.5".
struct Command {
  std::string op;
  std::uint64_t bytes = 0;  // of one message or tensor
  int in_flight = 1;
  double seconds = 0;  // duration of the measurement
};

struct Measured {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;  // payload, all operations together
  double seconds = 0;
  double cpu_seconds = 0;            // of all processes that take part
  std::vector<double> latencies_us;  // of single operations; only where one is in flight
  std::string error;                 // not empty: nothing was measured
};

// One line of JSON.
std::string ToJson(const Measured& measured);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_HARNESS_MEASURED_H_
