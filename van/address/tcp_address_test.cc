// Tests of hosts, network cards and ports of this machine, over every transport with tcp://
// addresses.
#include "van/address/tcp_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "van/testing/test_world.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TcpAddressTest : public testing::TestWithParam<NetKind> {
 protected:
  void SetUp() override {
    server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2));
    address_ = server_->Listen();
    worker_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
  }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(GetParam());
  std::unique_ptr<Node> server_, worker_;
  std::string address_;
};

bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has =
      fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) == 0;
  if (fd >= 0) close(fd);
  return has;
}

TEST_P(TcpAddressTest, HostNamesAndNetworkCardsCanBeListenedOn) {
  for (const char* host : {"localhost", "lo", "127.0.0.1"}) {
    Node node(world_.get(), IdentityOf(Role::kServer, 5));
    const auto bound = node.van->Listen(world_->factory(0)->AnyAddress(host));
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_THAT(*bound, StartsWith("tcp://127.0.0.1:"));
    Node other(world_.get(), IdentityOf(Role::kWorker, 6));
    std::string by_name = *bound;
    by_name.replace(0, std::strlen("tcp://127.0.0.1"), "tcp://localhost");
    other.ConnectTo(&node, by_name);
  }
}

TEST_P(TcpAddressTest, AWildcardIsAdvertisedAsSomethingOthersCanReach) {
  for (const char* address : {"tcp://*:0", "tcp://0.0.0.0:0", "tcp://:0"}) {
    Node node(world_.get(), IdentityOf(Role::kServer, 5));
    const auto bound = node.van->Listen(address);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_FALSE(absl::StrContains(*bound, "0.0.0.0") || absl::StrContains(*bound, "*")) << *bound;
    Node other(world_.get(), IdentityOf(Role::kWorker, 6));
    other.ConnectTo(&node, *bound);
  }
  EXPECT_EQ(world_->factory(0)->AnyAddress(""), "tcp://0.0.0.0:0");
  EXPECT_EQ(world_->factory(0)->AnyAddress("fd00::1"), "tcp://[fd00::1]:0");
}

TEST_P(TcpAddressTest, Ipv6AddressesCanBeListenedOn) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no ::1";
  Node node(world_.get(), IdentityOf(Role::kServer, 5));
  node.recorder->on_message = [&](PeerId peer, Message message) {
    EXPECT_THAT(node.van->AddressOf(peer), StartsWith("tcp://[::1]:"));
    EXPECT_TRUE(node.van->Send(peer, std::move(message)).ok());
  };
  const auto bound = node.van->Listen("tcp://[::1]:0");
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_THAT(*bound, StartsWith("tcp://[::1]:"));
  Node other(world_.get(), IdentityOf(Role::kWorker, 6));
  const PeerId peer = other.ConnectTo(&node, *bound);
  ASSERT_TRUE(other.van->Send(peer, TextMessage("m", {std::string(100'000, 'x')})).ok());
  EXPECT_TRUE(world_->RunUntil([&] { return other.recorder->messages.size() == 1; }));
  EXPECT_EQ(other.van->AddressOf(peer), *bound);
}

TEST_P(TcpAddressTest, AllIpv6AddressesAreAdvertisedAsOneThatOthersCanReach) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no ::1";
  Node node(world_.get(), IdentityOf(Role::kServer, 5));
  const auto bound = node.van->Listen("tcp://[::]:0");
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_THAT(*bound, Not(HasSubstr("[::]")));
  Node other(world_.get(), IdentityOf(Role::kWorker, 6));
  other.ConnectTo(&node, *bound);
  Node another(world_.get(), IdentityOf(Role::kWorker, 7));
  another.ConnectTo(&node, absl::StrCat("tcp://[::1]", bound->substr(bound->rfind(':'))));
}

TEST_P(TcpAddressTest, AnAddressOfAnotherMachineIsNotFound) {
  const auto bound = worker_->van->Listen("tcp://192.0.2.1:0");
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kNotFound) << bound.status();
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("LEEWAY_HOST"));
  EXPECT_EQ(worker_->van->Connect("tcp://127.0.0.1:0", absl::Seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(TcpAddressTest, APortInUseSaysWhatToChange) {
  const auto bound = worker_->van->Listen(address_);
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("LEEWAY_SCHEDULER"));
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("DMLC_PS_ROOT_PORT"));
}

// A listener that has just been closed leaves connections behind in TIME_WAIT.
TEST_P(TcpAddressTest, APortCanBeListenedOnAgainAtOnce) {
  for (int round = 0; round < 3; ++round) {
    Node worker(world_.get(), IdentityOf(Role::kWorker, 10));
    worker.ConnectTo(server_.get(), address_);
    server_->van.reset();
    server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2));
    const auto bound = server_->van->Listen(address_);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_EQ(*bound, address_);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, TcpAddressTest, testing::Values(NetKind::kTcp, NetKind::kZmqTcp),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
