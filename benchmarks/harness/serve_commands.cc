#include "harness/serve_commands.h"

#include <cstdio>
#include <iostream>
#include <sstream>

namespace leeway::bench {

void ServeCommands(const std::function<Measured(const Command&)>& measure) {
  std::puts("{\"ready\": true}");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    Command command;
    Measured measured;
    if (words >> command.op >> command.bytes >> command.in_flight >> command.seconds &&
        command.in_flight > 0) {
      measured = measure(command);
    } else {
      measured.error = "a command is OP BYTES IN_FLIGHT SECONDS";
    }
    std::puts(ToJson(measured).c_str());
    std::fflush(stdout);
  }
}

}  // namespace leeway::bench
