// ServerAndClient is a base of fixtures: a server that returns each message, and a client of it
// that must not be affected by other peers.
#ifndef LEEWAY_VAN_TESTING_SERVER_AND_CLIENT_H_
#define LEEWAY_VAN_TESTING_SERVER_AND_CLIENT_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/thread_cpu_time.h"
#include "van/testing/test_world.h"

namespace leeway::van {

// Fixtures derive from it.
class ServerAndClient {
 protected:
  explicit ServerAndClient(NetKind net) : world_(TestWorld::New(net)) {}

  void StartServer(const Limits& limits = {},
                   const Identity& identity = IdentityOf(Role::kServer, 2)) {
    client_.reset();
    server_ = std::make_unique<Node>(world_.get(), identity, limits);
    server_->recorder->on_message = [this](PeerId peer, Message message) {
      EXPECT_TRUE(server_->van->Send(peer, std::move(message)).ok());
    };
    address_ = server_->Listen();
    client_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
    client_peer_ = client_->ConnectTo(server_.get(), address_);
  }
  bool RunUntil(const std::function<bool()>& done) { return world_->RunUntil(done); }
  // Expects that the client is served as before.
  void ExpectClientUnharmed(const std::vector<std::string>& payload = {std::string(10'000, 'x')}) {
    const std::size_t before = client_->recorder->messages.size();
    ASSERT_TRUE(client_->van->Send(client_peer_, TextMessage("still there?", payload)).ok());
    EXPECT_TRUE(RunUntil([&] { return client_->recorder->messages.size() == before + 1; }));
    EXPECT_TRUE(client_->recorder->downs.empty());
    EXPECT_EQ(client_->van->counters().offenders_dropped, 0u);
  }
  // From now on each message takes that much of the server's time, except those of the client.
  void MakeMessagesCost(absl::Duration work) {
    client_at_server_ = server_->recorder->ups.at(0).peer;
    server_->recorder->on_message = [this, work](PeerId peer, Message message) {
      if (peer != client_at_server_) {
        const absl::Duration begin = runtime::ThreadCpuTime();
        while (runtime::ThreadCpuTime() - begin < work) {
        }
        ++handled_;
        worked_ += runtime::ThreadCpuTime() - begin;
      }
      server_->van->Send(peer, std::move(message)).IgnoreError();
    };
  }

  const std::unique_ptr<TestWorld> world_;
  std::unique_ptr<Node> server_, client_;
  std::string address_;
  PeerId client_peer_ = 0;
  PeerId client_at_server_ = 0;
  int handled_ = 0;        // messages that took that time
  absl::Duration worked_;  // time for these
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_SERVER_AND_CLIENT_H_
