#include "scheduler/tables/known_codecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leeway::scheduler {
namespace known_codecs_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KnownCodecsTest : public ::testing::Test {
 protected:
  KnownCodecsTest() : nodes_(3) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      nodes_[i].role = i == 0 ? Role::kServer : Role::kWorker;
      nodes_[i].rank = i;
      nodes_[i].codecs = {{"mine", 1}, {"onebit", 1}};
      living_.push_back(&nodes_[i]);
    }
  }

  absl::Status Check(const std::string& codec, const std::vector<std::string>& codecs = {}) {
    TableSpec spec = TableSpec::Dense("w", {4});
    spec.codec = codec;
    spec.codecs = codecs;
    return CheckCodecsAreKnown(spec, living_);
  }
  std::string WhyNot(const std::string& codec, const std::vector<std::string>& codecs = {}) {
    const absl::Status status = Check(codec, codecs);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  }

  std::vector<Node> nodes_;
  std::vector<Node*> living_;
};

TEST_F(KnownCodecsTest, PassWhereAllHaveThem) {
  EXPECT_TRUE(Check("mine:3").ok());
  EXPECT_TRUE(Check("auto", {"mine", "onebit:group=32"}).ok());
}

TEST_F(KnownCodecsTest, NameTheNodeWithoutOne) {
  nodes_[2].codecs = {{"onebit", 1}};
  EXPECT_TRUE(Check("onebit").ok());
  EXPECT_THAT(WhyNot("mine"), AllOf(HasSubstr("table 'w': worker 2 has no codec 'mine'"),
                                    HasSubstr("server 0 has"), HasSubstr("LEEWAY_PLUGINS")));
  EXPECT_THAT(WhyNot("onebit", {"mine:2"}), HasSubstr("worker 2 has no codec 'mine'"));
}

TEST_F(KnownCodecsTest, NameTheNodeThatAloneHasNone) {
  nodes_[0].codecs = {{"onebit", 1}};
  EXPECT_THAT(WhyNot("mine"), HasSubstr("server 0 has no codec 'mine', which worker 1 has"));
}

TEST_F(KnownCodecsTest, TellVersionsApart) {
  nodes_[1].codecs[0].version = 2;
  EXPECT_THAT(WhyNot("mine"),
              HasSubstr("worker 1 has version 2 of codec 'mine', and server 0 version 1"));
}

TEST_F(KnownCodecsTest, LeaveUnknownCodecsToTheServers) {
  EXPECT_TRUE(Check("nosuch").ok());
  EXPECT_TRUE(Check("a:b:c=").ok());
}

TEST_F(KnownCodecsTest, PassNodesThatDidNotSay) {
  nodes_[1].codecs.clear();
  EXPECT_TRUE(Check("mine").ok());
}

}  // namespace known_codecs_test
}  // namespace leeway::scheduler
