// Tests of listening, dialling, accepting and refusing with the system's verbs.
#include <net/if.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/unique_fd.h"
#include "van/rdma/testing/system_verbs_fixture.h"

namespace leeway::van::verbs {
namespace {

using testing::HasSubstr;

// A link-local address of a device, with its network card. None: the port is 0.
sockaddr_in6 FoundLinkLocal(std::uint16_t port) {
  sockaddr_in6 address{};
  for (const FoundDevice& device : TakeInventory().devices) {
    for (const FoundPort& found : device.ports) {
      for (const FoundGid& gid : found.gids) {
        if (!found.up || gid.card.empty() || gid.gid.rfind("fe80:", 0) != 0) continue;
        address.sin6_family = AF_INET6;
        address.sin6_port = htons(port);
        address.sin6_scope_id = ::if_nametoindex(gid.card.c_str());
        EXPECT_EQ(inet_pton(AF_INET6, gid.gid.c_str(), &address.sin6_addr), 1);
      }
    }
  }
  return address;
}

sockaddr_storage Generic(const sockaddr_in6& address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof(address));
  return storage;
}

// False while the system still checks that no other host has the address.
bool CanBeUsed(const sockaddr_in6& address) {
  const runtime::UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM, 0));
  sockaddr_in6 any_port = address;
  any_port.sin6_port = 0;
  return address.sin6_family == AF_INET6 &&
         ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any_port), sizeof(any_port)) == 0;
}

TEST_F(SystemVerbsTest, BothSidesGetWhatTheOtherSays) {
  Establish();
  ASSERT_FALSE(HasFatalFailure());
  asked_.resize(15);
  answered_.resize(15);
  EXPECT_EQ(asked_, Bytes("from the client"));
  EXPECT_EQ(answered_, Bytes("from the server"));
  EXPECT_EQ(dialled_->peer_address(), host_ + ":" + std::to_string(port_));
  EXPECT_THAT(accepted_->peer_address(), HasSubstr(host_));
  const DeviceInfo& info = dialled_->device()->info();
  EXPECT_GE(info.gid_index, 0);
  EXPECT_GE(info.mtu_bytes, 256u);
  EXPECT_EQ(info.send_depth, Options().send_depth);
  EXPECT_EQ(client_->devices().size(), 1u);
}

TEST_F(SystemVerbsTest, NobodyListens) {
  auto dialled = client_->Dial(AddressOf(host_, static_cast<std::uint16_t>(port_ ^ 1)));
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  ASSERT_EQ(Next(client_.get()).kind, EventKind::kResolved);
  ASSERT_TRUE((*dialled)->Connect({}).ok());
  const Event failed = Next(client_.get());
  EXPECT_EQ(failed.kind, EventKind::kFailed);
  EXPECT_THAT(failed.why.message(), HasSubstr("connection refused: no process listens there"));
  EXPECT_THAT(failed.why.message(), HasSubstr(host_));
}

TEST_F(SystemVerbsTest, TheListenerRefuses) {
  Request();
  ASSERT_FALSE(HasFatalFailure());
  accepted_ = nullptr;
  const Event failed = Next(client_.get());
  EXPECT_EQ(failed.kind, EventKind::kFailed);
  EXPECT_THAT(failed.why.message(), HasSubstr("refused by the process that listens"));
}

TEST_F(SystemVerbsTest, NoWayThere) {
  auto dialled = client_->Dial(AddressOf("203.0.113.1", 9));
  absl::Status why = dialled.status();
  if (dialled.ok()) {
    const Event failed = Next(client_.get());
    EXPECT_EQ(failed.kind, EventKind::kFailed);
    why = failed.why;
  }
  EXPECT_THAT(why.message(), HasSubstr("cannot connect to 203.0.113.1:9 over rdma"));
}

TEST_F(SystemVerbsTest, DroppedWhileItIsResolved) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(DialServer().ok());
  Establish();
}

TEST_F(SystemVerbsTest, APortIsTakenOnce) {
  const auto again = server_->Listen(AddressOf(host_, port_));
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  const auto other = client_->Listen(AddressOf("0.0.0.0", 0));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(*other, 0);
}

