// Roles that are started with wrong settings, or where they cannot run.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/memory/sanitized.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kNowhere[] = "127.0.0.1:1";

// Expects that it ends before it begins: there is not even a line of the log.
void ExpectRefused(const std::vector<std::string>& arguments, const Environment& environment,
                   const std::vector<std::string>& parts) {
  SCOPED_TRACE(testing::PrintToString(environment));
  const Ended ended = RunToEnd(arguments, environment);
  ExpectComplaint(ended, 1, parts);
  EXPECT_THAT(LogLines(ended.errors), IsEmpty());
  EXPECT_EQ(ended.output, "");
}

class SettingsTest : public CommandsTest {};

TEST_F(SettingsTest, Missing) {
  for (const std::string role : {"scheduler", "server", "status"}) {
    ExpectRefused({kLeeway, role}, {}, {"LEEWAY_SCHEDULER is not set", "host:port"});
  }
  ExpectRefused({kHello}, {}, {"LEEWAY_SCHEDULER is not set", "host:port"});
  ExpectRefused({kLeeway, "server"}, {{"DMLC_PS_ROOT_URI", "10.0.0.1"}},
                {"DMLC_PS_ROOT_PORT is not set", "DMLC_PS_ROOT_URI", "LEEWAY_SCHEDULER"});
}

TEST_F(SettingsTest, Contradictory) {
  const std::vector<std::pair<Environment, std::vector<std::string>>> cases = {
      {{{"LEEWAY_ROLE", "server"}, {"DMLC_ROLE", "worker"}}, {"LEEWAY_ROLE", "DMLC_ROLE"}},
      {{{"LEEWAY_NUM_SERVERS", "2"}, {"DMLC_NUM_SERVER", "3"}},
       {"LEEWAY_NUM_SERVERS is \"2\"", "DMLC_NUM_SERVER is \"3\""}},
      {{{"LEEWAY_NUM_WORKERS", "2"}, {"DMLC_NUM_WORKER", "3"}},
       {"LEEWAY_NUM_WORKERS is \"2\"", "DMLC_NUM_WORKER is \"3\""}},
      {{{"DMLC_PS_ROOT_URI", "127.0.0.1"}, {"DMLC_PS_ROOT_PORT", "2"}},
       {"LEEWAY_SCHEDULER is \"127.0.0.1:1\"", "DMLC_PS_ROOT_PORT", "127.0.0.1:2"}},
      {{{"LEEWAY_ROLE", "worker"}}, {"LEEWAY_ROLE is worker", "this is a server"}},
      {{{"LEEWAY_RANK", "4"}, {"LEEWAY_NUM_SERVERS", "4"}},
       {"LEEWAY_RANK is 4", "LEEWAY_NUM_SERVERS"}},
      {{{"LEEWAY_FAILURE_TIMEOUT_MS", "100"}, {"LEEWAY_HEARTBEAT_INTERVAL_MS", "90"}},
       {"LEEWAY_FAILURE_TIMEOUT_MS is 100", "LEEWAY_HEARTBEAT_INTERVAL_MS, which is 90"}},
  };
  for (auto [environment, parts] : cases) {
    environment["LEEWAY_SCHEDULER"] = kNowhere;
    ExpectRefused({kLeeway, "server"}, environment, parts);
  }
}

// As on a machine without the rdma libraries: each command ends with one line, and no process of
// the same command prints the error once more.
TEST_F(SettingsTest, RdmaWithoutItsLibraries) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/no_rdma");
  std::filesystem::create_directories(folder);
  for (const char* const name : {"libibverbs.so.1", "librdmacm.so.1"}) {
    std::ofstream(absl::StrCat(folder, "/", name)).flush();
  }
  const Environment rdma = {{"LD_LIBRARY_PATH", folder}, {"LEEWAY_VAN", "rdma"}};
  Environment of_role = rdma;
  of_role["LEEWAY_SCHEDULER"] = kNowhere;
  ExpectComplaint(RunToEnd({kLeeway, "server"}, of_role), 1,
                  {"LEEWAY_VAN is \"rdma\"", "libibverbs.so.1"});
  ExpectRefused({kLeeway, "train"}, rdma, {"LEEWAY_VAN is \"rdma\"", "libibverbs.so.1"});
  ExpectRefused({kLeeway, "launch", "--servers", "1", "--workers", "1", "--", kHello}, rdma,
                {"LEEWAY_VAN is \"rdma\"", "libibverbs.so.1"});
}

