// leeway_bench_raw memory | tcp | tcp-reno | zmq-tcp | zmq-ipc
#include <cstdio>
#include <string>

#include "harness/serve_commands.h"
#include "raw/raw_limits.h"

namespace leeway::bench {
namespace {

int Main(const std::string& limit) {
  if (limit == "memory") {
    ServeCommands(MeasureMemory);
  } else if (limit == "tcp" || limit == "tcp-reno") {
    const std::string congestion = limit == "tcp" ? "" : "reno";
    ServeCommands([&](const Command& command) { return MeasureTcp(congestion, command); });
  } else if (limit == "zmq-tcp" || limit == "zmq-ipc") {
    ServeCommands([&](const Command& command) { return MeasureZmq(limit.substr(4), command); });
  } else {
    std::fprintf(stderr, "usage: leeway_bench_raw memory | tcp | tcp-reno | zmq-tcp | zmq-ipc\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace leeway::bench

int main(int argc, char** argv) { return leeway::bench::Main(argc > 1 ? argv[1] : ""); }
