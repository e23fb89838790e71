// ServeCommands is the other end of benchmarks/driver: it reads commands from standard input, one a
// line, and writes measurements to standard output, one line of JSON each.
#ifndef LEEWAY_BENCHMARKS_HARNESS_SERVE_COMMANDS_H_
#define LEEWAY_BENCHMARKS_HARNESS_SERVE_COMMANDS_H_

#include <functional>

#include "harness/measured.h"

namespace leeway::bench {

// Prints that it is ready, then serves until the input ends.
void ServeCommands(const std::function<Measured(const Command&)>& measure);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_HARNESS_SERVE_COMMANDS_H_
