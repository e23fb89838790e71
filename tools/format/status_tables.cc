#include "tools/format/status_tables.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "proto/tables/text.h"
#include "tools/format/format_units.h"
#include "tools/format/text_table.h"

namespace leeway::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

const OrderedJson kNothing = OrderedJson::array();

const OrderedJson& Part(const OrderedJson& of, const char* name) {
  const auto found = of.find(name);
  return found == of.end() ? kNothing : *found;
}
// Names, addresses and reasons come from other processes, and are cleaned.
std::string Text(const OrderedJson& of, const char* name) {
  return proto::Cleaned(of.value(name, ""), proto::Lines::kOne);
}
double Number(const OrderedJson& of, const char* name) { return of.value(name, 0.0); }
std::uint64_t Count(const OrderedJson& of, const char* name) {
  return of.value(name, std::uint64_t{0});
}
std::string Ago(const OrderedJson& of, const char* name) {
  return FormatTime(absl::Milliseconds(of.value(name, std::int64_t{0})));
}

// The sum over the threads of a server.
double Sum(const OrderedJson& server, const char* part, const char* name) {
  double sum = 0;
  for (const OrderedJson& thread : Part(server, "threads")) {
    const OrderedJson& of = Part(thread, part);
    if (of.is_object()) sum += Number(of, name);
  }
  return sum;
}

double TableMemory(const OrderedJson& server) {
  double bytes = 0;
  for (const OrderedJson& thread : Part(server, "threads")) {
    for (const OrderedJson& table : Part(thread, "tables")) bytes += Number(table, "memory_bytes");
  }
  return bytes;
}

// ---- nodes ----

std::string Uptime(const OrderedJson& node) {
  return node.contains("uptime_ms") ? Ago(node, "uptime_ms") : "";
}
std::string Resident(const OrderedJson& node) {
  return node.contains("resident_bytes") ? FormatBytes(Number(node, "resident_bytes")) : "";
}

std::string StateOf(const OrderedJson& node) {
  constexpr std::int64_t kSilentMs = 3000;  // three beats of the default
  const std::int64_t silent = node.value("last_heard_ms", std::int64_t{0});
  const std::string state = Text(node, "state");
  return silent < kSilentMs ? state : absl::StrCat(state, ", silent ", Ago(node, "last_heard_ms"));
}

std::vector<std::string> NodeRow(const char* role, const OrderedJson& node) {
  std::vector<std::string> row = {absl::StrCat(role, " ", Count(node, "rank")), StateOf(node),
                                  Text(node, "address"), Uptime(node), Resident(node)};
  if (Part(node, "threads").empty()) {
    row.resize(10);
    return row;
  }
  row.push_back(FormatBytes(TableMemory(node)));
  row.push_back(FormatCount(Sum(node, "rates", "pushes")));
  row.push_back(FormatCount(Sum(node, "rates", "pulls")));
  row.push_back(absl::StrCat(FormatBytes(Sum(node, "rates", "bytes_in")), "/s"));
  row.push_back(absl::StrCat(FormatBytes(Sum(node, "rates", "bytes_out")), "/s"));
  return row;
}

std::string Nodes(const OrderedJson& status) {
  Rows rows = {
      {"node", "state", "address", "up", "memory", "tables", "pushes/s", "pulls/s", "in", "out"}};
  rows.push_back({"scheduler", "alive", Text(status, "address"), Uptime(status), Resident(status),
                  "", "", "", "", ""});
  for (const OrderedJson& node : Part(status, "servers")) rows.push_back(NodeRow("server", node));
  for (const OrderedJson& node : Part(status, "workers")) rows.push_back(NodeRow("worker", node));
  return TextTable(rows, 3);
}

// The reasons of nodes that have gone, and the errors of threads that do not answer.
std::string NodeTroubles(const OrderedJson& status) {
  std::string text;
  for (const char* role : {"server", "worker"}) {
    for (const OrderedJson& node :
         Part(status, role == std::string("server") ? "servers" : "workers")) {
      const std::string name = absl::StrCat(role, " ", Count(node, "rank"));
      if (const std::string reason = Text(node, "reason"); !reason.empty()) {
        absl::StrAppend(&text, name, " is ", Text(node, "state"), ": ", reason, "\n");
      }
      for (const OrderedJson& thread : Part(node, "threads")) {
        const std::string error = Text(thread, "error");
        if (!error.empty()) absl::StrAppend(&text, name, " does not answer: ", error, "\n");
      }
    }
  }
  return text;
}

// ---- shards ----

