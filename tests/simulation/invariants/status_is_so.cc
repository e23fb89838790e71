#include "tests/simulation/invariants/status_is_so.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/messages/chain.h"
#include "proto/messages/table_settings_schedule.h"

namespace leeway::simulation {
namespace {

using Json = SimInquiry::Json;

// After this time periodic reports have come, and dead processes have been taken for dead.
constexpr absl::Duration kSaidWithin = absl::Seconds(10);
constexpr absl::Duration kAnsweredWithin = absl::Seconds(3);

// "said 3 heads, where there are 2"; empty: they are the same.
template <class Said, class Is>
std::string Compare(const std::string& what, const Said& said, const Is& is) {
  if (said == is) return "";
  return absl::StrCat(what, " is said to be ", said, ", and is ", is);
}

std::uint64_t NumberOf(const Json& said, const char* name) {
  return said.value(name, ~std::uint64_t{0});
}

std::string FirstOf(std::vector<std::string> wrong) {
  const auto first =
      std::find_if(wrong.begin(), wrong.end(), [](const auto& it) { return it != ""; });
  return first == wrong.end() ? "" : *first;
}

// The contents of one table on one thread.
struct Held {
  std::uint64_t rows = 0, blocks = 0, value_bytes = 0;
};

// Rows that have moved elsewhere are ignored.
void AddRows(const ps::FrozenPiece& piece, Held* held) {
  if (piece.elements == 0) return;
  const std::uint64_t element_bytes = (piece.values.size() + piece.state.size()) / piece.elements;
  const std::uint64_t width = piece.elements / piece.rows();
  const auto steps = piece.steps.as<std::uint64_t>();
  for (std::size_t row = 0; row < steps.size(); ++row) {
    if (steps[row] == 0) continue;
    ++held->rows;
    const bool ragged = piece.kind == TableKind::kRagged;
    held->value_bytes += element_bytes * (ragged ? piece.widths.as<std::uint32_t>()[row] : width);
  }
}

}  // namespace

std::optional<std::string> StatusIsSo::Look() {
  const absl::Time now = cluster_->world().Now();
  if (!since_.has_value()) since_ = now;
  std::string wrong = "nobody has answered";
  if (inquiry_ != nullptr) {
    if (!inquiry_->answered() && now - inquiry_->asked() < kAnsweredWithin) return std::nullopt;
    if (inquiry_->answered()) wrong = Judge();
    if (wrong.empty() || now - *since_ > kSaidWithin) return wrong;
    inquiry_.reset();
  }
  inquiry_ = std::make_unique<SimInquiry>(cluster_, "status");
  return std::nullopt;
}

std::string StatusIsSo::Judge() const {
  const Json& said = inquiry_->scheduler();
  scheduler::Scheduler* const scheduler = process_faults_->scheduler();
  if (scheduler == nullptr) return "the scheduler has gone";
  const std::shared_ptr<const proto::ClusterMap> map = scheduler->map();
  std::string wrong = FirstOf(
      {Compare("the version of the map", NumberOf(said, "map_version"), map->version),
       Compare("its epoch", NumberOf(said, "epoch"), map->epoch),
       Compare("the number of shards", NumberOf(said, "num_shards"), map->owners.size()),
       Compare("that the cluster is complete", said.value("complete", false), true),
       Compare("the number of barriers that wait", said.value("barriers", Json(0)).size(), 0u),
       JudgeNodes(said), JudgeChains(said, *map), JudgeTables(said, *map)});
  for (const auto& [thread, status] : inquiry_->threads()) {
    if (!wrong.empty()) break;
    wrong = JudgeThread(thread, status, *map);
    if (!wrong.empty())
      wrong = absl::StrCat("server ", thread.first, ", thread ", thread.second, ": ", wrong);
  }
  return wrong;
}

std::string StatusIsSo::JudgeNodes(const Json& said) const {
  std::map<std::string, std::string> living, told;  // by host: its id and endpoints
  for (const std::string& host : cluster_->HostNames()) {
    SimProcess* const process = cluster_->Find(host);
    if (process == nullptr || process->over().has_value()) continue;
    if (process->server() != nullptr) living[host] = absl::StrCat("node ", process->node());
    if (process->core() != nullptr) living[host] = "";
  }
  for (const auto& [role, list] :
       {std::pair(Role::kServer, "servers"), std::pair(Role::kWorker, "workers")}) {
    for (const Json& node : said.value(list, Json::array())) {
      const auto rank = static_cast<std::uint32_t>(NumberOf(node, "rank"));
      const std::string host = SimCluster::HostName(role, rank);
      if (node.value("state", "") == "alive") {
        told[host] = role == Role::kServer ? absl::StrCat("node ", NumberOf(node, "node")) : "";
        const std::size_t endpoints = node.value("endpoints", Json::array()).size();
        if (role == Role::kServer && endpoints != cluster_->config().server_threads) {
          return absl::StrCat(host, " is said to have ", endpoints, " endpoints");
        }
      } else if (node.value("reason", "").empty()) {
        return absl::StrCat(host, " is said to be ", node.value("state", ""), ", but not why");
      }
    }
  }
  if (told == living) return "";
  const auto text = [](const std::map<std::string, std::string>& hosts) {
    return absl::StrJoin(hosts, ", ", absl::PairFormatter(" "));
  };
  return absl::StrCat("said to live are ", text(told), ", and there live ", text(living));
}

std::string StatusIsSo::JudgeChains(const Json& said, const proto::ClusterMap& map) const {
  struct ServerCounts {
    std::uint64_t heads = 0, replicas = 0, joining = 0, bytes = 0;
  };
  std::map<std::uint64_t, ServerCounts> places;  // by rank
  for (std::uint32_t shard = 0; shard < map.owners.size(); ++shard) {
    const proto::Chain chain = proto::ChainOf(map, shard);
    for (const proto::ShardOwner& place : chain.joining) ++places[place.server_rank].joining;
    for (const proto::ShardOwner& place : chain.members) {
      ServerCounts& of = places[place.server_rank];
      ++(place == chain.members.front() ? of.heads : of.replicas);
      ps::Server* const server = process_faults_->ServerOf(map, place.server_rank);
      if (server == nullptr) return absl::StrCat("server ", place.server_rank, " does not live");
      const ps::Replica* const replica = server->data_thread(place.thread)->FindReplica(shard);
      if (replica == nullptr) return absl::StrCat("shard ", shard, " is not where it should be");
      for (const auto& [id, store] : replica->shard().stores()) {
        of.bytes += store->stats().value_bytes;
      }
    }
  }
  const Json shards = said.value("shards", Json::object());
  for (const Json& server : shards.value("servers", Json::array())) {
    const std::uint64_t rank = NumberOf(server, "rank");
    const std::string whose = absl::StrCat(" of server ", rank);
    const ServerCounts is = places.contains(rank) ? places.extract(rank).mapped() : ServerCounts();
    std::string wrong = FirstOf(
        {Compare(absl::StrCat("the number of heads", whose), NumberOf(server, "heads"), is.heads),
         Compare(absl::StrCat("the number of replicas", whose), NumberOf(server, "replicas"),
                 is.replicas),
         Compare(absl::StrCat("the number of those joining", whose), NumberOf(server, "filling"),
                 is.joining),
         Compare(absl::StrCat("the number of bytes", whose), NumberOf(server, "bytes"), is.bytes)});
    if (!wrong.empty()) return wrong;
  }
  if (!places.empty())
    return absl::StrCat("server ", places.begin()->first, " is not said to have shards");
  return FirstOf(
      {Compare("the number of lost shards", NumberOf(shards, "lost"), 0u),
       Compare("replication", NumberOf(shards, "replication"), cluster_->config().replication)});
}

std::string StatusIsSo::JudgeTables(const Json& said, const proto::ClusterMap& map) const {
  std::map<std::string, const SimTable*> tables;
  for (const SimTable& table : *tables_) tables[table.spec.name] = &table;
  for (const Json& told : said.value("tables", Json::array())) {
    const std::string name = told.value("name", "");
    const auto found = tables.find(name);
    if (found == tables.end()) return absl::StrCat("nobody has created the table '", name, "'");
    const auto id = static_cast<std::uint32_t>(NumberOf(told, "id"));
    TableSpec spec = found->second->spec;
    for (const proto::TableSettings& settings : proto::TableSettingsOf(map.table_settings, id)) {
      if (settings.decided) spec = proto::WithTableSettings(found->second->spec, settings);
    }
    std::string wrong =
        FirstOf({Compare(absl::StrCat("table ", name), told.value("spec", ""), spec.ToString()),
                 Compare(absl::StrCat("the consistency of ", name), told.value("consistency", ""),
                         spec.consistency.ToString()),
                 Compare(absl::StrCat("the updater of ", name), told.value("updater", ""),
                         spec.updater.name),
                 Compare(absl::StrCat("that it is installed, of ", name),
                         told.value("installed", false), true)});
    for (const proto::CodecSwitch& change : map.codecs) {
      if (change.table != id || !change.decided || !wrong.empty()) continue;
      wrong = Compare(absl::StrCat("the codec of ", name), told.value("codec", ""),
                      found->second->codecs.texts[change.choice]);
    }
    if (!wrong.empty()) return wrong;
    tables.erase(found);
  }
  return tables.empty() ? "" : absl::StrCat("nothing is said of table ", tables.begin()->first);
}

std::string StatusIsSo::JudgeThread(const SimInquiry::Thread& which, const Json& said,
                                    const proto::ClusterMap& map) const {
  ps::Server* const server =
      process_faults_->ServerOf(map, static_cast<std::uint32_t>(which.first));
  if (server == nullptr) return "it does not live";
  ps::DataThread* const thread = server->data_thread(static_cast<std::uint32_t>(which.second));
  std::uint64_t heads = 0, followers = 0;
  for (const std::uint32_t shard : thread->Shards()) {
    const ps::Replica* const replica = thread->FindReplica(shard);
    heads += replica->is_head() ? 1 : 0;
    followers += replica->is_member() && !replica->is_head() ? 1 : 0;
  }
  const Json replication = said.value("replication", Json::object());
  return FirstOf(
      {Compare("its rank", NumberOf(said, "rank"), which.first),
       Compare("its number", NumberOf(said, "thread"), which.second),
       Compare("its epoch", NumberOf(said, "epoch"), map.epoch),
       Compare("the version of its map", NumberOf(said, "map_version"), map.version),
       Compare("the number of pending pulls", NumberOf(said, "pending_pulls"), 0u),
       Compare("what is held", NumberOf(said, "held_bytes"), 0u),
       Compare("the number of its heads", NumberOf(replication, "heads"), heads),
       Compare("the number of its followers", NumberOf(replication, "followers"), followers),
       Compare("that it sends state to others", NumberOf(replication, "transfers"), 0u),
       Compare("what it logs", NumberOf(replication, "log_bytes"), 0u),
       JudgeClocks(said, heads > 0), JudgeContents(said, thread)});
}

std::string StatusIsSo::JudgeClocks(const Json& said, bool leads) const {
  std::map<std::uint64_t, std::uint64_t> clocks, told;  // by rank
  std::uint64_t slowest = ~std::uint64_t{0};
  for (const auto& worker : *workers_) {
    if (cluster_->WasKilled(SimCluster::HostName(Role::kWorker, worker->rank()))) continue;
    clocks[worker->rank()] = worker->clock();
    slowest = std::min(slowest, worker->clock());
  }
  for (const Json& worker : said.value("workers", Json::array())) {
    told[NumberOf(worker, "worker")] = NumberOf(worker, "clock");
  }
  if (!leads) clocks.clear();
  const auto text = [](const std::map<std::uint64_t, std::uint64_t>& of) {
    return absl::StrJoin(of, ", ", absl::PairFormatter(" at "));
  };
  if (told != clocks) {
    return absl::StrCat("workers are said to be ", text(told), ", and are ", text(clocks));
  }
  return Compare("the slowest clock", NumberOf(said, "slowest_clock"), leads ? slowest : 0);
}

std::string StatusIsSo::JudgeContents(const Json& said, ps::DataThread* thread) const {
  std::map<std::uint64_t, Held> held;  // by table
  for (const std::uint32_t shard : thread->Shards()) {
    for (const auto& [id, store] : thread->FindReplica(shard)->shard().stores()) {
      Held& of = held[id];
      const ps::StoreStats stats = store->stats();
      of.blocks += stats.blocks;
      if (stats.blocks > 0) of.value_bytes += stats.value_bytes;
      std::uint64_t blocks = 0;  // that have been pushed to
      for (const ps::FrozenPiece& piece : store->Freeze().pieces) {
        if (piece.kind == TableKind::kDense) {
          ++blocks;
        } else {
          AddRows(piece, &of);
        }
      }
      if (stats.blocks < blocks) {
        return absl::StrCat("shard ", shard, " has ", blocks, " blocks, and counts ", stats.blocks);
      }
    }
  }
  std::set<std::string> names;
  for (const Json& table : said.value("tables", Json::array())) {
    const std::string name = table.value("name", "");
    names.insert(name);
    const std::uint64_t id = NumberOf(table, "id");
    const Held is = held.contains(id) ? held.extract(id).mapped() : Held();
    const std::string of = absl::StrCat(" of ", name);
    std::string wrong = FirstOf(
        {Compare(absl::StrCat("the number of rows", of), NumberOf(table, "rows"), is.rows),
         Compare(absl::StrCat("the number of blocks", of), NumberOf(table, "blocks"), is.blocks),
         Compare(absl::StrCat("the number of bytes", of), NumberOf(table, "value_bytes"),
                 is.value_bytes)});
    for (const Json& known : inquiry_->scheduler().value("tables", Json::array())) {
      if (NumberOf(known, "id") != id || !wrong.empty()) continue;
      wrong = FirstOf({Compare("the name of a table", name, known.value("name", "")),
                       Compare(absl::StrCat("the consistency", of), table.value("consistency", ""),
                               known.value("consistency", ""))});
    }
    if (!wrong.empty()) return wrong;
  }
  if (!held.empty()) return absl::StrCat("nothing is said of table ", held.begin()->first);
  return Compare("the number of its tables", names.size(), tables_->size());
}

}  // namespace leeway::simulation
