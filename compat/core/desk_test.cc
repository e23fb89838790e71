#include "compat/core/desk.h"

#include <string>
#include <vector>

#include "compat/core/nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace leeway::compat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DeskTest : public testing::Test {
 protected:
  // The command, whose answers go to answers_[number].
  void Ask(std::size_t number, const std::string& command, const Desk::Arguments& arguments) {
    if (answers_.size() <= number) answers_.resize(number + 1);
    desk_.Commands().at(command)(
        arguments, [this, number](const absl::StatusOr<std::string>& json) {
          answers_[number].push_back(json.ok() ? *json : std::string(json.status().message()));
        });
  }
  void Enter(int node, int group, const std::string& start = "") {
    Ask(node, kBarrierCommand, {std::to_string(node), std::to_string(group), start});
  }
  void Kill(std::uint32_t server) {
    proto::ClusterMap map{.version = 2, .epoch = 2};
    for (std::uint32_t rank : {0, 1}) {
      map.servers.push_back({.rank = rank, .alive = rank != server});
    }
    desk_.OnMap(map);
  }
  std::vector<std::string> Bodies(std::size_t number) {
    std::vector<std::string> bodies;
    for (const std::string& answer : answers_[number]) {
      const nlohmann::json json = nlohmann::json::parse(answer);
      for (const auto& message : json["messages"]) bodies.push_back(message.back());
    }
    return bodies;
  }

  Desk desk_{2, 1};  // nodes 1; 8, 10; 9
  std::vector<std::vector<std::string>> answers_;
};

TEST_F(DeskTest, ABarrierEndsWhenAllOfItsGroupHaveCome) {
  Enter(8, kServers);
  EXPECT_THAT(answers_[8], IsEmpty());
  Enter(9, kWorkers + kServers);
  Enter(10, kServers);
  EXPECT_EQ(answers_[8].size(), 1u);
  EXPECT_EQ(answers_[10].size(), 1u);
  EXPECT_THAT(answers_[9], IsEmpty());
}

TEST_F(DeskTest, ABarrierDoesNotWaitForTheDead) {
  Enter(8, kServers);
  Kill(1);
  EXPECT_EQ(answers_[8].size(), 1u);
  EXPECT_THAT(desk_.Dead(), ElementsAre(10));
}

TEST_F(DeskTest, TwoCustomersOfANodeEnterABarrierAsOne) {
  Enter(8, kServers);
  Enter(8, kServers);
  Enter(10, kServers);
  EXPECT_EQ(answers_[8].size(), 2u);
}

TEST_F(DeskTest, ANodeThatStartsLateIsNotHeldUp) {
  for (const int node : {1, 8, 9, 10}) Enter(node, kEveryNode, "start");
  EXPECT_EQ(answers_[9].size(), 1u);
  Enter(10, kEveryNode, "start");
  EXPECT_THAT(answers_[10], ElementsAre("{}", "{\"late\":true}"));
  Enter(10, kEveryNode);
  EXPECT_EQ(answers_[10].size(), 2u);
}

TEST_F(DeskTest, MessagesWaitAndComeInOrderAndOnce) {
  Ask(1, kSendCommand, {"9", "8", "first"});
  Ask(2, kReceiveCommand, {"9", "0"});
  EXPECT_THAT(Bodies(2), ElementsAre("first"));
  Ask(3, kReceiveCommand, {"9", "1"});
  EXPECT_THAT(answers_[3], IsEmpty());
  Ask(1, kSendCommand, {"9", "8", "second"});
  EXPECT_THAT(Bodies(3), ElementsAre("second"));
  // What has not been said to have come is said again.
  Ask(4, kReceiveCommand, {"9", "1"});
  EXPECT_THAT(Bodies(4), ElementsAre("second"));
}

TEST_F(DeskTest, AnAnswerHasOnlySoManyBytes) {
  const std::string large(kMailAnswerBytesMax / 2, 'x');
  for (int i = 0; i < 3; ++i) Ask(1, kSendCommand, {"9", "8", large});
  Ask(2, kReceiveCommand, {"9", "0"});
  EXPECT_THAT(Bodies(2), ElementsAre(large));
  Ask(3, kReceiveCommand, {"9", "1"});
  EXPECT_THAT(Bodies(3), ElementsAre(large));
}

TEST_F(DeskTest, TellsThoseWhoWaitForResponsesOfTheDead) {
  const auto message = [](const char* to, const char* from, const char* kind, const char* time) {
    return Desk::Arguments{to, from, kind, "3", "4", "17", time, "last", "x"};
  };
  Ask(1, kSendCommand, message("10", "9", kRequest, "0"));
  Ask(1, kSendCommand, message("10", "9", kRequest, "1"));
  Ask(1, kSendCommand, message("8", "9", kRequest, "1"));
  Ask(1, kSendCommand, message("9", "10", kResponse, "0"));
  Ask(2, kReceiveCommand, {"9", "0"});
  Ask(3, kReceiveCommand, {"9", "1"});
  EXPECT_THAT(answers_[3], IsEmpty());
  Kill(1);
  Kill(1);
  ASSERT_EQ(answers_[3].size(), 1u);
  const auto told = nlohmann::json::parse(answers_[3][0])["messages"];
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0].get<Desk::Arguments>(),
              ElementsAre("9", "10", kGone, "3", "4", "0", "1", "last"));
}

TEST_F(DeskTest, MessagesToNobodyAreRefused) {
  Kill(1);
  Ask(1, kSendCommand, {"10", "8", "x"});
  EXPECT_THAT(answers_[1], ElementsAre("node 10 is gone"));
  Ask(2, kSendCommand, {"77", "8", "x"});
  Ask(3, kReceiveCommand, {"nine"});
  EXPECT_EQ(answers_[2], answers_[3]);
}

}  // namespace
}  // namespace leeway::compat
