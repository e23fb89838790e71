// Workloads on Fashion-MNIST (Xiao et al., 2017): a linear classifier, an MLP and a small CNN.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_FASHION_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_FASHION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

// `model`: as MakeModel has them. NOT_FOUND: the data set is not installed; names its package.
absl::StatusOr<std::unique_ptr<Workload>> NewFashion(const std::string& model, std::uint64_t seed);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_FASHION_H_
