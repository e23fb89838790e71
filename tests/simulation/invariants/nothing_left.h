// "nothing is left behind": of workers that have left, of the servers and the scheduler when the
// cluster has ended, nothing is waited for any more: no task or timer is to come in any of their
// loops, no connection is held, no file is open and none is locked on any disk, and no push is kept
// to be sent again. And at rest a replica knows of no worker that has left, and of no more than one
// process that had a worker's rank before (what a head says that has not heard of the change yet
// may come to a replica that has never known the one before).
#ifndef LEEWAY_TESTS_SIMULATION_INVARIANTS_NOTHING_LEFT_H_
#define LEEWAY_TESTS_SIMULATION_INVARIANTS_NOTHING_LEFT_H_

#include <string>

#include "proto/messages/messages.h"
#include "ps/shard/shard.h"
#include "runtime/sim/sim_file_system.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {

// Each says what is wrong; empty: nothing.
std::string FindLeftBehind(SimCluster* cluster);  // a moment after the end
std::string FindOpen(const runtime::SimFileSystem& disk);
// At rest, when every server has that map.
std::string FindForgotten(const ps::Shard& shard, const proto::ClusterMap& map);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_NOTHING_LEFT_H_
