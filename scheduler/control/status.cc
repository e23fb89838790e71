#include "scheduler/control/status.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "compress/table_codec.h"
#include "node/membership.h"
#include "scheduler/control/recovery.h"

namespace leeway::scheduler {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::int64_t MillisecondsSince(absl::Time since, const Services& s) {
  return absl::ToInt64Milliseconds(s.Now() - since);
}

// By the node's own clock, as it reports; unknown until it has.
void AddUptime(const Node& node, const Services& s, OrderedJson* entry) {
  if (node.uptime_told == absl::InfinitePast()) return;
  (*entry)["uptime_ms"] = absl::ToInt64Milliseconds(node.uptime + (s.Now() - node.uptime_told));
  if (node.resident_bytes > 0) (*entry)["resident_bytes"] = node.resident_bytes;
}

OrderedJson NodesToJson(const std::vector<Node*>& nodes, const Services& s) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    OrderedJson entry;
    entry["rank"] = rank;
    if (const Node* node = nodes[rank]; node == nullptr) {
      entry["state"] = "missing";
    } else {
      entry["state"] = std::string(Name(node->state));
      entry["node"] = node->id;
      entry["address"] = node->address;
      if (!node->endpoints.empty()) entry["endpoints"] = node->endpoints;
      if (node->alive()) {
        entry["last_heard_ms"] = absl::ToInt64Milliseconds(node->SilentFor(s.Now()));
        AddUptime(*node, s, &entry);
      } else {
        entry["reason"] = node->gone_because;
      }
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// The number of chains that each server is in, by its part in them.
OrderedJson ShardsToJson(const Services& s) {
  struct Counts {
    std::uint32_t heads = 0, replicas = 0, joining = 0;
  };
  std::map<std::uint32_t, Counts> counts;
  for (const auto& [rank, server] : s.chains->planner().servers()) counts[rank];
  for (const proto::Chain& chain : s.chains->planner().chains()) {
    for (const proto::ShardOwner& place : chain.members) {
      Counts& of = counts[place.server_rank];
      ++(place == chain.members.front() ? of.heads : of.replicas);
    }
    for (const proto::ShardOwner& place : chain.joining) ++counts[place.server_rank].joining;
  }
  OrderedJson servers = OrderedJson::array();
  for (const auto& [rank, of] : counts) {
    const auto server = s.chains->planner().servers().find(rank);
    servers.push_back(
        {{"rank", rank},
         {"heads", of.heads},
         {"replicas", of.replicas},
         {"filling", of.joining},
         {"bytes", s.chains->loads().BytesOn(rank)},
         {"draining", server != s.chains->planner().servers().end() && server->second.draining}});
  }
  return {{"replication", s.config->replication},
          {"filling", s.chains->planner().Joining()},
          {"moving", s.chains->planner().state().moves.size()},
          {"lost", s.chains->planner().Lost()},
          {"settled", s.chains->planner().Settled()},
          {"servers", std::move(servers)}};
}

const char* KindName(TableKind kind) {
  return kind == TableKind::kDense ? "dense" : kind == TableKind::kSparse ? "sparse" : "ragged";
}

OrderedJson TablesToJson(const Services& s) {
  OrderedJson list = OrderedJson::array();
  for (const TableCatalogue::Entry& table : s.tables->catalogue()->tables()) {
    const TableSpec spec = s.tables->table_changes()->SpecOf(table);  // with what was changed since
    const CodecSwitches::Current codec = s.codecs->switches()->CurrentOf(table.id);
    const std::vector<std::string> codecs = compress::CodecTextsOf(spec);
    const auto reason = s.codecs->reasons().find(table.id);
    list.push_back({{"id", table.id},
                    {"name", spec.name},
                    {"installed", table.installed},
                    {"kind", KindName(spec.kind)},
                    {"dtype", std::string(Name(spec.dtype))},
                    {"shape", spec.shape},
                    {"row_width", spec.row_width},
                    {"updater", spec.updater.name},
                    {"consistency", spec.consistency.ToString()},
                    {"codec", codec.choice < codecs.size() ? codecs[codec.choice] : ""},
                    {"codec_automatic", spec.codec == compress::kAutomaticCodec &&
                                            !s.codecs->pinned().contains(table.id)},
                    {"codec_since", codec.since},
                    {"codec_changing", codec.being_changed},
                    {"codec_reason", reason == s.codecs->reasons().end() ? "" : reason->second},
                    {"spec", spec.ToString()}});
  }
  return list;
}

OrderedJson ModelsToJson(const Publications& publications) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [name, model] : publications.models()) {
    const proto::PublishedVersion& newest = model.versions.back();
    list.push_back({{"name", name},
                    {"tables", model.tables.size()},
                    {"version", newest.version},
                    {"clock", newest.clock},
                    {"versions_kept", model.versions.size()}});
  }
  return list;
}

OrderedJson BarriersToJson(const Barriers& barriers) {
  OrderedJson list = OrderedJson::array();
  for (const Barriers::Waiting& barrier : barriers.waiting()) {
    list.push_back({{"name", barrier.name},
                    {"group", barrier.group == Group::kAll ? "all" : "workers"},
                    {"number", barrier.number},
                    {"missing_workers", barrier.missing}});
  }
  return list;
}

OrderedJson CheckpointToJson(const Checkpoints::View& view) {
  return {{"path", view.path},
          {"phase", view.phase},
          {"clock", view.clock},
          {"servers", view.servers},
          {"servers_done", view.servers_done}};
}

