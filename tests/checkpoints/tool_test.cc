// `leeway checkpoint …` as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/testing/temp_folder.h"
#include "tests/checkpoints/training.h"
#include "tests/support/local_cluster.h"
#include "tools/cli.h"

namespace leeway::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

struct Said {
  int code;
  std::string output, errors;
};

Said Checkpoint(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"leeway", "checkpoint"});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = tools::Main(arguments);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

void ExpectComplaint(std::vector<std::string> arguments, const std::string& text) {
  const Said said = Checkpoint(std::move(arguments));
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.output, "");
  EXPECT_THAT(said.errors, AllOf(MatchesRegex("leeway: [^\n]+\n"), HasSubstr(text)));
}

class ToolTest : public ::testing::Test {
 protected:
  // Two checkpoints of a cluster that trains: the second adds to the first.
  void SaveTwo() {
    LocalCluster::Setup setup{.servers = 2, .net = LocalCluster::Net::kTcp, .config = {}};
    setup.config.num_shards = 6;
    setup.config.log_level = "error";
    auto cluster = LocalCluster::Start(setup);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const std::string scheduler = (*cluster)->scheduler_address();
    const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
      Training training(worker);
      std::atomic<bool> saved = false;
      std::thread saver([&] {
        first_ = Checkpoint({"save", "--dir", folder_, "--scheduler", scheduler});
        second_ = Checkpoint({"save", "--dir", folder_, "--incremental", "--scheduler", scheduler});
        saved = true;
      });
      while (!saved) EXPECT_TRUE(training.RunUntil(worker->clock() + 1).ok());
      saver.join();
    });
    EXPECT_TRUE(ran.ok()) << ran;
    EXPECT_TRUE((*cluster)->Finish().ok());
  }

  // The name of the checkpoint that was saved.
  std::string NameOf(const Said& saved) const {
    return saved.output.substr(folder_.size() + 1, 13);
  }

  const runtime::TempFolder temp_folder_;
  const std::string folder_ = temp_folder_.path();
  Said first_, second_;
};

