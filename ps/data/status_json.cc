#include "ps/data/status_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ps/data/stragglers.h"

namespace leeway::ps {
namespace {

using Json = nlohmann::ordered_json;

Json CountersOf(const Counters& counters) {
  return {{"requests", counters.requests},
          {"pushes_applied", counters.pushes_applied},
          {"pulls_served", counters.pulls_served},
          {"reads_served", counters.reads_served},
          {"publications_served", counters.publications_served},
          {"duplicates", counters.duplicates},
          {"early", counters.early},
          {"early_dropped", counters.early_dropped},
          {"stale_epoch", counters.stale_epoch},
          {"unavailable", counters.unavailable},
          {"refused", counters.refused},
          {"deadlines", counters.deadlines},
          {"nonfinite_pushes", counters.nonfinite_pushes},
          {"overflows", counters.overflows},
          {"clocks_closed", counters.clocks_closed},
          {"clocks_closed_short", counters.clocks_closed_short},
          {"late_pushes", counters.late_pushes},
          {"late_dropped", counters.late_dropped},
          {"pushes_collected", counters.pushes_collected},
          {"uncompensated", counters.uncompensated},
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
          {"checksums_failed", counters.checksums_failed},
          {"handshakes_failed", counters.handshakes_failed},
          {"refused_versions", counters.refused_versions},
          {"guests_dropped", counters.guests_dropped},
          {"stalls", counters.stalls}};
}

std::int64_t MillisecondsSince(absl::Time since, const StatusView& view) {
  return absl::ToInt64Milliseconds(view.now - since);
}

Json StallsOf(const StatusView& view) {
  Json stalls = Json::array();
  for (const van::Stall& stall : view.stalls) {
    stalls.push_back({{"peer", stall.peer},
                      {"for_ms", MillisecondsSince(stall.since, view)},
                      {"send_bytes", stall.send_bytes}});
  }
  return stalls;
}

Json RatesOf(const Rates::PerSecond& rates) {
  return {{"seconds", rates.seconds},
          {"pushes", rates.pushes},
          {"pulls", rates.pulls},
          {"bytes_in", rates.bytes_in},
          {"bytes_out", rates.bytes_out}};
}

// By clocks, those that have been seen; the last may stand for more ("64+").
Json StalenessOf(const StalenessCounts& staleness) {
  Json counts = Json::object();
  for (std::size_t clocks = 0; clocks <= StalenessCounts::kMax; ++clocks) {
    if (staleness.counts()[clocks] == 0) continue;
    counts[absl::StrCat(clocks, clocks == StalenessCounts::kMax ? "+" : "")] =
        staleness.counts()[clocks];
  }
  return counts;
}

Json WaitsOf(const StatusView& view) {
  constexpr std::size_t kWorkersShown = 16;
  Json waits = Json::array();
  for (const Straggler& straggler : FindStragglers(view.replicas)) {
    Json behind = Json::array();
    for (std::size_t i = 0; i < straggler.behind.size() && i < kWorkersShown; ++i) {
      behind.push_back(
          {{"worker", straggler.behind[i].rank}, {"clock", straggler.behind[i].clock}});
    }
    waits.push_back({{"table", straggler.table},
                     {"pulls", straggler.pulls},
                     {"clock", straggler.clock},
                     {"for_ms", MillisecondsSince(straggler.since, view)},
                     {"why", straggler.why},
                     {"workers_behind", straggler.behind.size()},
                     {"behind", std::move(behind)}});
  }
  return waits;
}

StoreStats StatsOf(std::uint32_t table, const std::vector<const Replica*>& replicas) {
  StoreStats total;
  for (const Replica* replica : replicas) {
    auto it = replica->shard().stores().find(table);
    if (it == replica->shard().stores().end()) continue;
    const StoreStats one = it->second->stats();
    total.rows += one.rows;
    total.blocks += one.blocks;
    total.value_bytes += one.value_bytes;
    total.memory_bytes += one.memory_bytes;
    total.copies_on_write += one.copies_on_write;
    total.feedback_squares += one.feedback_squares;
  }
  return total;
}

std::uint64_t SlowestOf(const std::vector<const Replica*>& replicas) {
  std::optional<std::uint64_t> slowest;
  for (const Replica* replica : replicas) {
    if (!replica->leads()) continue;
    const std::uint64_t one = replica->shard().clocks().slowest();
    slowest = std::min(slowest.value_or(one), one);
  }
  return slowest.value_or(0);
}

// The codec at the clock of the slowest worker.
std::string CodecOf(const Table& table, const std::vector<const Replica*>& replicas) {
  return table.codecs().texts[table.codec_schedule().KnownAt(SlowestOf(replicas)).choice];
}

Json TablesOf(const StatusView& view) {
  Json tables = Json::array();
  for (const auto& [id, table] : view.context->tables.all()) {
    const StoreStats stats = StatsOf(id, view.replicas);
    tables.push_back({{"id", id},
                      {"name", table.spec().name},
                      {"consistency", table.newest_settings().spec.consistency.ToString()},
                      {"rows", stats.rows},
                      {"blocks", stats.blocks},
                      {"value_bytes", stats.value_bytes},
                      {"memory_bytes", stats.memory_bytes},
                      {"copies_on_write", stats.copies_on_write},
                      {"codec", CodecOf(table, view.replicas)},
                      {"feedback_norm", std::sqrt(stats.feedback_squares)},
                      {"staleness", StalenessOf(table.staleness())},
                      {"push_staleness", StalenessOf(table.push_staleness())}});
  }
  return tables;
}

// The thread as a whole is as far as the last of its shards.
Json ClocksOf(const std::vector<const Replica*>& replicas) {
  std::map<std::uint32_t, std::uint64_t> slowest;
  for (const Replica* replica : replicas) {
    if (!replica->leads()) continue;
    for (const WorkerClocks::WorkerClock& worker : replica->shard().clocks().Living()) {
      auto [it, is_new] = slowest.try_emplace(worker.rank, worker.clock);
      if (is_new) continue;
      it->second = std::min(it->second, worker.clock);
    }
  }
  Json clocks = Json::array();
  for (const auto& [rank, clock] : slowest) clocks.push_back({{"worker", rank}, {"clock", clock}});
  return clocks;
}

Json ReplicationOf(const StatusView& view) {
  std::size_t heads = 0, followers = 0, others = 0;
  for (const Replica* replica : view.replicas) {
    ++(replica->is_head() ? heads : replica->is_member() ? followers : others);
  }
  return {{"heads", heads},
          {"followers", followers},
          {"joining_or_leaving", others},
          {"transfers", view.transfers},
          {"log_bytes", view.log_bytes},
          {"readers_waiting_bytes", view.readers_waiting_bytes},
          {"pushes_followed", view.counters->pushes_followed}};
}

std::size_t PendingPullsOf(const std::vector<const Replica*>& replicas) {
  std::size_t pending = 0;
  for (const Replica* replica : replicas) pending += replica->shard().num_pending_pulls();
  return pending;
}

// Of all threads of the server together.
std::uint64_t MemoryOf(const StatusView& view, std::uint64_t (TableMemory::*what)() const) {
  const TableMemory* const memory = view.context->table_memory;
  return memory == nullptr ? 0 : (memory->*what)();
}

}  // namespace

std::string StatusJson(const StatusView& view) {
  const Json status = {{"role", "server"},
                       {"rank", view.server_rank},
                       {"thread", view.thread},
                       {"epoch", view.map->epoch},
                       {"map_version", view.map->version},
                       {"slowest_clock", SlowestOf(view.replicas)},
                       {"workers", ClocksOf(view.replicas)},
                       {"pending_pulls", PendingPullsOf(view.replicas)},
                       {"held_bytes", view.context->held.bytes},
                       {"server_table_bytes", MemoryOf(view, &TableMemory::bytes)},
                       {"server_table_bytes_max", MemoryOf(view, &TableMemory::bytes_max)},
                       {"waits", WaitsOf(view)},
                       {"rates", RatesOf(view.rates)},
                       {"stalled", StallsOf(view)},
                       {"tables", TablesOf(view)},
                       {"replication", ReplicationOf(view)},
                       {"counters", CountersOf(*view.counters)},
                       {"van", Network(view.van)}};
  // A table's name is UTF-8 (TableSpec::Validate), but a name is no reason to throw.
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leeway::ps
