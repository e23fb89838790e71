// Processes of a cluster meet peers of other kinds or releases.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/messages/messages.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"
#include "tests/commands/raw_peer.h"

namespace leeway::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint32_t kOtherVersion = 77;

class PeersTest : public CommandsTest {
 protected:
  std::string server_address() { return cluster_.Status()["servers"][0]["endpoints"][0]; }
  // The cluster still works.
  void ExpectUnharmed() {
    const Ended worker = RunToEnd({kHello}, cluster_.environment());
    EXPECT_EQ(worker.code, 0) << worker.errors;
    cluster_.ExpectEndInOrder();
  }

  Cluster cluster_;
};

TEST_F(PeersTest, AnotherProtocolVersionIsRefusedWithBothNumbers) {
  const auto says_why = AllOf(HasSubstr("protocol version 77"),
                              HasSubstr(absl::StrCat("meets version ", proto::kProtocolVersion)));
  const std::string server = server_address();
  for (const std::string& address : {cluster_.scheduler_address(), server}) {
    const absl::Status why = RejectionOf(address, Greeting(Role::kWorker, kOtherVersion));
    EXPECT_THAT(std::string(why.message()), says_why);
  }
  for (Command* process : {cluster_.scheduler(), cluster_.server(0)}) {
    EXPECT_THAT(process->ErrorLineWith("refusing tcp://127.0.0.1:"), says_why);
  }
  const nlohmann::json status = cluster_.Status();
  EXPECT_EQ(status["counters"]["refused_versions"], 1);
  EXPECT_EQ(status["servers"][0]["threads"][0]["van"]["refused_versions"], 1);
  ExpectUnharmed();
}

using OtherSchedulerTest = CommandsTest;

TEST_F(OtherSchedulerTest, OfAnotherVersionIsNoPlaceToStay) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{kLeeway, "server"}, {kLeeway, "status"}, {kHello}}) {
    FakeScheduler scheduler;
    Command command(arguments, {{"LEEWAY_SCHEDULER", scheduler.address()}});
    ASSERT_TRUE(scheduler.AnswerOne(Greeting(Role::kScheduler, kOtherVersion)));
    ExpectComplaint(command.Finish(Patience()), 1,
                    {scheduler.address(), "protocol version 77", "the same release"});
  }
}

TEST_F(PeersTest, GarbageIsCountedAndItsSenderNamed) {
  const std::string greeting =
      std::string("\xff\0\0\0\0\0\0\0\0\x7f\x03\x01NULL", 16) + std::string(48, '\0');
  const std::vector<std::string> garbage = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string("\xff\0\0", 3),               // a greeting cut short
      greeting + "\x04\x26\x05READY and more",  // a handshake cut short
      greeting + std::string(200, '\xee'),
  };
  const std::string server = server_address();
  for (const std::string& address : {cluster_.scheduler_address(), server}) {
    for (const std::string& bytes : garbage) SendBytes(address, bytes);
    // A connection of the transport without a message of ours: cut short, and noise.
    const std::string hello = Greeting(Role::kWorker, 1);
    for (const std::string& frame : {hello.substr(0, 10), hello.substr(0, 40), std::string("?")}) {
      EXPECT_FALSE(RejectionOf(address, frame).ok());
    }
  }
  const std::size_t failed = garbage.size();
  for (Command* process : {cluster_.scheduler(), cluster_.server(0)}) {
    EXPECT_THAT(process->ErrorLineWith("(4 failed handshakes)"), HasSubstr("dropping "));
    EXPECT_THAT(process->ErrorLineWith("(1 failed handshakes)"), HasSubstr("it speaks HTTP"));
    EXPECT_THAT(process->ErrorLineWith("(offender 3)"), HasSubstr("dropping tcp://127.0.0.1:"));
  }
  const nlohmann::json status = cluster_.Status();
  EXPECT_EQ(status["counters"]["handshakes_failed"], failed);
  EXPECT_EQ(status["counters"]["offenders_dropped"], 3);
  const nlohmann::json& thread = status["servers"][0]["threads"][0];
  EXPECT_EQ(thread["van"]["handshakes_failed"], failed);
  EXPECT_EQ(thread["van"]["offenders_dropped"], 3);
  ExpectUnharmed();
}

}  // namespace
}  // namespace leeway::tests
