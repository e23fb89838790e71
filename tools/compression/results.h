// CompressionResult is the measurement of one variant by `leeway compression`, shown as a table and
// as JSON.
#ifndef LEEWAY_TOOLS_COMPRESSION_RESULTS_H_
#define LEEWAY_TOOLS_COMPRESSION_RESULTS_H_

#include <string>
#include <vector>

#include "tools/compression/plan.h"
#include "tools/train/train_json.h"

namespace leeway::tools {

// One variant of sending the tables, in one mode, over several seeds.
struct CompressionResult {
  std::string mode;
  Variant variant;
  std::size_t seeds = 0;
  double accuracy_mean = 0;   // on the test images, 0 to 1
  double accuracy_sd = 0;     // sample standard deviation over the seeds; 0 of one seed
  double bytes_per_step = 0;  // payload that all workers push and pull, mean over the seeds
  double ratio = 1;           // bytes_per_step of none in the same mode, divided by this one's
  double seconds_mean = 0;    // of training
};

// `runs` differ in their seeds alone; there is at least one. `none`: the result without compression
// in the same mode; null if this is that result.
CompressionResult Summarize(const std::string& mode, const Variant& variant,
                            const std::vector<TrainFacts>& runs, const CompressionResult* none);

// With an explanation below.
std::string CompressionTable(const std::vector<CompressionResult>& results);
// One result in a line.
std::string CompressionLine(const CompressionResult& result);
// A list of objects.
std::string CompressionJson(const std::vector<CompressionResult>& results);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_COMPRESSION_RESULTS_H_
