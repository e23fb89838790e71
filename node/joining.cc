#include "node/joining.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/registry.h"
#include "proto/messages/limits.h"
#include "van/address/tcp_address.h"

namespace leeway::node {
namespace {

// How many names the line lists at most; the rest is counted.
constexpr std::size_t kMissingNamesMax = 8;

void AppendMissing(const char* role, const std::set<std::uint32_t>& there, std::uint32_t announced,
                   std::vector<std::string>* names) {
  for (std::uint32_t rank = 0; rank < announced; ++rank) {
    if (!there.contains(rank)) names->push_back(absl::StrCat(role, " ", rank));
  }
}

std::string Enumerate(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  if (names.size() > kMissingNamesMax) {
    return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMissingNamesMax, ", "),
                        " and ", names.size() - kMissingNamesMax, " more");
  }
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), " and ", names.back());
}

}  // namespace

absl::string_view NotReachedAt(const absl::Status& why) {
  if (van::ReasonOf(why) == van::kNoAnswer) return "no answer from the scheduler at";
  return absl::IsResourceExhausted(why) ? "cannot connect to the scheduler at" : "no scheduler at";
}

std::string SchedulerUrl(absl::string_view scheduler) {
  if (scheduler.find("://") != absl::string_view::npos) return std::string(scheduler);
  return absl::StrCat("tcp://", scheduler);
}

proto::Join MakeJoin(const Config& config, Role role, const std::vector<std::string>& endpoints) {
  proto::Join join;
  join.role = role;
  join.host = config.host;
  join.endpoints = endpoints;
  if (config.rank.has_value() && role != Role::kReader) {
    // A rank beyond every limit is sent as the largest there can be, and refused like it.
    const std::uint32_t ranks = role == Role::kServer ? proto::kServersMax : proto::kWorkersMax;
    join.rank_wanted = static_cast<std::int32_t>(std::min(*config.rank, ranks - 1));
  }
  join.num_servers = config.num_servers;
  join.num_workers = config.num_workers;
  join.elastic = config.elastic;
  join.codecs = compress::CodecVersions();
  return join;
}

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