std::string Shards(const OrderedJson& status) {
  const OrderedJson& shards = Part(status, "shards");
  if (!shards.is_object() || Part(shards, "servers").empty()) return "";
  std::map<std::uint64_t, const OrderedJson*> servers;
  for (const OrderedJson& server : Part(status, "servers"))
    servers[Count(server, "rank")] = &server;
  Rows rows = {{"server", "heads", "replicas", "joining", "sends state", "bytes", ""}};
  for (const OrderedJson& of : Part(shards, "servers")) {
    const auto server = servers.find(Count(of, "rank"));
    rows.push_back(
        {absl::StrCat(Count(of, "rank")), absl::StrCat(Count(of, "heads")),
         absl::StrCat(Count(of, "replicas")), absl::StrCat(Count(of, "filling")),
         server == servers.end() ? ""
                                 : absl::StrCat(Sum(*server->second, "replication", "transfers")),
         FormatBytes(Number(of, "bytes")), of.value("draining", false) ? "draining" : ""});
  }
  std::string text = absl::StrCat(
      Count(status, "num_shards"), " shards, ", Count(shards, "replication"), " replicas each: ",
      shards.value("settled", false) ? "settled"
                                     : absl::StrCat(Count(shards, "filling"), " joining, ",
                                                    Count(shards, "moving"), " to be moved"));
  if (const std::uint64_t lost = Count(shards, "lost"); lost > 0) {
    absl::StrAppend(&text, ", ", lost, " LOST");
  }
  return absl::StrCat(text, "\n", TextTable(rows));
}

// ---- tables ----

// The facts about one table from the threads of all servers.
struct TableFacts {
  double rows = 0, blocks = 0, memory_bytes = 0;
  std::set<std::uint64_t> servers;               // that have some of its blocks
  using Counts = std::map<std::string, double>;  // the last with a "+"
  Counts staleness;                              // of replies, by clocks
  Counts push_staleness;                         // by updates
};

void AddCounts(const OrderedJson& counts, TableFacts::Counts* to) {
  for (const auto& [staleness, count] : counts.items()) {
    (*to)[proto::Cleaned(staleness, proto::Lines::kOne)] += count.get<double>();
  }
}

std::map<std::uint64_t, TableFacts> FactsOf(const OrderedJson& status) {
  std::map<std::uint64_t, TableFacts> facts;
  for (const OrderedJson& server : Part(status, "servers")) {
    for (const OrderedJson& thread : Part(server, "threads")) {
      for (const OrderedJson& table : Part(thread, "tables")) {
        TableFacts& of = facts[Count(table, "id")];
        of.rows += Number(table, "rows");
        of.blocks += Number(table, "blocks");
        if (Number(table, "blocks") > 0) of.servers.insert(Count(server, "rank"));
        of.memory_bytes += Number(table, "memory_bytes");
        AddCounts(Part(table, "staleness"), &of.staleness);
        AddCounts(Part(table, "push_staleness"), &of.push_staleness);
      }
    }
  }
  return facts;
}

// "0: 90%  1: 9.5%  3: 0.5%".
std::string Staleness(const TableFacts::Counts& counts) {
  std::vector<std::pair<double, std::string>> by_clocks;
  double all = 0;
  for (const auto& [clocks, replies] : counts) all += replies;
  for (const auto& [clocks, replies] : counts) {
    by_clocks.emplace_back(std::strtod(clocks.c_str(), nullptr),
                           absl::StrFormat("%s: %.3g%%", clocks, 100 * replies / all));
  }
  std::sort(by_clocks.begin(), by_clocks.end());
  return absl::StrJoin(by_clocks, "  ",
                       [](std::string* out, const auto& one) { absl::StrAppend(out, one.second); });
}

std::string ShapeOf(const OrderedJson& table, const TableFacts& facts) {
  const std::string kind = Text(table, "kind");
  if (kind == "dense") {
    return absl::StrCat("[",
                        absl::StrJoin(Part(table, "shape"), ", ",
                                      [](std::string* out, const OrderedJson& size) {
                                        absl::StrAppend(out, size.get<std::uint64_t>());
                                      }),
                        "]");
  }
  const std::string rows = absl::StrCat(FormatCount(facts.rows), " rows");
  return kind == "sparse" ? absl::StrCat(rows, " of ", Count(table, "row_width")) : rows;
}

