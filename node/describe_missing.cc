#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "node/membership.h"

namespace leeway::node {
namespace {

// A line for people names this many; of a cluster of thousands it counts the rest.
constexpr std::size_t kNamesMax = 8;

void AppendMissing(const char* role, const std::set<std::uint32_t>& there, std::uint32_t announced,
                   std::vector<std::string>* names) {
  for (std::uint32_t rank = 0; rank < announced; ++rank) {
    if (!there.contains(rank)) names->push_back(absl::StrCat(role, " ", rank));
  }
}

std::string Enumerate(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  if (names.size() > kNamesMax) {
    return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kNamesMax, ", "), " and ",
                        names.size() - kNamesMax, " more");
  }
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), " and ", names.back());
}

}  // namespace

std::string DescribeMissing(const proto::ClusterMap& map, std::uint32_t num_servers,
                            std::uint32_t num_workers) {
  std::set<std::uint32_t> servers, workers;
  for (const proto::ServerEntry& server : map.servers) {
    if (server.alive) servers.insert(server.rank);
  }
  for (const proto::WorkerEntry& worker : map.workers) {
    if (worker.state != proto::WorkerState::kDead) workers.insert(worker.rank);
  }
  std::vector<std::string> missing;
  AppendMissing("server", servers, num_servers, &missing);
  AppendMissing("worker", workers, num_workers, &missing);
  std::string text = absl::StrCat(servers.size(), " of ", num_servers, " servers and ",
                                  workers.size(), " of ", num_workers, " workers have joined");
  if (!missing.empty()) absl::StrAppend(&text, "; missing ", Enumerate(missing));
  return text;
}

}  // namespace leeway::node
