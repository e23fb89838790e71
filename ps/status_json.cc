#include "ps/status_json.h"

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

Json Tables(const Engine& engine) {
  Json tables = Json::array();
  for (const auto& [id, table] : engine.tables()) {
    const StoreStats stats = table->stats();
    tables.push_back({{"id", id},
                      {"name", table->spec().name},
                      {"consistency", table->spec().consistency.ToString()},
                      {"rows", stats.rows},
                      {"blocks", stats.blocks},
                      {"value_bytes", stats.value_bytes},
                      {"copies_on_write", stats.copies_on_write}});
  }
  return tables;
}

Json Clocks(const Progress& progress) {
  Json clocks = Json::array();
  for (const Progress::WorkerClock& worker : progress.Living()) {
    clocks.push_back({{"worker", worker.rank}, {"clock", worker.clock}});
  }
  return clocks;
}

}  // namespace

std::string StatusJson(const StatusView& view) {
  const Json status = {{"role", "server"},
                       {"rank", view.server_rank},
                       {"thread", view.thread},
                       {"epoch", view.map->epoch},
                       {"map_version", view.map->version},
                       {"slowest_clock", view.engine->progress().slowest()},
                       {"workers", Clocks(view.engine->progress())},
                       {"held_pulls", view.engine->held_pulls()},
                       {"held_bytes", view.engine->held_bytes()},
                       {"tables", Tables(*view.engine)},
                       {"counters", Requests(*view.counters)},
                       {"van", Network(view.van)}};
  // A table's name is UTF-8 (TableSpec::Validate), but a name is no reason to throw.
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leeway::ps
