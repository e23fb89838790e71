#include "worker/control/cluster_status.h"

#include "gtest/gtest.h"

namespace leeway::worker {
namespace {

constexpr char kStatus[] = R"({"workers": [
  {"rank": 0, "state": "alive", "address": "10.0.0.4", "last_heard_ms": 300},
  {"rank": 3, "state": "alive", "address": "10.0.0.7", "last_heard_ms": 12000},
  {"rank": 4, "state": "dead", "address": "10.0.0.8", "reason": "not heard"}]})";

TEST(ClusterStatusTest, AddsWhenTheAwaitedWorkersWereLastHeard) {
  EXPECT_EQ(
      WithLastHeard("pull of table 'fc1' at server 1: worker 3 is at clock 41, worker 0 at "
                    "clock 42; waiting for clock 43 of table fc1 (ssp:3; worker 9 is in clock "
                    "45)",
                    kStatus),
      "pull of table 'fc1' at server 1: worker 3 is at clock 41, last heard 12.0s ago from "
      "10.0.0.7, worker 0 at clock 42, last heard 0.3s ago from 10.0.0.4; waiting for clock "
      "43 of table fc1 (ssp:3; worker 9 is in clock 45)");
}

TEST(ClusterStatusTest, AnUnreadableStatusChangesNothing) {
  const std::string text = "worker 3 is at clock 41; waiting for clock 42 of table fc1";
  for (const char* status : {"", "{", "[]", "{}", R"({"workers": 3})", R"({"workers": [3, {}]})",
                             R"({"workers": [{"rank": -3, "last_heard_ms": 1}]})",
                             R"({"workers": [{"rank": 3, "last_heard_ms": "x"}]})"}) {
    EXPECT_EQ(WithLastHeard(text, status), text) << status;
  }
  for (const char* other :
       {"", "no such thing", "worker 3 is at clock 41", "worker ; waiting for clock ",
        "worker 99999999999999999999 is at clock 1; waiting for clock 2", "worker 3 is at clock"}) {
    EXPECT_EQ(WithLastHeard(other, kStatus), other);
  }
}

TEST(ClusterStatusTest, FindsThePathOfACheckpoint) {
  EXPECT_EQ(CheckpointPath(R"({"path": "/data/ckpt-7", "bytes": 12})").value(), "/data/ckpt-7");
  EXPECT_FALSE(CheckpointPath("").ok());
  EXPECT_EQ(ClockOfSwitch(R"({"table": "w", "codec": "onebit", "clock": 12})").value(), 12u);
  EXPECT_FALSE(ClockOfSwitch(R"({"clock": -1})").ok());
  EXPECT_FALSE(ClockOfSwitch("[]").ok());
  EXPECT_EQ(VersionOfModel(R"({"version": 3})").value(), 3u);
  EXPECT_FALSE(VersionOfModel(R"({"version": "3"})").ok());
  EXPECT_EQ(TablesOfModel(R"({"tables": ["w", "b"]})")->size(), 2u);
  for (const char* const text : {"", "[]", R"({"tables": 3})", R"({"tables": []})"}) {
    EXPECT_FALSE(TablesOfModel(text).ok()) << text;
  }
  EXPECT_FALSE(CheckpointPath(R"({"path": 3})").ok());
}

}  // namespace
}  // namespace leeway::worker
