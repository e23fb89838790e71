#include "tools/format/status_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leeway::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// Two servers, one of which has died, and two workers, the second of which is slow.
Json Example() {
  return Json::parse(R"json({
    "role": "scheduler", "address": "tcp://10.0.0.1:9700", "epoch": 12,
    "uptime_ms": 3723000, "resident_bytes": 20971520, "num_shards": 64,
    "summary": "1 of 2 servers and 2 of 2 workers live; server 1 is dead",
    "shards": {"replication": 2, "filling": 3, "moving": 1, "lost": 0, "settled": false,
               "servers": [{"rank": 0, "heads": 40, "replicas": 24, "filling": 3,
                            "bytes": 1048576, "draining": true}]},
    "servers": [
      {"rank": 0, "state": "alive", "address": "tcp://10.0.0.2:9000", "last_heard_ms": 100,
       "uptime_ms": 60000, "resident_bytes": 1073741824,
       "threads": [
        {"workers": [{"worker": 0, "clock": 9}, {"worker": 1, "clock": 4}],
         "waits": [{"table": 1, "pulls": 5, "clock": 5, "for_ms": 3000, "workers_behind": 1,
                    "behind": [{"worker": 1, "clock": 4}]}],
         "rates": {"seconds": 5.0, "pushes": 1000.0, "pulls": 20.0, "bytes_in": 2097152.0,
                   "bytes_out": 512.0},
         "replication": {"transfers": 2},
         "stalled": [{"peer": "worker 1 (tcp://10.0.0.9:4000)", "for_ms": 7000, "send_bytes": 9}],
         "tables": [{"id": 1, "rows": 0, "blocks": 2, "memory_bytes": 3145728,
                     "staleness": {"0": 75, "2": 20}}]
},
        {"workers": [{"worker": 0, "clock": 8}, {"worker": 1, "clock": 4}],
         "waits": [{"table": 1, "pulls": 1, "clock": 6, "for_ms": 34000, "workers_behind": 20,
                    "behind": [{"worker": 1, "clock": 4}]}],
         "rates": {"seconds": 5.0, "pushes": 500.0, "pulls": 1.0, "bytes_in": 0.0,
                   "bytes_out": 0.0},
         "tables": [{"id": 1, "rows": 0, "blocks": 2, "memory_bytes": 1048576,
                     "staleness": {"10": 5}, "push_staleness": {"0": 3, "7": 1}},
                    {"id": 2, "rows": 3000, "blocks": 0, "memory_bytes": 1024,
                     "staleness": {}}]},
        {"endpoint": "tcp://10.0.0.2:9002", "error": "no server answers"}]
},
      {"rank": 1, "state": "dead", "address": "tcp://10.0.0.3:9000", "reason": "not heard for 10s"}],
    "workers": [
      {"rank": 0, "state": "alive", "address": "node7", "last_heard_ms": 10, "uptime_ms": 61000},
      {"rank": 1, "state": "alive", "address": "node8", "last_heard_ms": 4000}],
    "tables": [
      {"id": 1, "name": "w", "kind": "dense", "dtype": "float32", "shape": [784, 256],
       "updater": "adam", "consistency": "ssp(2)", "codec": "onebit", "codec_changing": true},
      {"id": 2, "name": "rows", "kind": "sparse", "dtype": "float16", "row_width": 64,
       "updater": "sgd", "consistency": "asp", "codec": ""}],
    "models": [{"name": "policy", "tables": 12, "version": 40, "clock": 400, "versions_kept": 4},
               {"name": "a bad\nname", "tables": 1, "version": 1, "clock": 0, "versions_kept": 1}],
    "barriers": [{"name": "end", "group": "workers", "number": 1, "missing_workers": [1]}],
    "checkpoint": {"path": "/c/7", "phase": "writing", "clock": 40, "servers": 2,
                   "servers_done": 1},
    "checkpoints": {
      "last_good": {"path": "/c/6", "clock": 30, "bytes": 4194304, "age_ms": 95000},
      "last_failure": {"reason": "disk full", "age_ms": 300000}},
    "state": {"path": "/s", "error": "no space left", "since_s": 12},
    "stalled": [{"peer": "server 1 (tcp://10.0.0.3:9000)", "for_ms": 6000, "send_bytes": 1}]
})json");
}

