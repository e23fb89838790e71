// A server that sends back what it gets, and a friend of it that must never notice what others do.
#ifndef LEEWAY_VAN_SERVER_AND_FRIEND_H_
#define LEEWAY_VAN_SERVER_AND_FRIEND_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "van/test_world.h"

namespace leeway::van {

// For fixtures to derive from.
class ServerAndFriend {
 protected:
  explicit ServerAndFriend(NetKind net) : world_(TestWorld::New(net)) {}

  void StartServer(const Limits& limits = {},
                   const Identity& identity = IdentityOf(Role::kServer, 2)) {
    friend_.reset();
    server_ = std::make_unique<Node>(world_.get(), identity, limits);
    server_->recorder->on_message = [this](PeerId peer, Message message) {
      EXPECT_TRUE(server_->van->Send(peer, std::move(message)).ok());
    };
    address_ = server_->Listen();
    friend_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
    friend_peer_ = friend_->ConnectTo(server_.get(), address_);
  }
  bool RunUntil(const std::function<bool()>& done) { return world_->RunUntil(done); }
  // The peer that was there all the while is served as before.
  void ExpectFriendUnharmed(const std::vector<std::string>& payload = {std::string(10'000, 'x')}) {
    const std::size_t before = friend_->recorder->messages.size();
    ASSERT_TRUE(friend_->van->Send(friend_peer_, TextMessage("still there?", payload)).ok());
    EXPECT_TRUE(RunUntil([&] { return friend_->recorder->messages.size() == before + 1; }));
    EXPECT_TRUE(friend_->recorder->downs.empty());
    EXPECT_EQ(friend_->van->counters().offenders_dropped, 0u);
  }

  const std::unique_ptr<TestWorld> world_;
  std::unique_ptr<Node> server_, friend_;
  std::string address_;
  PeerId friend_peer_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SERVER_AND_FRIEND_H_
