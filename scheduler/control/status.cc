#include "scheduler/control/status.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "compress/table_codec.h"
#include "node/membership.h"

namespace leeway::scheduler {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::int64_t MillisecondsSince(absl::Time since, const StatusSources& sources) {
  return absl::ToInt64Milliseconds(sources.now - since);
}

// By the node's own clock, as it reports; unknown until it has.
void AddUptime(const Node& node, const StatusSources& sources, OrderedJson* entry) {
  if (node.uptime_told == absl::InfinitePast()) return;
  (*entry)["uptime_ms"] = absl::ToInt64Milliseconds(node.uptime + (sources.now - node.uptime_told));
  if (node.resident_bytes > 0) (*entry)["resident_bytes"] = node.resident_bytes;
}

OrderedJson NodesToJson(const std::vector<Node*>& nodes, const StatusSources& sources) {
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
        entry["last_heard_ms"] =
            absl::ToInt64Milliseconds(sources.detector.SilentFor(node->id, sources.now));
        AddUptime(*node, sources, &entry);
      } else {
        entry["reason"] = node->gone_because;
      }
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// The number of chains that each server is in, by its part in them.
OrderedJson ShardsToJson(const StatusSources& sources) {
  struct Counts {
    std::uint32_t heads = 0, replicas = 0, joining = 0;
  };
  std::map<std::uint32_t, Counts> counts;
  for (const auto& [rank, server] : sources.planner.servers()) counts[rank];
  for (const proto::Chain& chain : sources.planner.chains()) {
    for (const proto::ShardOwner& place : chain.members) {
      Counts& of = counts[place.server_rank];
      ++(place == chain.members.front() ? of.heads : of.replicas);
    }
    for (const proto::ShardOwner& place : chain.joining) ++counts[place.server_rank].joining;
  }
  OrderedJson servers = OrderedJson::array();
  for (const auto& [rank, of] : counts) {
    const auto server = sources.planner.servers().find(rank);
    servers.push_back(
        {{"rank", rank},
         {"heads", of.heads},
         {"replicas", of.replicas},
         {"filling", of.joining},
         {"bytes", sources.loads.BytesOn(rank)},
         {"draining", server != sources.planner.servers().end() && server->second.draining}});
  }
  return {{"replication", sources.replication},
          {"filling", sources.planner.Joining()},
          {"moving", sources.planner.state().moves.size()},
          {"lost", sources.planner.Lost()},
          {"settled", sources.planner.Settled()},
          {"servers", std::move(servers)}};
}

const char* KindName(TableKind kind) {
  return kind == TableKind::kDense ? "dense" : kind == TableKind::kSparse ? "sparse" : "ragged";
}

OrderedJson TablesToJson(const StatusSources& sources) {
  OrderedJson list = OrderedJson::array();
  for (const TableCatalogue::Entry& table : sources.catalogue.tables()) {
    const TableSpec spec = sources.table_changes.SpecOf(table);  // with what was changed since
    const CodecSwitches::Current codec = sources.switches.CurrentOf(table.id);
    const std::vector<std::string> codecs = compress::CodecTextsOf(spec);
    const auto reason = sources.codec_reasons.find(table.id);
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
                    {"codec_automatic",
                     spec.codec == compress::kAutomaticCodec && !sources.pinned.contains(table.id)},
                    {"codec_since", codec.since},
                    {"codec_changing", codec.being_changed},
                    {"codec_reason", reason == sources.codec_reasons.end() ? "" : reason->second},
                    {"spec", spec.ToString()}});
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
OrderedJson HistoryToJson(const StatusSources& sources) {
  const Checkpoints::History& history = sources.checkpoints;
  OrderedJson json = OrderedJson::object();
  if (const auto& good = history.last_good) {
    json["last_good"] = {{"path", good->path},
                         {"clock", good->clock},
                         {"bytes", good->bytes},
                         {"age_ms", MillisecondsSince(good->at, sources)}};
  }
  if (const auto& bad = history.last_failure) {
    json["last_failure"] = {{"reason", bad->reason},
                            {"age_ms", MillisecondsSince(bad->at, sources)}};
  }
  return json;
}

OrderedJson StallsToJson(const StatusSources& sources) {
  OrderedJson list = OrderedJson::array();
  for (const van::Stall& stall : sources.stalls) {
    list.push_back({{"peer", stall.peer},
                    {"for_ms", MillisecondsSince(stall.since, sources)},
                    {"send_bytes", stall.send_bytes}});
  }
  return list;
}

OrderedJson CountersToJson(const StatusSources& sources) {
  const van::Counters& van = sources.van;
  return {{"messages_sent", van.messages_sent},
          {"messages_received", van.messages_received},
          {"bytes_sent", van.bytes_sent},
          {"bytes_received", van.bytes_received},
          {"offenders_dropped", van.offenders_dropped},
          {"malformed_frames", van.malformed_messages},
          {"malformed_messages", sources.protocol_errors.count(ProtocolErrors::Kind::kMalformed)},
          {"forbidden_messages", sources.protocol_errors.count(ProtocolErrors::Kind::kForbidden)},
          {"out_of_turn_messages", sources.protocol_errors.count(ProtocolErrors::Kind::kOutOfTurn)},
          {"checksums_failed", van.checksums_failed},
          {"handshakes_failed", van.handshakes_failed},
          {"refused_versions", van.refused_versions},
          {"guests_dropped", van.guests_dropped},
          {"stalls", van.stalls},
          {"joins_refused", sources.protocol_errors.count(ProtocolErrors::Kind::kJoinRefused)}};
}

// A line on the members: until the cluster is complete, those that have joined; from then on, those
// that live.
std::string Summary(const StatusSources& sources) {
  const auto& servers = sources.members.servers();
  const auto& workers = sources.members.workers();
  if (!sources.members.complete()) {
    return node::DescribeMissing(sources.map, static_cast<std::uint32_t>(servers.size()),
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
  const bool kept = sources.keeper == nullptr || sources.keeper->trouble().ok();
  return absl::StrCat(
      of_servers, " servers and ", of_workers, " workers live", gone,
      kept ? "" : "; nobody is told of changes: the scheduler cannot keep its state");
}

}  // namespace

std::string StatusToJson(const StatusSources& sources) {
  const auto& servers = sources.members.servers();
  const auto& workers = sources.members.workers();
  OrderedJson status;
  status["role"] = "scheduler";
  status["address"] = sources.address;
  status["uptime_ms"] = MillisecondsSince(sources.started, sources);
  if (sources.resident_bytes > 0) status["resident_bytes"] = sources.resident_bytes;
  status["cluster"] = absl::StrCat(absl::Hex(sources.cluster, absl::kZeroPad16));
  status["complete"] = sources.members.complete();
  status["epoch"] = sources.map.epoch;
  status["map_version"] = sources.map.version;
  status["num_shards"] = sources.map.owners.size();
  status["summary"] = Summary(sources);
  status["shards"] = ShardsToJson(sources);
  status["servers"] = NodesToJson(servers, sources);
  status["workers"] = NodesToJson(workers, sources);
  status["readers"] = sources.readers;
  status["tables"] = TablesToJson(sources);
  status["barriers"] = BarriersToJson(sources.barriers);
  if (sources.keeper != nullptr) status["state"] = StateToJson(*sources.keeper, sources.now);
  if (!sources.restoring.empty()) status["restoring"] = sources.restoring;
  if (sources.checkpoint.has_value()) status["checkpoint"] = CheckpointToJson(*sources.checkpoint);
  status["checkpoints"] = HistoryToJson(sources);
  status["stalled"] = StallsToJson(sources);
  status["counters"] = CountersToJson(sources);
  // Names and reasons come from other processes: bytes that are not UTF-8 are replaced.
  return status.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace leeway::scheduler
