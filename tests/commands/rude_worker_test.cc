// Workers whose pushes have to be refused; and plugins, in the `leeway` that a user runs.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

using testing::HasSubstr;

class RudeWorkerTest : public CommandsTest {
 protected:
  // The worker ends with this complaint; the rest of the cluster ends in order.
  static void ExpectRefused(const std::string& way, const std::vector<std::string>& parts) {
    SCOPED_TRACE(way);
    Cluster cluster;
    ExpectComplaint(RunToEnd({kRudeWorker, way}, cluster.environment()), 1, parts);
    cluster.ExpectEndInOrder();
  }
};

TEST_F(RudeWorkerTest, PushesOfTheWrongShape) {
  ExpectRefused("length", {"weights", "9", "10"});
  ExpectRefused("dtype", {"weights", "float32", "float64"});
  ExpectRefused("keys", {"weights", "dense"});
}

TEST_F(RudeWorkerTest, ATableThatIsAnotherAlready) {
  ExpectRefused("table", {"weights", "dense", "sparse"});
}

TEST_F(RudeWorkerTest, NanIsCounted) {
  Cluster cluster;
  const Ended worker = RunToEnd({kRudeWorker, "nan", absl::StrCat(kLeeway, " status --json")},
                                cluster.environment());
  EXPECT_EQ(worker.code, 0) << worker.errors;
  const auto status = nlohmann::json::parse(worker.output, nullptr, false);
  ASSERT_TRUE(status.is_object()) << worker.output;
  const auto& counters = status["servers"][0]["threads"][0]["counters"];
  EXPECT_EQ(counters["nonfinite_pushes"], 1);
  EXPECT_EQ(counters["pushes_applied"], 1);
  cluster.ExpectEndInOrder();
}

TEST_F(RudeWorkerTest, NanIsRefusedWhereTheTableSaysSo) {
  Cluster cluster;
  const Ended worker = RunToEnd(
      {kRudeWorker, "refused-nan", absl::StrCat(kLeeway, " status --json")}, cluster.environment());
  ExpectComplaint(worker, 1, {"weights", "NaN"});
  const auto status = nlohmann::json::parse(worker.output, nullptr, false);
  ASSERT_TRUE(status.is_object()) << worker.output;
  const auto& counters = status["servers"][0]["threads"][0]["counters"];
  EXPECT_EQ(counters["nonfinite_pushes"], 1);
  EXPECT_EQ(counters["pushes_applied"], 0);
  EXPECT_EQ(counters["refused"], 1);
  cluster.ExpectEndInOrder();
}

TEST_F(RudeWorkerTest, APluginsUpdaterAndHandlerServe) {
  Cluster cluster(1, 1, {{"LEEWAY_PLUGINS", PLUGIN}});
  const Ended worker = RunToEnd({kRudeWorker, "plugin"}, cluster.environment());
  EXPECT_EQ(worker.code, 0) << worker.errors;
  EXPECT_EQ(worker.output, "pulled -2.5, answered cba\n");
  cluster.ExpectEndInOrder();
}

TEST_F(RudeWorkerTest, WithoutThePluginTheUpdaterIsUnknown) {
  ExpectRefused("plugin", {"plugin_negate", "adagrad", "LEEWAY_PLUGINS"});
}

TEST_F(RudeWorkerTest, APluginThatCannotBeLoadedStopsTheServer) {
  for (const char* path : {"/no/such/plugin.so", NOT_A_PLUGIN}) {
    ExpectComplaint(RunToEnd({kLeeway, "server"},
                             {{"LEEWAY_SCHEDULER", "127.0.0.1:1"}, {"LEEWAY_PLUGINS", path}}),
                    1, {"LEEWAY_PLUGINS", path});
  }
}

}  // namespace
}  // namespace leeway::tests