TEST_F(SystemVerbsTest, OverIpv6) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  const auto port = server_->Listen(Generic(any));
  ASSERT_TRUE(port.ok()) << port.status();
  const sockaddr_in6 address = FoundLinkLocal(*port);
  if (!CanBeUsed(address)) GTEST_SKIP() << "no rdma device has a link-local address";
  auto dialled = client_->Dial(Generic(address));
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  Event resolved = Next(client_.get());
  ASSERT_EQ(resolved.kind, EventKind::kResolved) << resolved.why;
  ASSERT_TRUE((*dialled)->Connect({}).ok());
  Event request = Next(server_.get());
  ASSERT_EQ(request.kind, EventKind::kRequest);
  ASSERT_TRUE(request.accepted->Accept({}).ok());
  Event established = Next(client_.get());
  EXPECT_EQ(established.kind, EventKind::kEstablished) << established.why;
  EXPECT_THAT((*dialled)->peer_address(), HasSubstr("[fe80::"));
}

// A listener on all IPv6 addresses accepts IPv4 connections as well, as with tcp.
TEST_F(SystemVerbsTest, AllAddresses) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  const auto port = server_->Listen(Generic(any));
  ASSERT_TRUE(port.ok()) << port.status();
  port_ = *port;
  Establish();
}

TEST_F(SystemVerbsTest, AnAddressWithoutDevice) {
  const auto here = client_->Listen(AddressOf("203.0.113.1", 0));
  EXPECT_TRUE(absl::IsUnavailable(here.status())) << here.status();
}

// More connections than the completion queue has room for at first.
TEST_F(SystemVerbsTest, ManyConnections) {
  std::vector<std::unique_ptr<Connection>> kept;
  for (int i = 0; i < 40; ++i) {
    Establish();
    ASSERT_FALSE(HasFatalFailure()) << i;
    kept.push_back(std::move(dialled_));
    kept.push_back(std::move(accepted_));
  }
  Device* const receiver = kept[79]->device();
  Registered from(kept[78]->device(), 4096), to(receiver, 4096);
  ASSERT_TRUE(receiver->PostReceive(7, to.All()).ok());
  ASSERT_TRUE(Send(kept[78].get(), 1, from.All()).ok());
  EXPECT_EQ(NextCompletion(receiver).id, 7u);
}

TEST_F(SystemVerbsTest, BothSidesUseTheSmallerMtuOfTheTwo) {
  Path path;
  path.mtu_bytes = 1024;
  const std::unique_ptr<Provider> small = NewSystemProvider(path);
  client_ = *small->Open({});
  ASSERT_NO_FATAL_FAILURE(Establish());
  EXPECT_EQ(dialled_->device()->info().mtu_bytes, 1024u);
  EXPECT_EQ(accepted_->device()->info().mtu_bytes, 1024u);
  Registered from(dialled_->device(), 5000), to(accepted_->device(), 5000, /*remote_write=*/true);
  from.Fill("longer than one packet");
  ASSERT_TRUE(Write(dialled_.get(), 1, from.All(), to).ok());
  EXPECT_EQ(NextCompletion(dialled_->device()).outcome, Outcome::kOk);
  EXPECT_EQ(to.Text(11), "longer than");
}

TEST_F(SystemVerbsTest, GoesTheWayThatIsSet) {
  const Inventory inventory = TakeInventory();
  ASSERT_FALSE(inventory.devices.empty());
  Path path;
  path.device = inventory.devices[0].name;
  path.port = 1;
  for (const FoundGid& gid : inventory.devices[0].ports[0].gids) {
    if (gid.gid == "::ffff:" + host_) path.gid_index = gid.index;
  }
  ASSERT_NE(path.gid_index, Path::kAnyGid);
  EXPECT_EQ(SourceOf(inventory, path), host_);
  const std::unique_ptr<Provider> set = NewSystemProvider(path);
  ASSERT_TRUE(set->Viable().ok()) << set->Viable();
  client_ = *set->Open({});
  ASSERT_NO_FATAL_FAILURE(Establish());
  EXPECT_EQ(dialled_->device()->info().name, path.device);
  EXPECT_EQ(dialled_->device()->info().gid_index, path.gid_index);
}

}  // namespace
}  // namespace leeway::van::verbs
