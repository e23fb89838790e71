// Matrix factorisation of ratings that have a known structure: sparse tables with a row a user and
// an item.
//
// Ratings are u_i · v_j + noise of deviation 0.1, for users and items drawn from Zipf's law, so
// that some rows are in nearly every batch and most in few. The loss is the mean squared error; on
// held-out ratings it cannot fall below the noise's variance, 0.01.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_FACTORIZATION_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_FACTORIZATION_H_

#include <cstdint>
#include <memory>

#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

std::unique_ptr<Workload> NewFactorization(std::uint64_t seed);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_FACTORIZATION_H_
