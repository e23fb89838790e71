#include "scheduler/admin/admin_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AdminServiceTest : public ::testing::Test {
 protected:
  AdminServiceTest() {
    admin_service_.Register(
        "wait", [this](const AdminService::Arguments&, const AdminService::Answer& answer) {
          answers_.push_back(answer);
        });
  }
  void Ask(van::PeerId peer, std::uint64_t who, std::uint64_t request,
           std::string command = "wait") {
    admin_service_.OnAdmin(peer, who,
                           {.request = request, .command = std::move(command), .arguments = {}});
  }
  std::vector<std::string> Said() { return std::exchange(said_, {}); }

  std::vector<AdminService::Answer> answers_;  // of the commands under way or done
  std::vector<std::string> said_;              // "peer:request:answer"
  AdminService admin_service_{[this](van::PeerId peer, const proto::AdminReply& reply,
                                     const std::string& json) {
    said_.push_back(absl::StrCat(peer, ":", reply.request, ":",
                                 reply.result.ok() ? json : std::string(reply.result.message())));
  }};
};

TEST_F(AdminServiceTest, ARepeatedCommandIsDoneOnceAndAnsweredOnItsLastConnection) {
  Ask(1, 77, 5);
  Ask(1, 77, 5);
  Ask(2, 77, 5);  // it has connected anew
  Ask(3, 78, 5);
  ASSERT_EQ(answers_.size(), 2u);
  answers_[0](std::string("[1]"));
  answers_[0](std::string("[2]"));
  EXPECT_THAT(Said(), ElementsAre("2:5:[1]"));
  Ask(4, 77, 5);  // the answer was lost
  EXPECT_THAT(Said(), ElementsAre("4:5:[1]"));
  answers_[1](absl::AbortedError("no"));
  EXPECT_THAT(Said(), ElementsAre("3:5:no"));
  EXPECT_EQ(answers_.size(), 2u);
}

TEST_F(AdminServiceTest, AnUnknownCommandIsRefused) {
  Ask(1, 77, 1, "dance");
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("no command 'dance'; it knows wait")));
}

TEST_F(AdminServiceTest, OnlySoManyWait) {
  for (std::uint64_t request = 0; request <= kAsksWaitingMax; ++request) Ask(1, 77, request);
  EXPECT_EQ(answers_.size(), kAsksWaitingMax);
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("4096 commands wait")));
  answers_[0](std::string("{}"));
  Said();
  Ask(1, 77, kAsksWaitingMax);
  EXPECT_THAT(Said(), IsEmpty());
}

TEST_F(AdminServiceTest, OnlySoManyAnswersAreRemembered) {
  for (std::uint64_t request = 0; request <= kAnswersRememberedMax; ++request) {
    Ask(1, 77, request);
    answers_.back()(std::string("{}"));
  }
  const std::size_t done = answers_.size();
  Ask(1, 77, 1);
  EXPECT_EQ(answers_.size(), done);
  Ask(1, 77, 0);
  EXPECT_EQ(answers_.size(), done + 1);
}

}  // namespace
}  // namespace leeway::scheduler
