// Programs written for ps-lite, as whole clusters of processes: the scheduler, servers and workers
// are one program, told apart by DMLC_ROLE.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace leeway::tests {
namespace {

using testing::HasSubstr;

// A port that was free just now: programs of ps-lite have to be told one.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd, generic, size), 0);
  EXPECT_EQ(getsockname(fd, generic, &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

struct Shape {
  int servers = 2;
  int workers = 2;
  int worker_processes = -1;  // −1: one for each worker
  Environment more = {};
};

class Program {
 public:
  explicit Program(const std::string& way, const Shape& shape = {},
                   const char* binary = PSLITE_PROGRAM)
      : binary_(binary), environment_(shape.more) {
    environment_["DMLC_PS_ROOT_URI"] = "127.0.0.1";
    environment_["DMLC_PS_ROOT_PORT"] = std::to_string(FreePort());
    environment_["DMLC_NUM_SERVER"] = std::to_string(shape.servers);
    environment_["DMLC_NUM_WORKER"] = std::to_string(shape.workers);
    Run(way, "scheduler", 1);
    Run(way, "server", shape.servers);
    Run(way, "worker", shape.worker_processes < 0 ? shape.workers : shape.worker_processes);
  }

  Command& scheduler() { return *commands_[0]; }
  Command& server(std::size_t index) { return *commands_[1 + index]; }
  Command& last_worker() { return *commands_.back(); }
  void Forget(std::size_t command) { commands_[command].reset(); }

  void ExpectSuccess() {
    for (const std::unique_ptr<Command>& command : commands_) {
      if (command == nullptr) continue;
      const Ended ended = command->Finish(Patience());
      EXPECT_TRUE(ended.in_time);
      EXPECT_EQ(ended.code, 0) << ended.errors;
    }
  }

 private:
  void Run(const std::string& way, const std::string& role, int count) {
    Environment environment = environment_;
    environment["DMLC_ROLE"] = role;
    for (int i = 0; i < count; ++i) {
      commands_.push_back(
          std::make_unique<Command>(std::vector<std::string>{binary_, way}, environment));
    }
  }

  const std::string binary_;
  Environment environment_;
  std::vector<std::unique_ptr<Command>> commands_;  // scheduler, servers, workers
};

TEST(PsLiteProgram, AddsByTheDefaultHandler) { Program("default").ExpectSuccess(); }

TEST(PsLiteProgram, AddsByTheDefaultHandlerItselfWithoutTables) {
  // One value a key is all that ps-lite's own handler can: so is this one.
  Program("customers", {.servers = 1, .worker_processes = 1, .more = {{"LEEWAY_PS_TABLES", "0"}}})
      .ExpectSuccess();
}

TEST(PsLiteProgram, HasTablesOfRowsWithACodecByEnvironment) {
  Program("rows", {.more = {{"LEEWAY_PS_ROW_WIDTH", "2"}, {"LEEWAY_PS_CODEC", "bf16"}}})
      .ExpectSuccess();
}

TEST(PsLiteProgram, HasBoundedStalenessByEnvironment) {
  Program("rows", {.more = {{"LEEWAY_PS_ROW_WIDTH", "2"}, {"LEEWAY_PS_CONSISTENCY", "ssp:2"}}})
      .ExpectSuccess();
  Program("rows",
          {.workers = 1, .more = {{"LEEWAY_PS_ROW_WIDTH", "2"}, {"LEEWAY_PS_CONSISTENCY", "bsp"}}})
      .ExpectSuccess();
}

TEST(PsLiteProgram, HasAHandlerOfItsOwn) {
  Program("handler").ExpectSuccess();
  Program("handler", {.more = {{"LEEWAY_VAN", "tcp"}}}).ExpectSuccess();
}

TEST(PsLiteProgram, SendsMessagesBetweenAllNodes) {
  Program("simple").ExpectSuccess();
  Program("messages").ExpectSuccess();
}

TEST(PsLiteProgram, HasBarriersOfEveryGroup) { Program("groups").ExpectSuccess(); }

TEST(PsLiteProgram, HasSeveralCustomersInAProcess) {
  Program("customers", {.servers = 1, .worker_processes = 1}).ExpectSuccess();
}

TEST(PsLiteProgram, ThatIsTheExampleFindsTheWeights) {
  Program("", {}, PSLITE_EXAMPLE).ExpectSuccess();
}

TEST(PsLiteProgram, SurvivesTheDeathOfAServerWithReplicas) {
  Program program(
      "survive",
      {.servers = 3, .more = {{"LEEWAY_REPLICATION", "2"}, {"LEEWAY_SUSPICION_MS", "200"}}});
  ASSERT_TRUE(program.last_worker().Says("is on its way"));
  program.server(1).Signal(SIGKILL);
  EXPECT_EQ(program.server(1).Finish(Patience()).code, 128 + SIGKILL);
  program.Forget(2);
  EXPECT_TRUE(program.last_worker().Says("all is there"));
  program.ExpectSuccess();
}

TEST(PsLiteProgram, EndsWithTheReasonWhereARequestFails) {
  Program program("refused", {.servers = 1, .workers = 1});
  const Ended worker = program.last_worker().Finish(Patience());
  EXPECT_EQ(worker.code, 128 + SIGABRT);
  EXPECT_THAT(worker.errors, HasSubstr("application 0, customer 0, request 1: "));
}

TEST(PsLiteProgram, HasServersThatOutliveAWorkerOfOtherValues) {
  Program program("types", {.servers = 1, .workers = 1});
  const Ended worker = program.last_worker().Finish(Patience());
  EXPECT_EQ(worker.code, 128 + SIGABRT);
  EXPECT_THAT(worker.errors, HasSubstr("3 bytes of values"));
  program.Forget(2);
  program.ExpectSuccess();
}

TEST(PsLiteProgram, DoesNotWaitForTheResponsesOfTheDead) {
  Program program("gone", {.workers = 1, .more = {{"LEEWAY_SUSPICION_MS", "200"}}});
  EXPECT_TRUE(program.scheduler().Says("all have responded or died"));
}

TEST(PsLiteProgram, IsToldWhichVariableMakesNoSense) {
  const std::vector<std::pair<std::string, std::string>> wrong = {{"LEEWAY_PS_TABLES", "no"},
                                                                  {"PORT", "65536"},
                                                                  {"PS_VERBOSE", "much"},
                                                                  {"DMLC_NUM_SERVER", "two"},
                                                                  {"PS_HEARTBEAT_TIMEOUT", "1.5"}};
  for (const auto& [name, value] : wrong) {
    Command command({PSLITE_PROGRAM, "groups"},
                    {{"DMLC_ROLE", "server"},
                     {"DMLC_PS_ROOT_URI", "127.0.0.1"},
                     {"DMLC_PS_ROOT_PORT", "1"},
                     {"DMLC_NUM_SERVER", name == "DMLC_NUM_SERVER" ? value : "1"},
                     {"DMLC_NUM_WORKER", "1"},
                     {name, value}});
    const Ended ended = command.Finish(Patience());
    EXPECT_EQ(ended.code, 128 + SIGABRT) << name;
    EXPECT_THAT(ended.errors, HasSubstr(name));
  }
}

}  // namespace
}  // namespace leeway::tests
