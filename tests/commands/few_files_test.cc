// A cluster whose processes may open few files, and peers that open many connections to it.
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"
#include "van/testing/tcp_attacker.h"

namespace leeway::tests {
namespace {

constexpr rlim_t kFiles = 64;
constexpr int kIdle = 300;

// Limits the processes that are started during its life.
class FewFiles {
 public:
  FewFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = kFiles, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

class FewFilesTest : public CommandsTest {
 protected:
  FewFilesTest() {
    const FewFiles few;
    cluster_ = std::make_unique<Cluster>();
  }
  // Opens connections that say hello and send nothing more.
  void OpenIdle(const std::string& address, std::uint64_t cluster) {
    for (int i = 0; i < kIdle; ++i) {
      idle_.push_back(std::make_unique<van::TcpAttacker>(address));
      idle_.back()->Say(van::Greeting() + van::HelloMessage(cluster));
    }
  }

  std::unique_ptr<Cluster> cluster_;
  std::vector<std::unique_ptr<van::TcpAttacker>> idle_;
};

TEST_F(FewFilesTest, IdleConnectionsOfGuestsAndMembersKeepNobodyOut) {
  const nlohmann::json before = cluster_->Status();
  std::uint64_t cluster = 0;
  const std::string line = cluster_->scheduler()->ErrorLineWith(" of cluster ");
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  const auto word = std::find(words.begin(), words.end(), "cluster");
  ASSERT_LT(word, words.end() - 1) << line;
  ASSERT_TRUE(absl::SimpleHexAtoi(word[1], &cluster)) << line;
  const std::string server = before["servers"][0]["endpoints"][0];
  for (const std::string& address : {cluster_->scheduler_address(), server}) {
    OpenIdle(address, cluster);
    OpenIdle(address, 0);
  }
  const nlohmann::json status = cluster_->Status();
  ASSERT_TRUE(status.is_object());
  EXPECT_EQ(status["servers"][0]["state"], "alive");
  EXPECT_GT(status["counters"]["guests_dropped"], 0);
  const Ended worker = RunToEnd({kHello}, cluster_->environment());
  EXPECT_EQ(worker.code, 0) << worker.errors;
  cluster_->ExpectEndInOrder();
}

}  // namespace
}  // namespace leeway::tests
