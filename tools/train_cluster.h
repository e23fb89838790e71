// `leeway train` on a cluster of its own: the same command again as every worker.
#ifndef LEEWAY_TOOLS_TRAIN_CLUSTER_H_
#define LEEWAY_TOOLS_TRAIN_CLUSTER_H_

#include "examples/fashion_mnist/settings.h"
#include "tools/commands.h"

namespace leeway::tools {

int TrainOnOwnCluster(const TrainCommand& command, const fashion_mnist::Settings& settings);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_CLUSTER_H_