TEST_F(SettingsTest, Senseless) {
  for (const std::string value : {"0", "-1", "nonsense", "1.5", "99999999999999999999999"}) {
    for (const std::string name : {"LEEWAY_NUM_SERVERS", "DMLC_NUM_WORKER"}) {
      ExpectRefused({kLeeway, "scheduler"}, {{"LEEWAY_SCHEDULER", kNowhere}, {name, value}},
                    {absl::StrCat(name, " is \"", value, "\""), "whole number from 1 to "});
    }
  }
  ExpectRefused({kLeeway, "scheduler"},
                {{"LEEWAY_SCHEDULER", kNowhere}, {"LEEWAY_NUM_SERVERS", "1000000"}},
                {"LEEWAY_NUM_SERVERS is \"1000000\"", "to 4096"});
  for (const std::string value :
       {"127.0.0.1", "127.0.0.1:70000", "127.0.0.1:-1", "a b:1", ":::1"}) {
    ExpectRefused({kLeeway, "scheduler"}, {{"LEEWAY_SCHEDULER", value}},
                  {absl::StrCat("LEEWAY_SCHEDULER is \"", value, "\"")});
  }
  ExpectRefused({kLeeway, "server"}, {{"LEEWAY_SCHEDULER", "127.0.0.1:0"}},
                {"LEEWAY_SCHEDULER", "not 0"});
  ExpectRefused({kLeeway, "server"}, {{"LEEWAY_ROLE", "king"}},
                {"LEEWAY_ROLE is \"king\"", "scheduler, server or worker"});
  ExpectRefused({kLeeway, "server"}, {{"LEEWAY_SCHEDULER", kNowhere}, {"LEEWAY_LOG", "loud"}},
                {"LEEWAY_LOG is \"loud\""});
  ExpectRefused({kHello}, {{"LEEWAY_SCHEDULER", kNowhere}, {"LEEWAY_ROLE", "server"}},
                {"LEEWAY_ROLE", "worker"});
}

TEST_F(SettingsTest, UnknownHosts) {
  const std::string nobody = "no-such-host.invalid";
  // Nodes wait for a name that may appear later; a command that only asks does not.
  const Environment environment = {{"LEEWAY_SCHEDULER", nobody + ":1"},
                                   {"LEEWAY_CONNECT_TIMEOUT_MS", "300"}};
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {kLeeway, "scheduler"}, {kLeeway, "server"}, {kLeeway, "status"}, {kHello}}) {
    ExpectComplaint(RunToEnd(command, environment), 1,
                    {nobody, "unknown host", "LEEWAY_SCHEDULER"});
  }
  // A server checks its own name, so that workers need not find out.
  ExpectComplaint(
      RunToEnd({kLeeway, "server"}, {{"LEEWAY_SCHEDULER", kNowhere}, {"LEEWAY_HOST", nobody}}), 1,
      {nobody, "unknown host", "LEEWAY_HOST"});
  ExpectComplaint(RunToEnd({kLeeway, "server"},
                           {{"LEEWAY_SCHEDULER", kNowhere}, {"LEEWAY_INTERFACE", "card7"}}),
                  1, {"card7", "LEEWAY_INTERFACE"});
}

TEST_F(SettingsTest, APortInUse) {
  const TakenPort port(/*listens=*/true);
  ExpectComplaint(RunToEnd({kLeeway, "scheduler"}, {{"LEEWAY_SCHEDULER", port.address()}}), 1,
                  {port.address(), "in use", "choose another port", "LEEWAY_SCHEDULER"});
}

TEST_F(SettingsTest, ASecondScheduler) {
  Cluster cluster;
  ExpectComplaint(RunToEnd({kLeeway, "scheduler"}, cluster.environment()), 1,
                  {cluster.scheduler_address(), "in use", "LEEWAY_SCHEDULER"});
  // The first scheduler is not disturbed.
  EXPECT_EQ(RunToEnd({kHello}, cluster.environment()).code, 0);
  cluster.ExpectEndInOrder();
}

TEST_F(SettingsTest, ASchedulerThatIsNotThere) {
  for (const bool somebody_listens : {false, true}) {
    const TakenPort port(somebody_listens);
    const Environment environment = {{"LEEWAY_SCHEDULER", port.address()},
                                     {"LEEWAY_CONNECT_TIMEOUT_MS", "600"}};
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{kLeeway, "server"}, {kHello}}) {
      ExpectComplaint(RunToEnd(command, environment), 1,
                      {port.address(), "LEEWAY_SCHEDULER", "LEEWAY_CONNECT_TIMEOUT_MS", "600ms",
                       somebody_listens ? "no answer from the scheduler at" : "no scheduler at"});
    }
    ExpectComplaint(RunToEnd({kLeeway, "status"}, environment), 1,
                    {port.address(), "LEEWAY_SCHEDULER", "no scheduler answers"});
  }
}

