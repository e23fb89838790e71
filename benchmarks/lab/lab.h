// RunLab is the whole program of the staleness lab (docs/lab.md): `leeway-lab` is nothing else.
#ifndef LEEWAY_BENCHMARKS_LAB_LAB_H_
#define LEEWAY_BENCHMARKS_LAB_LAB_H_

#include <map>
#include <string>

#include "benchmarks/lab/workloads/registry.h"

namespace leeway::lab {

// `own`: workloads that experiments may name beside those of the lab (examples/my_workload).
// Returns the program's exit code. Call it from main() with main's arguments: the program starts
// itself for each run and each node.
int RunLab(int argc, char** argv, std::map<std::string, WorkloadMaker> own = {});

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_LAB_H_
