#include "scheduler/state/state.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/status_macros.h"

namespace leeway::scheduler {
namespace {

using Json = nlohmann::json;

// Bytes that need not be UTF-8 (names, reasons) are kept as base64.
std::string Packed(absl::string_view text) { return absl::Base64Escape(text); }
std::string Unpacked(const Json& json) {
  std::string text;
  if (!absl::Base64Unescape(json.get<std::string>(), &text)) {
    throw std::invalid_argument("not base64");
  }
  return text;
}

// ---- nodes ----

Json ToJson(const Node& node) {
  Json codecs = Json::array();
  for (const proto::CodecVersion& codec : node.codecs) {
    codecs.push_back({Packed(codec.name), codec.version});
  }
  return {{"id", node.id},
          {"role", node.role},
          {"rank", node.rank},
          {"incarnation", node.incarnation},
          {"state", node.state},
          {"because", Packed(node.gone_because)},
          {"address", Packed(node.address)},
          {"endpoints", node.endpoints},
          {"codecs", std::move(codecs)},
          {"late", node.late}};
}

Node NodeFrom(const Json& json) {
  Node node;
  node.id = json.at("id");
  node.role = json.at("role");
  node.rank = json.at("rank");
  node.incarnation = json.at("incarnation");
  node.state = json.at("state");
  node.gone_because = Unpacked(json.at("because"));
  node.address = Unpacked(json.at("address"));
  node.endpoints = json.at("endpoints");
  node.late = json.at("late");
  for (const Json& codec : json.at("codecs")) {
    node.codecs.push_back({Unpacked(codec.at(0)), codec.at(1)});
  }
  return node;
}

// ---- chains: [[rank, thread], …] ----

Json ToJson(const std::vector<proto::ShardOwner>& places) {
  Json json = Json::array();
  for (const proto::ShardOwner& place : places) json.push_back({place.server_rank, place.thread});
  return json;
}

std::vector<proto::ShardOwner> PlacesFrom(const Json& json) {
  std::vector<proto::ShardOwner> places;
  for (const Json& place : json) places.push_back({place.at(0), place.at(1)});
  return places;
}

Json ToJson(const ChainPlanner::State& state) {
  Json members = Json::array(), joining = Json::array(), servers = Json::array();
  for (std::uint32_t shard = 0; shard < state.chains.size(); ++shard) {
    members.push_back(ToJson(state.chains[shard].members));
    if (state.chains[shard].joining.empty()) continue;
    joining.push_back({shard, ToJson(state.chains[shard].joining)});
  }
  for (const auto& [rank, server] : state.servers) {
    servers.push_back({rank, server.threads, server.draining});
  }
  return {{"members", std::move(members)},
          {"joining", std::move(joining)},
          {"servers", std::move(servers)},
          {"moves", state.moves},
          {"balancing", state.balancing}};
}

ChainPlanner::State ChainsFrom(const Json& json) {
  ChainPlanner::State state;
  for (const Json& members : json.at("members")) {
    state.chains.push_back({.members = PlacesFrom(members), .joining = {}});
  }
  for (const Json& joining : json.at("joining")) {
    state.chains.at(joining.at(0).get<std::size_t>()).joining = PlacesFrom(joining.at(1));
  }
  for (const Json& server : json.at("servers")) {
    state.servers[server.at(0)] = {.threads = server.at(1), .draining = server.at(2)};
  }
  state.moves = json.at("moves").get<decltype(state.moves)>();
  state.balancing = json.at("balancing");
  return state;
}

// ---- tables: as they go over the wire ----

Json InstallToJson(std::uint32_t id, const TableSpec& spec) {
  return Packed(proto::Encode(proto::InstallTable{.table = id, .spec = spec}).text());
}

proto::InstallTable InstallFrom(const Json& json) {
  const absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(runtime::Buffer::CopyOf(Unpacked(json)), {});
  if (!message.ok()) throw std::invalid_argument(std::string(message.status().message()));
  return std::get<proto::InstallTable>(*message);
}

Json ToJson(const TableCatalogue::Entry& table) {
  Json given = Json::array();  // one or none
  if (table.given.has_value()) given.push_back(InstallToJson(table.id, *table.given));
  return {{"name", Packed(table.spec.name)},
          {"install", InstallToJson(table.id, table.spec)},
          {"given", std::move(given)},
          {"combine", table.combine},
          {"untouched", table.untouched}};
}

TableCatalogue::Entry TableFrom(const Json& json) {
  const proto::InstallTable install = InstallFrom(json.at("install"));
  TableCatalogue::Entry table = {.id = install.table,
                                 .spec = install.spec,
                                 .combine = json.at("combine"),
                                 .installed = true,
                                 .untouched = json.at("untouched")};
  for (const Json& given : json.at("given")) table.given = InstallFrom(given).spec;
  return table;
}

// ---- barriers ----

Json ToJson(const Barriers::State& state) {
  Json ended = Json::array(), shifts = Json::array();
  for (const auto& [name, results] : state.ended) {
    Json list = Json::array();
    for (const auto& [number, result] : results) {
      list.push_back({number, result.code(), Packed(result.message())});
    }
    ended.push_back({Packed(name.first), name.second, std::move(list)});
  }
  for (const auto& [key, shift] : state.shifts) {
    shifts.push_back({key.first, Packed(key.second.first), key.second.second, shift});
  }
  return {{"ended", std::move(ended)}, {"shifts", std::move(shifts)}};
}

Barriers::State BarriersFrom(const Json& json) {
  Barriers::State state;
  for (const Json& name : json.at("ended")) {
    auto& results = state.ended[{Unpacked(name.at(0)), name.at(1).get<Group>()}];
    for (const Json& result : name.at(2)) {
      results[result.at(0)] =
          absl::Status(result.at(1).get<absl::StatusCode>(), Unpacked(result.at(2)));
    }
  }
  for (const Json& shift : json.at("shifts")) {
    const Barriers::Name name(Unpacked(shift.at(1)), shift.at(2).get<Group>());
    state.shifts[{shift.at(0).get<std::uint64_t>(), name}] = shift.at(3);
  }
  return state;
}

// ---- published models: as they go over the wire ----

Json ToJson(const proto::Published& model) { return Packed(proto::Encode(model).text()); }

proto::Published ModelFrom(const Json& json) {
  const absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(runtime::Buffer::CopyOf(Unpacked(json)), {});
  if (!message.ok()) throw std::invalid_argument(std::string(message.status().message()));
  return std::get<proto::Published>(*message);
}

// ---- codecs: [table, number, before, choice, clock, decided] ----

Json ToJson(const proto::CodecSwitch& change) {
  return {change.table, change.number, change.before, change.choice, change.clock, change.decided};
}

proto::CodecSwitch CodecSwitchFrom(const Json& json) {
  return {.table = json.at(0),
          .number = json.at(1),
          .before = json.at(2),
          .choice = json.at(3),
          .clock = json.at(4),
          .decided = json.at(5)};
}

// ---- settings: [table, number, since, decided, [[parameter, bits], …], consistency, nonfinite]

// Numbers are kept as their bits: JSON has no infinity, and its decimals may round.
Json ToJson(const proto::TableSettings& settings) {
  Json parameters = Json::array();
  for (const auto& [name, value] : settings.parameters) {
    parameters.push_back({Packed(name), std::bit_cast<std::uint64_t>(value)});
  }
  return {settings.table,    settings.number,       settings.since,
          settings.decided,  std::move(parameters), settings.consistency.ToString(),
          settings.nonfinite};
}

proto::TableSettings SettingsFrom(const Json& json) {
  proto::TableSettings settings{.table = json.at(0),
                                .number = json.at(1),
                                .since = json.at(2),
                                .decided = json.at(3),
                                .nonfinite = json.at(6)};
  const auto consistency = Consistency::Parse(json.at(5).get<std::string>());
  if (!consistency.ok()) throw std::invalid_argument(std::string(consistency.status().message()));
  settings.consistency = *consistency;
  for (const Json& one : json.at(4)) {
    settings.parameters[Unpacked(one.at(0))] =
        std::bit_cast<double>(one.at(1).get<std::uint64_t>());
  }
  return settings;
}

template <class List>
Json ListToJson(const List& list) {
  Json json = Json::array();
  for (const auto& one : list) json.push_back(ToJson(one));
  return json;
}

// ---- nodes and tables: of the many only those that changed are converted ----

bool Same(const Node& a, const Node& b) {
  const auto kept = [](const Node& node) {
    return std::tie(node.role, node.rank, node.incarnation, node.state, node.gone_because,
                    node.address, node.endpoints, node.codecs, node.late);
  };
  return kept(a) == kept(b);
}

bool Same(const TableCatalogue::Entry& a, const TableCatalogue::Entry& b) {
  return a.spec == b.spec && a.combine == b.combine && a.untouched == b.untouched &&
         a.given == b.given;
}

// {id: entry} of those that are new or not the same, and {id: null} of those that are gone. Both
// lists are in the order of their ids.
template <class Entry>
Json ChangedEntries(const std::vector<Entry>& before, const std::vector<Entry>& after) {
  Json changes = Json::object();
  auto old = before.begin();
  const auto drop_below = [&](std::uint64_t id) {
    for (; old != before.end() && old->id < id; ++old) {
      changes[absl::StrCat(old->id)] = nullptr;
    }
  };
  for (const Entry& entry : after) {
    drop_below(entry.id);
    const bool known = old != before.end() && old->id == entry.id;
    if (!known || !Same(*old, entry)) changes[absl::StrCat(entry.id)] = ToJson(entry);
    if (known) ++old;
  }
  drop_below(std::numeric_limits<std::uint64_t>::max());
  return changes;
}

// All but the nodes and tables.
Json RestOf(const State& state) {
  return {{"cluster", state.cluster},
          {"address", state.address},
          {"num_servers", state.num_servers},
          {"num_workers", state.num_workers},
          {"replication", state.replication},
          {"block_bytes", state.block_bytes},
          {"next_node", state.next_node},
          {"complete", state.complete},
          {"version", state.version},
          {"epoch", state.epoch},
          {"chains", ToJson(state.chains)},
          {"next_table", state.next_table},
          {"barriers", ToJson(state.barriers)},
          {"codecs", ListToJson(state.codecs)},
          {"settings", ListToJson(state.table_settings)},
          {"ever_bounded", state.ever_bounded},
          {"pinned", state.pinned},
          {"models", ListToJson(state.models)},
          {"restoration",
           {Packed(state.restoration.path), state.restoration.checksum, state.restoration.clock,
            state.restoration.loaded}}};
}

}  // namespace

absl::Status CheckStateFits(const State& state, const Config& config) {
  const auto check = [](absl::string_view setting, std::uint64_t ours, std::uint64_t its) {
    if (ours == its) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        setting, "=", ours, ", but the cluster that is kept there was started with ", its));
  };
  LEEWAY_RETURN_IF_ERROR(check("LEEWAY_NUM_SERVERS", config.num_servers, state.num_servers));
  LEEWAY_RETURN_IF_ERROR(check("LEEWAY_NUM_WORKERS", config.num_workers, state.num_workers));
  LEEWAY_RETURN_IF_ERROR(check("LEEWAY_REPLICATION", config.replication, state.replication));
  return check("LEEWAY_BLOCK_BYTES", config.block_bytes, state.block_bytes);
}

