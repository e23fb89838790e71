#include "ps/status_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace leeway::ps {
namespace {

using Json = nlohmann::ordered_json;

Json Requests(const Counters& counters) {
  return {{"requests", counters.requests},
          {"pushes_applied", counters.pushes_applied},
          {"pulls_served", counters.pulls_served},
          {"duplicates", counters.duplicates},
          {"early", counters.early},
          {"early_dropped", counters.early_dropped},
          {"stale_epoch", counters.stale_epoch},
          {"unavailable", counters.unavailable},
          {"refused", counters.refused},
          {"deadlines", counters.deadlines},
          {"nonfinite_pushes", counters.nonfinite_pushes},
          {"clocks_closed", counters.clocks_closed},
          {"late_pushes", counters.late_pushes},
          {"pushes_discarded", counters.pushes_discarded},
          {"apply_failures", counters.apply_failures},
          {"ticks", counters.ticks},
          {"calls", counters.calls},
          {"replies_unsent", counters.replies_unsent},
          {"malformed", counters.malformed},
          {"violations", counters.violations}};
}

Json Network(const van::Counters& counters) {
  return {{"messages_sent", counters.messages_sent},
          {"messages_received", counters.messages_received},
          {"bytes_sent", counters.bytes_sent},
          {"bytes_received", counters.bytes_received},
          {"offenders_dropped", counters.offenders_dropped},
          {"malformed_messages", counters.malformed_messages},
          {"handshakes_failed", counters.handshakes_failed},
          {"refused_versions", counters.refused_versions}};
}

StoreStats StatsOf(std::uint32_t table, const std::vector<const Shard*>& shards) {
  StoreStats total;
  for (const Shard* shard : shards) {
    auto it = shard->stores().find(table);
    if (it == shard->stores().end()) continue;
    const StoreStats one = it->second->stats();
    total.rows += one.rows;
    total.blocks += one.blocks;
    total.value_bytes += one.value_bytes;
    total.copies_on_write += one.copies_on_write;
  }
  return total;
}

Json TablesOf(const StatusView& view) {
  Json tables = Json::array();
  for (const auto& [id, table] : view.context->tables.all()) {
    const StoreStats stats = StatsOf(id, view.shards);
    tables.push_back({{"id", id},
                      {"name", table.spec().name},
                      {"consistency", table.spec().consistency.ToString()},
                      {"rows", stats.rows},
                      {"blocks", stats.blocks},
                      {"value_bytes", stats.value_bytes},
                      {"copies_on_write", stats.copies_on_write}});
  }
  return tables;
}

// The thread as a whole is as far as the last of its shards.
Json ClocksOf(const std::vector<const Shard*>& shards) {
  std::map<std::uint32_t, std::uint64_t> slowest;
  for (const Shard* shard : shards) {
    for (const Progress::WorkerClock& worker : shard->progress().Living()) {
      auto [it, is_new] = slowest.try_emplace(worker.rank, worker.clock);
      if (!is_new) it->second = std::min(it->second, worker.clock);
    }
  }
  Json clocks = Json::array();
  for (const auto& [rank, clock] : slowest) clocks.push_back({{"worker", rank}, {"clock", clock}});
  return clocks;
}

std::uint64_t SlowestOf(const std::vector<const Shard*>& shards) {
  if (shards.empty()) return 0;
  std::uint64_t slowest = shards.front()->progress().slowest();
  for (const Shard* shard : shards) slowest = std::min(slowest, shard->progress().slowest());
  return slowest;
}

std::size_t HeldPullsOf(const std::vector<const Shard*>& shards) {
  std::size_t held = 0;
  for (const Shard* shard : shards) held += shard->held_pulls();
  return held;
}

}  // namespace

std::string StatusJson(const StatusView& view) {
  const Json status = {{"role", "server"},
                       {"rank", view.server_rank},
                       {"thread", view.thread},
                       {"epoch", view.map->epoch},
                       {"map_version", view.map->version},
                       {"slowest_clock", SlowestOf(view.shards)},
                       {"workers", ClocksOf(view.shards)},
                       {"held_pulls", HeldPullsOf(view.shards)},
                       {"held_bytes", view.context->held.bytes},
                       {"tables", TablesOf(view)},
                       {"counters", Requests(*view.counters)},
                       {"van", Network(view.van)}};
  // A table's name is UTF-8 (TableSpec::Validate), but a name is no reason to throw.
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leeway::ps
