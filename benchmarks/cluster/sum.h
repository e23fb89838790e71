// What a server does when a BSP clock closes, without the network: adds eight workers' blocks to
// what it stores, in one pass.
#ifndef LEEWAY_BENCHMARKS_CLUSTER_SUM_H_
#define LEEWAY_BENCHMARKS_CLUSTER_SUM_H_

#include "harness/measured.h"

namespace leeway::bench {

// "sum": `in_flight` contributions of `bytes` to each block. Measured::bytes counts what is read
// and written: the contributions, and the block twice.
Measured MeasureSum(const Command& command);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CLUSTER_SUM_H_