// The line of a table that begins so, its words separated by one space.
std::string Line(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find("\n" + begin);
  if (at == std::string::npos) return "";
  std::string line;
  for (const char c : text.substr(at + 1, text.find('\n', at + 1) - at - 1)) {
    if (c != ' ' || line.empty() || line.back() != ' ') line += c;
  }
  return line;
}

TEST(StatusTablesTest, NodesHaveAddressUptimeMemoryAndRates) {
  const std::string text = StatusTables(Example());
  EXPECT_THAT(text, HasSubstr("epoch 12: 1 of 2 servers and 2 of 2 workers live"));
  EXPECT_EQ(Line(text, "scheduler"), "scheduler alive tcp://10.0.0.1:9700 1h 2m 20 MiB");
  EXPECT_EQ(Line(text, "server 0"),
            "server 0 alive tcp://10.0.0.2:9000 1m 0s 1.0 GiB 4.0 MiB 1.5k 21 2.0 MiB/s 512 B/s");
  EXPECT_EQ(Line(text, "server 1"), "server 1 dead tcp://10.0.0.3:9000");
  EXPECT_THAT(text, HasSubstr("server 1 is dead: not heard for 10s"));
  EXPECT_THAT(text, HasSubstr("server 0 does not answer: no server answers"));
  EXPECT_EQ(Line(text, "worker 0"), "worker 0 alive node7 1m 1s");
  EXPECT_EQ(Line(text, "worker 1"), "worker 1 alive, silent 4s node8");
}

TEST(StatusTablesTest, ShardsReplicasAndTransfers) {
  const std::string text = StatusTables(Example());
  EXPECT_THAT(text, HasSubstr("64 shards, 2 replicas each: 3 joining, 1 to be moved\n"));
  EXPECT_EQ(Line(text, "0 "), "0 40 24 3 2 1.0 MiB draining");
  Json lost = Example();
  lost["shards"]["lost"] = 7;
  lost["shards"]["settled"] = true;
  EXPECT_THAT(StatusTables(lost), HasSubstr("64 shards, 2 replicas each: settled, 7 LOST\n"));
}

TEST(StatusTablesTest, TablesHaveTheirStalenessOverAllThreads) {
  const std::string text = StatusTables(Example());
  EXPECT_EQ(
      Line(text, "w "),
      "w dense float32 [784, 256] onebit (changing) ssp(2) adam 4.0 MiB 0: 75% 2: 20% 10: 5%");
  EXPECT_EQ(Line(text, "rows "), "rows sparse float16 3.0k rows of 64 asp sgd 1.0 KiB");
  EXPECT_THAT(text, HasSubstr("pushes by staleness, updates\nw      0: 75%  7: 25%"));
}

TEST(StatusTablesTest, ModelsHaveTheirNewestVersion) {
  const std::string text = StatusTables(Example());
  EXPECT_EQ(Line(text, "model "), "model version clock kept tables");
  EXPECT_EQ(Line(text, "policy "), "policy 40 400 4 12");
  EXPECT_EQ(Line(text, "a bad"), "a bad?name 1 0 1 1") << "names come from other processes";
  Json none = Example();
  none["models"].clear();
  EXPECT_EQ(Line(StatusTables(none), "model "), "");
}