// Dense tables that one server alone serves, though spreading them would be worth it.
std::string TablesOfOneBlock(const OrderedJson& status,
                             std::map<std::uint64_t, TableFacts>* facts) {
  constexpr double kWorthSpreadingBytes = 64 << 10;  // of all replicas
  const std::size_t replication =
      std::max<std::uint64_t>(1, Count(Part(status, "shards"), "replication"));
  const std::size_t servers = Part(status, "servers").size();
  std::string text;
  for (const OrderedJson& table : Part(status, "tables")) {
    const TableFacts& of = (*facts)[Count(table, "id")];
    if (servers <= replication || of.servers.empty() || of.servers.size() > replication) continue;
    if (of.blocks > static_cast<double>(of.servers.size())) continue;
    if (of.memory_bytes < kWorthSpreadingBytes) continue;
    absl::StrAppend(&text, "table ", Text(table, "name"), " has one block: of ", servers,
                    " servers one serves it; a smaller LEEWAY_BLOCK_BYTES would spread it\n");
  }
  return text;
}

std::string Tables(const OrderedJson& status) {
  if (Part(status, "tables").empty()) return "";
  std::map<std::uint64_t, TableFacts> facts = FactsOf(status);
  Rows rows = {{"table", "kind", "type", "shape", "codec", "consistency", "updater", "memory",
                "replies by staleness, clocks"}};
  Rows pushes = {{"table", "pushes by staleness, updates"}};
  for (const OrderedJson& table : Part(status, "tables")) {
    const TableFacts& of = facts[Count(table, "id")];
    std::string codec = Text(table, "codec");
    if (table.value("codec_changing", false)) codec += " (changing)";
    rows.push_back({Text(table, "name"), Text(table, "kind"), Text(table, "dtype"),
                    ShapeOf(table, of), codec, Text(table, "consistency"), Text(table, "updater"),
                    FormatBytes(of.memory_bytes), Staleness(of.staleness)});
    if (of.push_staleness.empty()) continue;
    pushes.push_back({Text(table, "name"), Staleness(of.push_staleness)});
  }
  return absl::StrCat(TextTable(rows, rows[0].size()),
                      pushes.size() == 1 ? "" : "\n" + TextTable(pushes, pushes[0].size()),
                      TablesOfOneBlock(status, &facts));
}

// Published models, each with its newest version.
std::string Models(const OrderedJson& status) {
  Rows rows = {{"model", "version", "clock", "kept", "tables"}};
  for (const OrderedJson& model : Part(status, "models")) {
    rows.push_back({Text(model, "name"), absl::StrCat(Count(model, "version")),
                    absl::StrCat(Count(model, "clock")),
                    absl::StrCat(Count(model, "versions_kept")),
                    absl::StrCat(Count(model, "tables"))});
  }
  return rows.size() == 1 ? "" : TextTable(rows);
}

// ---- clocks, and stragglers ----

std::string Clocks(const OrderedJson& status) {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> clocks;  // least, largest
  for (const OrderedJson& server : Part(status, "servers")) {
    for (const OrderedJson& thread : Part(server, "threads")) {
      for (const OrderedJson& worker : Part(thread, "workers")) {
        const std::uint64_t clock = Count(worker, "clock");
        auto [it, is_new] = clocks.try_emplace(Count(worker, "worker"), clock, clock);
        it->second.first = std::min(it->second.first, clock);
        it->second.second = std::max(it->second.second, clock);
      }
    }
  }
  if (clocks.empty()) return "";
  std::uint64_t fastest = 0;
  for (const auto& [worker, clock] : clocks) fastest = std::max(fastest, clock.second);
  Rows rows = {{"worker", "clock", "behind"}};
  for (const auto& [worker, clock] : clocks) {
    const std::string shown = clock.first == clock.second
                                  ? absl::StrCat(clock.first)
                                  : absl::StrCat(clock.first, "–", clock.second);
    rows.push_back({absl::StrCat(worker), shown,
                    clock.first == fastest ? "" : absl::StrCat(fastest - clock.first)});
  }
  return TextTable(rows);
}

