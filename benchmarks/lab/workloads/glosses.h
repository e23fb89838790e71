// LoadGlosses reads the text of WordNet: the definitions and examples of its synsets, 8 MB of
// English.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_GLOSSES_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_GLOSSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway::lab {

// One gloss a string, in lower case, in the order of the files. NOT_FOUND: WordNet is not
// installed; names its package.
absl::StatusOr<std::vector<std::string>> LoadGlosses();

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_GLOSSES_H_