TEST_F(ToolTest, SaveListVerifyAndExport) {
  SaveTwo();
  EXPECT_EQ(first_.code, 0) << first_.errors;
  EXPECT_EQ(second_.code, 0) << second_.errors;
  // Attempts that came too late for their clocks have used numbers, too.
  const std::string older = NameOf(first_), name = NameOf(second_);
  EXPECT_LT(older, name);
  EXPECT_THAT(first_.output, HasSubstr(folder_ + "/" + older + ": clock "));
  const Said list = Checkpoint({"list", folder_});
  EXPECT_THAT(list.output,
              MatchesRegex(older +
                           "  [^ ]+  clock [0-9]+  4 tables  6 shards  [0-9.]+ MB\n"
                           "ckpt-[0-9]+  [^ ]+  clock [0-9]+  4 tables  6 shards  [0-9.]+ MB  "
                           "adds to " +
                           older + "\n"));
  const Said newest = Checkpoint({"verify", folder_});
  EXPECT_EQ(newest.code, 0) << newest.errors;
  EXPECT_THAT(newest.output, HasSubstr(name + " is whole: clock "));
  EXPECT_THAT(newest.output, HasSubstr("12 files"));
  EXPECT_EQ(Checkpoint({"verify", folder_ + "/" + older + "/"}).code, 0);
  const std::string model = folder_ + "/model.safetensors";
  EXPECT_EQ(Checkpoint({"export", folder_, model}).code, 0);
  EXPECT_GT(std::filesystem::file_size(model), 5000 * sizeof(float));

  // From a working folder inside a checkpoint, and inside the folder of checkpoints.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_ + "/" + older);
  EXPECT_THAT(Checkpoint({"verify", "."}).output, HasSubstr(older + " is whole"));
  EXPECT_EQ(Checkpoint({"export", ".", "../other.safetensors"}).code, 0);
  EXPECT_THAT(Checkpoint({"verify", ".."}).output, HasSubstr(name + " is whole"));
  EXPECT_THAT(Checkpoint({"list", ".."}).output, HasSubstr(name));
  std::filesystem::current_path(before);
  // A link is followed.
  std::filesystem::create_directories(folder_ + "/a/b");
  std::filesystem::create_directories(folder_ + "/c");
  std::filesystem::create_directory_symlink(folder_ + "/a/b", folder_ + "/c/link");
  EXPECT_THAT(Checkpoint({"list", folder_ + "/c/link/../../" + older + "/../."}).output,
              HasSubstr(name));

  // Only a file is replaced, or accepted as one.
  std::filesystem::create_symlink("elsewhere", folder_ + "/link");
  ExpectComplaint({"export", folder_, folder_ + "/link"}, folder_ + "/link");
  ExpectComplaint({"export", folder_, "/dev/null"}, "/dev/null");
  const std::string shard = folder_ + "/" + name + "/shard-00000.safetensors";
  std::filesystem::rename(shard, folder_ + "/kept");
  ASSERT_EQ(::mkfifo(shard.c_str(), 0600), 0);
  ExpectComplaint({"verify", folder_}, shard + ": it is a pipe");
  std::filesystem::remove(shard);
  std::filesystem::rename(folder_ + "/kept", shard);
  EXPECT_EQ(Checkpoint({"verify", folder_}).code, 0);

  std::ofstream(folder_ + "/" + older + "/shard-00003.safetensors", std::ios::app) << "x";
  ExpectComplaint({"verify", folder_}, older + "/shard-00003.safetensors");
  ExpectComplaint({"export", folder_, model}, "shard-00003.safetensors");
  std::filesystem::remove(folder_ + "/" + name + "/manifest.json");
  EXPECT_THAT(Checkpoint({"list", folder_}).output, HasSubstr(name + "  not finished"));
}

TEST_F(ToolTest, MistakesAreToldInOneLine) {
  ExpectComplaint({"verify", folder_}, "there is none in it");
  ExpectComplaint({"verify", folder_ + "/no"}, folder_ + "/no");
  ExpectComplaint({"list", folder_ + "/no"}, folder_ + "/no");
  ExpectComplaint({"export", folder_, folder_ + "/model"}, "there is none in it");
  ExpectComplaint({"restore", folder_, "--scheduler", "127.0.0.1:1"}, "LEEWAY_RESTORE=");
  const std::string too_long = "/" + std::string(5000, 'x');
  for (const char* command : {"verify", "list"}) {
    ExpectComplaint({command, too_long}, "the path is 5001 bytes long, may be 4095");
  }
  const std::string no_utf8 = folder_ + "/\xff";
  ExpectComplaint({"save", "--dir", no_utf8, "--scheduler", "127.0.0.1:1"}, "the folder's path");
  ExpectComplaint({"restore", no_utf8, "--scheduler", "127.0.0.1:1"}, "LEEWAY_RESTORE is");
  ExpectComplaint({"restore", too_long}, "the path is 5001 bytes long");
  ExpectComplaint({"save", "--dir", too_long, "--scheduler", "127.0.0.1:1"},
                  "the path is 5001 bytes long");
  setenv("LEEWAY_CONNECT_TIMEOUT_MS", "200", /*overwrite=*/1);
  ExpectComplaint({"save", "--dir", folder_, "--scheduler", "127.0.0.1:1"},
                  "no scheduler at tcp://127.0.0.1:1");
  unsetenv("LEEWAY_CONNECT_TIMEOUT_MS");
  std::filesystem::create_directories(folder_ + "/ckpt-00000003");
  std::ofstream(folder_ + "/ckpt-00000003/manifest.json") << "{}";
  ExpectComplaint({"verify", folder_}, "ckpt-00000003/manifest.json");
}

}  // namespace
}  // namespace leeway::tests
