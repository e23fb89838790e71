// CompareTable shows several training runs as a table, for `leeway compare`.
#ifndef LEEWAY_TOOLS_COMPARE_COMMAND_H_
#define LEEWAY_TOOLS_COMPARE_COMMAND_H_

#include <string>
#include <vector>

#include "tools/train/train_json.h"

namespace leeway::tools {

std::string CompareTable(const std::vector<TrainFacts>& runs);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_COMPARE_COMMAND_H_
