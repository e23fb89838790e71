// `leeway train` on a cluster of its own: the same command again as every worker.
#ifndef LEEWAY_TOOLS_TRAIN_TRAIN_CLUSTER_H_
#define LEEWAY_TOOLS_TRAIN_TRAIN_CLUSTER_H_

#include <string>
#include <vector>

#include "examples/fashion_mnist/settings.h"
#include "tools/launch/cluster.h"
#include "tools/options/commands.h"

namespace leeway::tools {

// A cluster whose workers are this program with these arguments (argv): a `leeway train` that tells
// its steps to whoever launched it.
launch::ClusterSpec ClusterFor(const fashion_mnist::Settings& settings,
                               std::vector<std::string> arguments);

// The arguments of a `leeway train` that writes the command's JSON and is as it says of model,
// mode, codec and training; of what else it can do (checkpoints, slow workers, files) there is
// nothing.
std::vector<std::string> TrainArguments(const TrainCommand& command);

int TrainOnOwnCluster(const TrainCommand& command, const fashion_mnist::Settings& settings);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_TRAIN_CLUSTER_H_