Json ToJson(const State& state) {
  Json json = RestOf(state);
  json["nodes"] = ChangedEntries({}, state.nodes);
  json["tables"] = ChangedEntries({}, state.tables);
  return json;
}

Json ChangesBetween(const State& before, const State& after) {
  const Json old = RestOf(before);
  Json changes = RestOf(after);
  for (const auto& [name, value] : old.items()) {
    if (changes.at(name) == value) changes.erase(name);
  }
  changes["nodes"] = ChangedEntries(before.nodes, after.nodes);
  changes["tables"] = ChangedEntries(before.tables, after.tables);
  return changes;
}

State StateFrom(const Json& json) {
  State state;
  state.cluster = json.at("cluster");
  state.address = json.at("address");
  state.num_servers = json.at("num_servers");
  state.num_workers = json.at("num_workers");
  state.replication = json.at("replication");
  state.block_bytes = json.at("block_bytes");
  for (const Json& node : json.at("nodes")) state.nodes.push_back(NodeFrom(node));
  std::ranges::sort(state.nodes, {}, &Node::id);
  state.next_node = json.at("next_node");
  state.complete = json.at("complete");
  state.version = json.at("version");
  state.epoch = json.at("epoch");
  state.chains = ChainsFrom(json.at("chains"));
  for (const Json& table : json.at("tables")) state.tables.push_back(TableFrom(table));
  std::ranges::sort(state.tables, {}, &TableCatalogue::Entry::id);
  state.next_table = json.at("next_table");
  state.barriers = BarriersFrom(json.at("barriers"));
  for (const Json& change : json.at("codecs")) state.codecs.push_back(CodecSwitchFrom(change));
  for (const Json& one : json.at("settings")) state.table_settings.push_back(SettingsFrom(one));
  state.ever_bounded = json.at("ever_bounded").get<decltype(state.ever_bounded)>();
  state.pinned = json.at("pinned").get<decltype(state.pinned)>();
  if (json.contains("models")) {
    for (const Json& model : json.at("models")) state.models.push_back(ModelFrom(model));
  }
  const Json& restoration = json.at("restoration");
  state.restoration = {.path = Unpacked(restoration.at(0)),
                       .checksum = restoration.at(1),
                       .clock = restoration.at(2),
                       .loaded = restoration.at(3)};
  return state;
}

}  // namespace leeway::scheduler
