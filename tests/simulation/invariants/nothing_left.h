// FindLeftBehind and FindForgotten check "nothing is left behind". When a worker has left, or the
// cluster has ended, its processes wait for nothing any more: there is no task or timer in any of
// their loops, no connection, no open file and no lock on any disk, and no retained push. And at
// rest a replica knows no worker that has left, and at most one earlier process of a worker's rank
// (a head that does not know of the change yet may send its entry to a replica that has never known
// the earlier one).
#ifndef LEEWAY_TESTS_SIMULATION_INVARIANTS_NOTHING_LEFT_H_
#define LEEWAY_TESTS_SIMULATION_INVARIANTS_NOTHING_LEFT_H_

#include <string>

#include "proto/messages/messages.h"
#include "ps/shard/shard.h"
#include "runtime/sim/sim_file_system.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {

// Both return what is wrong; empty: nothing.
std::string FindLeftBehind(SimCluster* cluster);  // a moment after the end
std::string FindOpen(const runtime::SimFileSystem& disk);
// At rest, when every server has that map.
std::string FindForgotten(const ps::Shard& shard, const proto::ClusterMap& map);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_NOTHING_LEFT_H_