// For each table the pull that has waited longest, over all servers.
std::string Waits(const OrderedJson& status) {
  std::map<std::uint64_t, std::string> names;
  for (const OrderedJson& table : Part(status, "tables"))
    names[Count(table, "id")] = Text(table, "name");
  struct Wait {
    std::uint64_t pulls = 0;
    const OrderedJson* longest = nullptr;
  };
  std::map<std::uint64_t, Wait> waits;
  for (const OrderedJson& server : Part(status, "servers")) {
    for (const OrderedJson& thread : Part(server, "threads")) {
      for (const OrderedJson& one : Part(thread, "waits")) {
        Wait& wait = waits[Count(one, "table")];
        wait.pulls += Count(one, "pulls");
        if (wait.longest == nullptr || Number(one, "for_ms") > Number(*wait.longest, "for_ms")) {
          wait.longest = &one;
        }
      }
    }
  }
  std::string text;
  for (const auto& [table, wait] : waits) {
    const OrderedJson& behind = Part(*wait.longest, "behind");
    const std::uint64_t all = Count(*wait.longest, "workers_behind");
    const std::string why = Text(*wait.longest, "why");
    absl::StrAppend(&text, "waiting: ", wait.pulls, wait.pulls == 1 ? " pull" : " pulls",
                    " of table ", names[table], " for clock ", Count(*wait.longest, "clock"),
                    ", the longest for ", Ago(*wait.longest, "for_ms"), "; ");
    if (!why.empty()) {
      absl::StrAppend(&text, why, "\n");
      continue;
    }
    absl::StrAppend(&text, "held up by ",
                    absl::StrJoin(behind, ", ", [](std::string* out, const OrderedJson& worker) {
                      absl::StrAppend(out, "worker ", Count(worker, "worker"), " (at clock ",
                                      Count(worker, "clock"), ")");
                    }));
    if (all > behind.size()) absl::StrAppend(&text, " and ", all - behind.size(), " more");
    text += "\n";
  }
  for (const OrderedJson& barrier : Part(status, "barriers")) {
    absl::StrAppend(&text, "waiting: barrier '", Text(barrier, "name"), "' (entry ",
                    Count(barrier, "number"), "), held up by ",
                    absl::StrJoin(Part(barrier, "missing_workers"), ", ",
                                  [](std::string* out, const OrderedJson& rank) {
                                    absl::StrAppend(out, "worker ", rank.get<std::uint64_t>());
                                  }),
                    "\n");
  }
  return text;
}

// ---- checkpoints and problems ----

std::string Checkpoints(const OrderedJson& status) {
  std::string text;
  if (const OrderedJson& now = Part(status, "checkpoint"); now.is_object()) {
    absl::StrAppend(&text, "checkpoint: ", Text(now, "phase"), " ", Text(now, "path"), " of clock ",
                    Count(now, "clock"), ", ", Count(now, "servers_done"), " of ",
                    Count(now, "servers"), " servers are done\n");
  }
  const OrderedJson& history = Part(status, "checkpoints");
  if (!history.is_object()) return text;
  if (const OrderedJson& good = Part(history, "last_good"); good.is_object()) {
    absl::StrAppend(&text, "checkpoint: the last good one is ", Text(good, "path"), " of clock ",
                    Count(good, "clock"), " (", FormatBytes(Number(good, "bytes")), "), saved ",
                    Ago(good, "age_ms"), " ago\n");
  }
  if (const OrderedJson& bad = Part(history, "last_failure"); bad.is_object()) {
    absl::StrAppend(&text, "checkpoint: the last failure, ", Ago(bad, "age_ms"),
                    " ago: ", Text(bad, "reason"), "\n");
  }
  return text;
}

std::string Stalls(const OrderedJson& of, const std::string& who) {
  std::string text;
  for (const OrderedJson& stall : Part(of, "stalled")) {
    absl::StrAppend(&text, "stalled: the connection of ", who, " to ", Text(stall, "peer"), " for ",
                    Ago(stall, "for_ms"), "\n");
  }
  return text;
}

std::string Troubles(const OrderedJson& status) {
  std::string text;
  if (const OrderedJson& state = Part(status, "state");
      state.is_object() && state.contains("error")) {
    absl::StrAppend(&text, "the scheduler has failed to write its state for ",
                    FormatTime(absl::Seconds(Number(state, "since_s"))),
                    ", and holds back messages about changes: ", Text(state, "error"),
                    " (LEEWAY_SCHEDULER_STATE)\n");
  }
  if (const std::string restoring = Text(status, "restoring"); !restoring.empty()) {
    absl::StrAppend(&text, "restoring: ", restoring, "\n");
  }
  absl::StrAppend(&text, Stalls(status, "the scheduler"));
  for (const OrderedJson& server : Part(status, "servers")) {
    for (const OrderedJson& thread : Part(server, "threads")) {
      absl::StrAppend(&text, Stalls(thread, absl::StrCat("server ", Count(server, "rank"))));
    }
  }
  return text;
}

}  // namespace

std::string StatusTables(const OrderedJson& status) {
  const std::string head =
      absl::StrCat("epoch ", Count(status, "epoch"), ": ", Text(status, "summary"), "\n");
  std::vector<std::string> parts = {head,
                                    Nodes(status),
                                    NodeTroubles(status),
                                    Shards(status),
                                    Tables(status),
                                    Models(status),
                                    absl::StrCat(Clocks(status), Waits(status)),
                                    Checkpoints(status),
                                    Troubles(status)};
  std::erase(parts, "");
  return absl::StrJoin(parts, "\n");
}

}  // namespace leeway::tools
