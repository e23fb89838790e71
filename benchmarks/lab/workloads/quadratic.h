// A convex quadratic with a known optimum, for exact checks.
//
// Sample i has the loss ½ Σ_j h_j (w_j − a_ij)², where h_j falls from 1 to 1/κ over the 256
// coordinates and a_i is normal around a*. The mean of the samples' a_i is the optimum; the
// held-out loss is the excess ½ Σ_j h_j (w_j − mean_j)² over the smallest possible, which is 0 at
// the optimum.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_QUADRATIC_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_QUADRATIC_H_

#include <cstdint>
#include <memory>

#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

std::unique_ptr<Workload> NewQuadratic(std::uint64_t seed);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_QUADRATIC_H_
