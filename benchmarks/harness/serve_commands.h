// The other end of benchmarks/driver: commands come in on the standard input, one a line, and what
// was measured goes out on the standard output, one line of JSON each.
#ifndef LEEWAY_BENCHMARKS_HARNESS_SERVE_COMMANDS_H_
#define LEEWAY_BENCHMARKS_HARNESS_SERVE_COMMANDS_H_

#include <functional>

#include "harness/measured.h"

namespace leeway::bench {

// Says that it is ready, then serves until the input ends.
void ServeCommands(const std::function<Measured(const Command&)>& measure);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_HARNESS_SERVE_COMMANDS_H_
