// RateOfDd measures the speed of a disk with dd.
#ifndef LEEWAY_BENCHMARKS_CHECKPOINT_DD_H_
#define LEEWAY_BENCHMARKS_CHECKPOINT_DD_H_

#include <cstdint>
#include <string>

namespace leeway::bench {

// MB/s of `dd bs=1M conv=fsync`, writing `bytes` bytes into a new file, which is removed.
double RateOfDd(const std::string& folder, std::uint64_t bytes);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CHECKPOINT_DD_H_
