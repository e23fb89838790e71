// A server, a friend of it that must never notice anything, and raw peers that misbehave.
#ifndef LEEWAY_VAN_ERRORS_FIXTURE_H_
#define LEEWAY_VAN_ERRORS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "van/test_world.h"

namespace leeway::van {

class VanErrorsTest : public testing::TestWithParam<NetKind> {
 protected:
  void StartServer(const Limits& limits = {}) {
    Identity identity = IdentityOf(Role::kServer, 2);
    identity.cluster = 0xc1;
    server_ = std::make_unique<Node>(world_.get(), identity, limits);
    server_->recorder->on_message = [this](PeerId peer, Message message) {
      EXPECT_TRUE(server_->van->Send(peer, std::move(message)).ok());
    };
    address_ = server_->Listen();
    friend_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
    friend_peer_ = friend_->ConnectTo(server_.get(), address_);
  }
  RawPeer NewRaw() {
    const int process = world_->NewProcess();
    return RawPeer(world_->NewTransport(process, {}));
  }
  proto::Hello GoodHello() {
    proto::Hello hello;
    hello.role = Role::kWorker;
    hello.node = 99;
    hello.incarnation = 1;
    return hello;
  }
  bool RunUntil(const std::function<bool()>& done) { return world_->RunUntil(done); }
  // The peer that was there all the while is served as before.
  void ExpectFriendUnharmed() {
    const std::size_t before = friend_->recorder->messages.size();
    ASSERT_TRUE(friend_->van->Send(friend_peer_, TextMessage("still there?")).ok());
    EXPECT_TRUE(RunUntil([&] { return friend_->recorder->messages.size() == before + 1; }));
    EXPECT_TRUE(friend_->recorder->downs.empty());
    EXPECT_EQ(friend_->van->counters().offenders_dropped, 0u);
  }
  // The offender hears why and is cut off if it does not go by itself.
  void ExpectBanned(RawPeer* raw, absl::StatusCode code, const std::string& why) {
    ASSERT_TRUE(RunUntil([&] { return !raw->Rejection().ok(); }));
    EXPECT_EQ(raw->Rejection().code(), code) << raw->Rejection();
    EXPECT_THAT(std::string(raw->Rejection().message()), testing::HasSubstr(why));
    if (GetParam() != NetKind::kInproc) {
      EXPECT_TRUE(RunUntil([&] { return !raw->closed.empty(); }));
    }
    ExpectFriendUnharmed();
  }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(GetParam());
  std::unique_ptr<Node> server_, friend_;
  std::string address_;
  PeerId friend_peer_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ERRORS_FIXTURE_H_
