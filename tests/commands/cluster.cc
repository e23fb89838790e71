#include "tests/commands/cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace leeway::tests {

Cluster::Cluster(int servers, int workers, const Environment& more) : environment_(more) {
  environment_["LEEWAY_NUM_SERVERS"] = absl::StrCat(servers);
  environment_["LEEWAY_NUM_WORKERS"] = absl::StrCat(workers);
  environment_["LEEWAY_SCHEDULER"] = "127.0.0.1:0";
  const std::string leeway = LEEWAY_BINARY;
  scheduler_.reset(new Command({leeway, "scheduler"}, environment_));
  const std::string line = scheduler_->ErrorLineWith(" at tcp://");
  EXPECT_FALSE(line.empty()) << "the scheduler does not say where it listens";
  environment_["LEEWAY_SCHEDULER"] = line.substr(line.rfind("tcp://"));
  for (int i = 0; i < servers; ++i) {
    servers_.emplace_back(new Command({leeway, "server"}, environment_));
  }
  for (auto& server : servers_) EXPECT_TRUE(server->Says(" serves at "));
}

Environment Cluster::With(const Environment& more) const {
  Environment environment = more;
  environment.insert(environment_.begin(), environment_.end());
  return environment;
}

nlohmann::json Cluster::Status() const {
  const Ended ended = RunToEnd({LEEWAY_BINARY, "status", "--json"}, environment_);
  EXPECT_EQ(ended.code, 0) << ended.errors;
  return nlohmann::json::parse(ended.output, nullptr, false);
}

void Cluster::ExpectEndInOrder() {
  for (Command* command : {scheduler(), server(0)}) {
    const Ended ended = command->Finish(Patience());
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.code, 0) << ended.errors;
    EXPECT_THAT(PlainLines(ended.errors), testing::IsEmpty());
  }
}

TakenPort::TakenPort(bool listens) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd_, generic, size), 0);
  EXPECT_EQ(getsockname(fd_, generic, &size), 0);
  port_ = ntohs(address.sin_port);
  if (listens) {
    EXPECT_EQ(listen(fd_, 10), 0);
  }
}

TakenPort::~TakenPort() { close(fd_); }

std::string TakenPort::address() const { return absl::StrCat("127.0.0.1:", port_); }

void ExpectComplaint(const Ended& ended, int code, const std::vector<std::string>& parts) {
  EXPECT_TRUE(ended.in_time) << "it was still running";
  EXPECT_EQ(ended.code, code);
  const std::vector<std::string> lines = PlainLines(ended.errors);
  ASSERT_EQ(lines.size(), 1u) << ended.errors;
  for (const std::string& part : parts) EXPECT_THAT(lines[0], testing::HasSubstr(part));
}

}  // namespace leeway::tests
