#include "tests/simulation/invariants/nothing_left.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {

std::string FindOpen(const runtime::SimFileSystem& disk) {
  const runtime::SimFileSystem::Handles open = disk.open();
  if (open.to_write == 0 && open.to_read == 0 && open.locks == 0) return "";
  return absl::StrCat(open.to_write, " files that are written, ", open.to_read,
                      " that are read, and ", open.locks, " locks");
}

std::string FindLeftBehind(SimCluster* cluster) {
  runtime::SimWorld& world = cluster->world();
  for (const std::string& host : cluster->HostNames()) {
    SimProcess* const process = cluster->Find(host);
    if (process == nullptr) continue;
    if (const std::size_t pending = world.PendingOf(host); pending > 0) {
      return absl::StrCat(host, " has ended, and ", pending, " tasks or timers of it are to come");
    }
    if (const std::size_t ends = cluster->network().ConnectionsOf(host); ends > 0) {
      return absl::StrCat(host, " has ended, and holds ", ends, " connections");
    }
    if (std::string open = FindOpen(*world.files(host)); !open.empty()) {
      return absl::StrCat(host, " has ended, and there are open on its disk: ", open);
    }
    if (process->core() != nullptr && process->core()->retained_bytes() > 0) {
      return absl::StrCat(host, " has left, and keeps ", process->core()->retained_bytes(),
                          " bytes of pushes");
    }
  }
  const std::string open = FindOpen(*world.files(kSharedFolder));
  return open.empty() ? "" : absl::StrCat("on the disk of checkpoints there are open: ", open);
}

std::string FindForgotten(const ps::Shard& shard, const proto::ClusterMap& map) {
  std::set<std::uint32_t> before;  // ranks with a known process that has them no more
  for (const proto::ClientSession& session : shard.ExportBegin().header.workers) {
    if (session.rank < map.workers.size()) {
      const proto::WorkerEntry& worker = map.workers[session.rank];
      const bool left = worker.state == proto::WorkerState::kLeft;
      if (worker.incarnation == session.incarnation && !left) continue;
      if (worker.incarnation != session.incarnation && before.insert(session.rank).second) continue;
    }
    return absl::StrCat("shard ", shard.id(), " knows of pushes up to ", session.admitted, " and ",
                        session.admitted_held, " of a process that was worker ", session.rank,
                        " and is it no more");
  }
  return "";
}

}  // namespace leeway::simulation