TEST_F(SettingsTest, AServerTakenForTheScheduler) {
  Cluster cluster;
  const std::string server = cluster.Status()["servers"][0]["endpoints"][0];
  const Environment environment = cluster.With({{"LEEWAY_SCHEDULER", server}});
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{kLeeway, "server"}, {kLeeway, "status"}, {kHello}}) {
    ExpectComplaint(RunToEnd(command, environment), 1,
                    {server, "LEEWAY_SCHEDULER", "is a server, not a scheduler"});
  }
}

TEST_F(SettingsTest, ANodeOrTwoTooMany) {
  Cluster cluster;
  ExpectComplaint(RunToEnd({kLeeway, "server"}, cluster.environment()), 1,
                  {cluster.scheduler_address(), "refuses this server", "LEEWAY_NUM_SERVERS=1"});
  Command worker({kRudeWorker, "stay"}, cluster.environment());
  ASSERT_TRUE(worker.Says("connected"));
  ExpectComplaint(RunToEnd({kHello}, cluster.environment()), 1,
                  {cluster.scheduler_address(), "refuses this worker", "LEEWAY_NUM_WORKERS=1"});
  // Larger numbers in a worker's settings do not change the cluster's.
  ExpectComplaint(RunToEnd({kHello}, cluster.With({{"LEEWAY_NUM_WORKERS", "2"}})), 1,
                  {"LEEWAY_NUM_WORKERS=2", "LEEWAY_NUM_WORKERS=1"});
  EXPECT_EQ(cluster.Status()["counters"]["joins_refused"], 3);
}

TEST_F(SettingsTest, TheClusterIsNeverComplete) {
  // Longer than a server takes to start.
  const char* const timeout_ms = runtime::kSanitized ? "5000" : "1000";
  Cluster cluster(1, 2, {{"LEEWAY_CONNECT_TIMEOUT_MS", timeout_ms}});
  ExpectComplaint(RunToEnd({kHello}, cluster.environment()), 1,
                  {"missing worker 1", "LEEWAY_CONNECT_TIMEOUT_MS"});
  ExpectComplaint(cluster.scheduler()->Finish(Patience()), 1,
                  {"not complete", "LEEWAY_CONNECT_TIMEOUT_MS"});
  ExpectComplaint(cluster.server(0)->Finish(Patience()), 1, {"not complete"});
}

// With inherited settings it would have no worker at all, or wait for itself.
TEST_F(SettingsTest, LaunchStartsWorkersThatCountWhateverItsOwnEnvironmentSays) {
  for (const char* name : {"LEEWAY_READ_ONLY", "LEEWAY_ELASTIC"}) {
    const Ended ended =
        RunToEnd({kLeeway, "launch", "-s", "1", "-w", "2", "--", kHello},
                 {{name, "1"}, {"LEEWAY_CONNECT_TIMEOUT_MS", "10000"}, {"LEEWAY_LOG", "error"}});
    EXPECT_EQ(ended.code, 0) << ended.errors;
    EXPECT_THAT(
        PlainLines(ended.errors),
        testing::ElementsAre(HasSubstr(absl::StrCat(name, "=1 of the environment is not used"))));
  }
}

TEST_F(SettingsTest, LaunchSaysWhatIsWrongOnce) {
  const std::vector<std::string> launch = {kLeeway, "launch", "-s", "2", "-w", "2", "--", kHello};
  ExpectRefused(launch, {{"LEEWAY_BLOCK_BYTES", "7"}}, {"LEEWAY_BLOCK_BYTES is \"7\""});
  std::vector<std::string> elsewhere = launch;
  elsewhere.insert(elsewhere.begin() + 2, {"--scheduler", "127.0.0.1:x"});
  ExpectRefused(elsewhere, {}, {"LEEWAY_SCHEDULER is \"127.0.0.1:x\""});

  // The process that found the error prints it, and the launcher prints which process failed.
  const TakenPort port(/*listens=*/true);
  elsewhere[3] = port.address();
  const Ended ended = RunToEnd(elsewhere, {{"LEEWAY_LOG", "error"}});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(ended.in_time);
  EXPECT_THAT(PlainLines(ended.errors),
              testing::ElementsAre(
                  testing::AllOf(HasSubstr("scheduler | leeway: "), HasSubstr(port.address())),
                  HasSubstr("scheduler exited with code 1")));
}

}  // namespace
}  // namespace leeway::tests
