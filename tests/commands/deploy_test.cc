// Tests the files of deploy/ as a newcomer uses them.
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/temp_folder.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

using testing::HasSubstr;

const std::string kDeploy = DEPLOY_FOLDER;

std::string FolderOf(const char* program) {
  return std::filesystem::path(program).parent_path().string();
}

// An address that was taken and given back, so that it is most likely still free.
std::string FreeAddress() { return TakenPort(/*listens=*/false).address(); }

class DeployTest : public CommandsTest {
 protected:
  void SetUp() override {
    path_ = absl::StrCat(FolderOf(kLeeway), ":", FolderOf(kHello), ":", std::getenv("PATH"));
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    chmod((folder_ + "/" + name).c_str(), 0755);
  }

  const runtime::TempFolder temp_folder_;
  const std::string folder_ = temp_folder_.path();
  std::string path_;
};

TEST_F(DeployTest, SourcingTheEnvironmentIsEnough) {
  const std::string source = absl::StrCat(". ", kDeploy, "/env/leeway.env; exec ");
  const Environment environment = {{"PATH", path_}, {"LEEWAY_SCHEDULER", FreeAddress()}};
  std::vector<std::unique_ptr<Command>> cluster;
  for (const char* node :
       {"hello", "leeway server", "hello", "leeway scheduler", "hello", "hello", "leeway server"}) {
    cluster.emplace_back(new Command({"/bin/sh", "-c", source + node}, environment));
  }
  for (auto& node : cluster) {
    const Ended ended = node->Finish(Patience());
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 0) << ended.errors;
  }
  ExpectComplaint(RunToEnd({"/bin/sh", "-c", source + "leeway server"}), 2,
                  {"LEEWAY_SCHEDULER", "host:port"});
}

// With an `ssh` that runs everything on this machine, in a shell as the real one does.
class SshTest : public DeployTest {
 protected:
  void SetUp() override {
    DeployTest::SetUp();
    Write("ssh",
          "#!/bin/sh\nwhile [ \"$1\" != 127.0.0.1 ]; do shift; done\nshift\n"
          "exec sh -c \"exec env $*\"\n");
    Write("hosts", "# two on one machine\n127.0.0.1\n\n127.0.0.1\n");
  }

  std::vector<std::string> Launch(const std::vector<std::string>& program) const {
    const std::vector<std::string> address = absl::StrSplit(FreeAddress(), ':');
    std::vector<std::string> arguments = {kDeploy + "/ssh/launch.sh", folder_ + "/hosts",
                                          address[1]};
    arguments.insert(arguments.end(), program.begin(), program.end());
    return arguments;
  }
  Environment environment() const { return {{"PATH", absl::StrCat(folder_, ":", path_)}}; }
};

TEST_F(SshTest, RunsAClusterToItsEnd) {
  const Ended ended = RunToEnd(Launch({"hello"}), environment());
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr("worker 0: "));
  EXPECT_THAT(ended.output, HasSubstr("worker 1: "));
}

TEST_F(SshTest, ReturnsTheFailuresCodeAndLeavesNobodyBehind) {
  const Ended ended = RunToEnd(Launch({"sh", "-c", "exit 7"}), environment());
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.code, 7) << ended.errors;
}

TEST_F(SshTest, StopsAllWhenItIsStopped) {
  Command launch(Launch({"sh", "-c", "exec sleep 1000"}), environment());
  ASSERT_TRUE(launch.Says("server 1 (tcp://"));
  launch.Signal(SIGTERM);
  const Ended ended = launch.Finish(Patience());
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.errors;
}

TEST_F(SshTest, SaysWhatIsMissing) {
  const std::string script = kDeploy + "/ssh/launch.sh";
  ExpectComplaint(RunToEnd({script}), 2, {"usage", "HOSTFILE"});
  ExpectComplaint(RunToEnd({script, "/no/such/file", "1", "true"}), 2, {"/no/such/file"});
  Write("hosts", "# nobody\n");
  ExpectComplaint(RunToEnd({script, folder_ + "/hosts", "1", "true"}), 2, {"no hosts"});
}

}  // namespace
}  // namespace leeway::tests