TEST(StatusTablesTest, ATableOfOneBlockIsServedByOneServer) {
  const char* const said = "table w has one block: of 2 servers one serves it";
  Json status = Example();
  status["shards"]["replication"] = 1;
  EXPECT_THAT(StatusTables(status), Not(HasSubstr("has one block")));  // four
  status["servers"][0]["threads"][0]["tables"][0]["blocks"] = 1;
  status["servers"][0]["threads"][1]["tables"][0]["blocks"] = 0;
  EXPECT_THAT(StatusTables(status), HasSubstr(said));
  status["servers"][0]["threads"][0]["tables"][0]["memory_bytes"] = 4096;
  status["servers"][0]["threads"][1]["tables"][0]["memory_bytes"] = 0;
  EXPECT_THAT(StatusTables(status), Not(HasSubstr(said)));  // not worth it
}

TEST(StatusTablesTest, ClocksAndWhoHoldsUpWhom) {
  const std::string text = StatusTables(Example());
  EXPECT_EQ(Line(text, "0 8"), "") << "a rank and its clock are two columns";
  EXPECT_THAT(text, HasSubstr("8–9"));
  EXPECT_EQ(Line(text, "1       "), "1 4 5");
  EXPECT_THAT(text, HasSubstr("waiting: 6 pulls of table w for clock 6, the longest for 34s; held "
                              "up by worker 1 (at clock 4) and 19 more\n"));
  EXPECT_THAT(text, HasSubstr("waiting: barrier 'end' (entry 1), held up by worker 1\n"));
}

TEST(StatusTablesTest, AClockThatTooFewWorkersLiveToCloseSaysSo) {
  Json status = Example();
  for (Json& server : status["servers"]) {
    for (Json& thread : server["threads"]) {
      for (Json& wait : thread["waits"]) wait["why"] = "1 worker is living";
    }
  }
  EXPECT_THAT(StatusTables(status),
              HasSubstr("for clock 6, the longest for 34s; 1 worker is living\n"));
}

TEST(StatusTablesTest, CheckpointsAndTroubles) {
  const std::string text = StatusTables(Example());
  EXPECT_THAT(text, HasSubstr("checkpoint: writing /c/7 of clock 40, 1 of 2 servers are done\n"));
  EXPECT_THAT(text, HasSubstr("the last good one is /c/6 of clock 30 (4.0 MiB), saved 1m 35s ago"));
  EXPECT_THAT(text, HasSubstr("the last failure, 5m 0s ago: disk full\n"));
  EXPECT_THAT(text, HasSubstr("the scheduler has failed to write its state for 12s, and holds "
                              "back messages about changes: no space left"));
  EXPECT_THAT(text, HasSubstr("stalled: the connection of the scheduler to server 1 "
                              "(tcp://10.0.0.3:9000) for 6s\n"));
  EXPECT_THAT(text, HasSubstr("stalled: the connection of server 0 to worker 1"));
}

TEST(StatusTablesTest, ACalmClusterHasNoTroubles) {
  const std::string text = StatusTables(Json::parse(R"({"summary": "fine",
      "address": "tcp://a:1", "checkpoints": {}, "state": {"path": "/s"}, "stalled": []})"));
  EXPECT_THAT(text, Not(HasSubstr("checkpoint")));
  EXPECT_THAT(text, Not(HasSubstr("stalled")));
  EXPECT_THAT(text, Not(HasSubstr("write its state")));
}

TEST(StatusTablesTest, NothingThatOthersSayReachesTheTerminalAsControl) {
  Json status = Example();
  status["servers"][1]["reason"] = "\x1b[2J\nserver 9 is fine";
  const std::string text = StatusTables(status);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(Line(text, "server 9"), "");
}

TEST(StatusTablesTest, AnotherTypeThanExpectedIsAnExceptionOrNothing) {
  const Json example = Example();
  for (const auto& [name, value] : example.items()) {
    for (const Json& odd : {Json(7), Json("x"), Json(nullptr), Json(Json::array({1, "a", nullptr})),
                            Json(Json::object({{"rank", "x"}}))}) {
      Json status = example;
      status[name] = odd;
      try {
        StatusTables(status);
      } catch (const Json::exception&) {
      }
    }
  }
}

}  // namespace
}  // namespace leeway::tools