// The state on disk: its folder, its version, and the trouble with it.
OrderedJson StateToJson(const StateKeeper& keeper, absl::Time now) {
  OrderedJson state = {{"folder", keeper.folder()},
                       {"written_version", keeper.written_version()},
                       {"up_to_date", keeper.is_up_to_date()}};
  if (!keeper.trouble().ok()) {
    state["error"] = std::string(keeper.trouble().message());
    state["since_s"] = absl::ToInt64Seconds(now - keeper.trouble_since());
  }
  return state;
}

// The last checkpoints of this process.
OrderedJson HistoryToJson(const Services& s) {
  const Checkpoints::History& history = s.checkpoints->history();
  OrderedJson json = OrderedJson::object();
  if (const auto& good = history.last_good) {
    json["last_good"] = {{"path", good->path},
                         {"clock", good->clock},
                         {"bytes", good->bytes},
                         {"age_ms", MillisecondsSince(good->at, s)}};
  }
  if (const auto& bad = history.last_failure) {
    json["last_failure"] = {{"reason", bad->reason}, {"age_ms", MillisecondsSince(bad->at, s)}};
  }
  return json;
}

OrderedJson StallsToJson(const Services& s) {
  OrderedJson list = OrderedJson::array();
  const van::Van* const van = s.sender->van();
  for (const van::Stall& stall : van == nullptr ? std::vector<van::Stall>() : van->stalls()) {
    list.push_back({{"peer", stall.peer},
                    {"for_ms", MillisecondsSince(stall.since, s)},
                    {"send_bytes", stall.send_bytes}});
  }
  return list;
}

OrderedJson CountersToJson(const Services& s) {
  const van::Counters van =
      s.sender->van() == nullptr ? van::Counters() : s.sender->van()->counters();
  return {{"messages_sent", van.messages_sent},
          {"messages_received", van.messages_received},
          {"bytes_sent", van.bytes_sent},
          {"bytes_received", van.bytes_received},
          {"offenders_dropped", van.offenders_dropped},
          {"malformed_frames", van.malformed_messages},
          {"malformed_messages", s.errors->count(ProtocolErrors::Kind::kMalformed)},
          {"forbidden_messages", s.errors->count(ProtocolErrors::Kind::kForbidden)},
          {"out_of_turn_messages", s.errors->count(ProtocolErrors::Kind::kOutOfTurn)},
          {"checksums_failed", van.checksums_failed},
          {"handshakes_failed", van.handshakes_failed},
          {"refused_versions", van.refused_versions},
          {"guests_dropped", van.guests_dropped},
          {"stalls", van.stalls},
          {"joins_refused", s.errors->count(ProtocolErrors::Kind::kJoinRefused)}};
}

// A line on the members: until the cluster is complete, those that have joined; from then on, those
// that live.
std::string Summary(const Services& s) {
  const auto& servers = s.members->servers();
  const auto& workers = s.members->workers();
  if (!s.members->complete()) {
    return node::DescribeMissing(*s.maps->newest(), static_cast<std::uint32_t>(servers.size()),
                                 static_cast<std::uint32_t>(workers.size()));
  }
  std::string gone;
  const auto living = [&](const std::vector<Node*>& nodes) {
    std::size_t alive = 0;
    for (const Node* node : nodes) {
      if (node != nullptr && node->alive()) {
        ++alive;
      } else if (node != nullptr) {
        absl::StrAppend(&gone, "; ", node->Name(),
                        node->state == Node::State::kDead ? " is dead" : " has left");
      }
    }
    return absl::StrCat(alive, " of ", nodes.size());
  };
  const std::string of_servers = living(servers);
  const std::string of_workers = living(workers);
  const StateKeeper* const keeper = s.recovery->keeper();
  const bool kept = keeper == nullptr || keeper->trouble().ok();
  return absl::StrCat(
      of_servers, " servers and ", of_workers, " workers live", gone,
      kept ? "" : "; nobody is told of changes: the scheduler cannot keep its state");
}

}  // namespace

std::string StatusToJson(const Services& s, const std::string& address, absl::Time started) {
  const auto& servers = s.members->servers();
  const auto& workers = s.members->workers();
  OrderedJson status;
  status["role"] = "scheduler";
  status["address"] = address;
  status["uptime_ms"] = MillisecondsSince(started, s);
  if (const std::uint64_t bytes = s.host->ResidentBytes(); bytes > 0) {
    status["resident_bytes"] = bytes;
  }
  status["complete"] = s.members->complete();
  status["epoch"] = s.maps->newest()->epoch;
  status["map_version"] = s.maps->newest()->version;
  status["num_shards"] = s.maps->newest()->owners.size();
  status["summary"] = Summary(s);
  status["shards"] = ShardsToJson(s);
  status["servers"] = NodesToJson(servers, s);
  status["workers"] = NodesToJson(workers, s);
  status["readers"] = s.members->readers().size();
  status["tables"] = TablesToJson(s);
  status["models"] = ModelsToJson(*s.publications);
  status["barriers"] = BarriersToJson(*s.barriers);
  if (const StateKeeper* const keeper = s.recovery->keeper()) {
    status["state"] = StateToJson(*keeper, s.Now());
  }
  if (s.restoration->loading()) status["restoring"] = s.restoration->Progress();
  if (const auto view = s.checkpoints->view()) status["checkpoint"] = CheckpointToJson(*view);
  status["checkpoints"] = HistoryToJson(s);
  status["stalled"] = StallsToJson(s);
  status["counters"] = CountersToJson(s);
  // Names and reasons come from other processes: bytes that are not UTF-8 are replaced.
  return status.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace leeway::scheduler
