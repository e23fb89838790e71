// `leeway train` with wrong options: it names the option, before any process starts.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/temp_folder.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

class TrainOptionsTest : public CommandsTest {
 protected:
  static void ExpectRefused(const std::string& option, const std::string& value, int code,
                            const std::string& part) {
    SCOPED_TRACE(option + " " + value);
    const Ended ended = RunToEnd({kLeeway, "train", option, value});
    ExpectComplaint(ended, code, {option, part});
    EXPECT_EQ(ended.output, "");
  }

  const runtime::TempFolder temp_folder_;
  const std::string folder_ = temp_folder_.path();
};

TEST_F(TrainOptionsTest, ThatMakeNoSense) {
  ExpectRefused("--mode", "ssp:-1", 1, "ssp:-1");
  ExpectRefused("--mode", "ssp:x", 1, "ssp:x");
  ExpectRefused("--model", "foo", 1, "softmax, mlp and cnn");
  ExpectRefused("--slow", "9:50", 1, "workers go from 0 to 3");
  ExpectRefused("--batch", "0", 1, "from 1 to");
  ExpectRefused("--rate", "nan", 1, "finite");
  ExpectRefused("--rate", "inf", 1, "finite");
  ExpectRefused("--updater-parameter", "beta1=nan", 1, "finite");
  ExpectRefused("--codec", "zip", 1, "there is no codec named 'zip'");
  ExpectRefused("--codec", "topk:2", 1, "codec topk");
  ExpectRefused("--error-feedback", "some", 1, "auto, off, worker, server, both");
  ExpectRefused("--error-feedback", "both", 1, "loses nothing");
  ExpectRefused("--workers", "-1", 1, "from 1 to");
  ExpectRefused("--servers", "5000", 1, "from 1 to");
  // None is read as the largest number.
  ExpectRefused("--batch", "99999999999999999999999", 2, "whole number");
  ExpectRefused("--seed", "-1", 2, "whole number");
  ExpectRefused("--seed", "99999999999999999999999", 2, "whole number");
}

TEST_F(TrainOptionsTest, DataThatIsNotThere) {
  ExpectRefused("--data", "/no/such/folder", 1, "/no/such/folder");
  ExpectRefused("--data", folder_, 1, "train-images-idx3-ubyte.gz");
  ExpectRefused("--data", "", 2, "empty");
}

TEST_F(TrainOptionsTest, AnUnwritableFileIsFoundBeforeTraining) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string option : {"--json", "--save"}) {
    ExpectRefused(option, folder_, 1, "Is a directory");
    ExpectRefused(option, folder_ + "/no/such/folder/x", 1, "No such file");
    ExpectRefused(option, "/proc/x", 1, "/proc/x");  // no permission says so, not even root's
    ExpectRefused(option, pipe, 1, "no ordinary file");
    ExpectRefused(option, "/dev/null", 1, "no ordinary file");
    ExpectRefused(option, "", 2, "empty");
  }
  // The check has left no file behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TrainOptionsTest, ASettingOfTheEnvironmentIsSaidOnce) {
  ExpectComplaint(RunToEnd({kLeeway, "train"}, {{"LEEWAY_BLOCK_BYTES", "7"}}), 1,
                  {"LEEWAY_BLOCK_BYTES is \"7\""});
  ExpectComplaint(RunToEnd({kLeeway, "train"}, {{"LEEWAY_ROLE", "server"}}), 1, {"LEEWAY_ROLE"});
}

}  // namespace
}  // namespace leeway::tests
