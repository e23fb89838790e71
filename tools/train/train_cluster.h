// TrainOnOwnCluster is `leeway train` on its own cluster: every worker runs the same command again.
#ifndef LEEWAY_TOOLS_TRAIN_TRAIN_CLUSTER_H_
#define LEEWAY_TOOLS_TRAIN_TRAIN_CLUSTER_H_

#include <string>
#include <vector>

#include "examples/fashion_mnist/settings.h"
#include "tools/launch/cluster.h"
#include "tools/options/commands.h"

namespace leeway::tools {

// A cluster whose workers are this program with these arguments (argv): a `leeway train` that
// prints its steps for its launcher.
launch::ClusterSpec ClusterFor(const fashion_mnist::Settings& settings,
                               std::vector<std::string> arguments);

// The arguments of a `leeway train` with the command's JSON, model, mode, codec and training; its
// other options (checkpoints, slow workers, files) are not passed on.
std::vector<std::string> TrainArguments(const TrainCommand& command);

int TrainOnOwnCluster(const TrainCommand& command, const fashion_mnist::Settings& settings);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_TRAIN_CLUSTER_H_
