// MeasureSum measures a server's work when a BSP clock closes, without the network: it adds eight
// workers' blocks to the stored one, in one pass.
#ifndef LEEWAY_BENCHMARKS_CLUSTER_SUM_H_
#define LEEWAY_BENCHMARKS_CLUSTER_SUM_H_

#include "harness/measured.h"

namespace leeway::bench {

// "sum": `in_flight` contributions of `bytes` to each block. Measured::bytes counts the bytes read
// and written: the contributions, and the block twice.
Measured MeasureSum(const Command& command);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CLUSTER_SUM_H_
