// Links are workers' network cards that differ from the others': "3:5:20" is worker 3 with 5 Mbit/s
// up and 20 Mbit/s down; several with + between them; "even": none.
#ifndef LEEWAY_BENCHMARKS_LAB_EXPERIMENT_LINKS_H_
#define LEEWAY_BENCHMARKS_LAB_EXPERIMENT_LINKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::lab {

struct WorkerLink {
  std::uint32_t rank = 0;
  double up_mbit = 0, down_mbit = 0;  // 0: unlimited
};

// INVALID_ARGUMENT: says what is wrong, and the form.
absl::StatusOr<std::vector<WorkerLink>> ParseLinks(absl::string_view text);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_EXPERIMENT_LINKS_H_
