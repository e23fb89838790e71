// Which way a connection goes.
#include "van/mixed/mixed_van.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/address.h"
#include "runtime/real_loop.h"
#include "van/mixed/mixed_transport.h"
#include "van/test_world.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Config With(const std::string& van) {
  Config config;
  config.van = van;
  return config;
}

class MixedVanTest : public testing::Test {
 protected:
  struct Process {
    explicit Process(std::unique_ptr<Factory> f, Role role)
        : factory(std::move(f)), van(factory->New(&loop, IdentityOf(role, 2), {}, &recorder)) {}
    runtime::RealLoop loop{1};
    Recorder recorder;
    std::unique_ptr<Factory> factory;
    std::unique_ptr<Van> van;
  };

  bool RunUntil(const std::function<bool()>& done) {
    const absl::Time until = server_->loop.Now() + absl::Seconds(60);
    while (!done() && server_->loop.Now() < until) {
      server_->loop.RunReady();
      worker_->loop.RunReady();
    }
    return done();
  }
  // Where the server sees the worker come from.
  std::string Connect(std::unique_ptr<Factory> server, std::unique_ptr<Factory> worker,
                      const std::string& listen = "tcp://127.0.0.1:0") {
    server_ = std::make_unique<Process>(std::move(server), Role::kServer);
    worker_ = std::make_unique<Process>(std::move(worker), Role::kWorker);
    address_ = server_->van->Listen(listen).value();
    peer_ = worker_->van->Connect(address_, absl::Seconds(30)).value();
    EXPECT_TRUE(RunUntil([&] {
      return worker_->recorder.IsDown(peer_) ||
             (worker_->recorder.IsUp(peer_) && !server_->recorder.ups.empty());
    }));
    if (server_->recorder.ups.empty()) return "";
    EXPECT_EQ(worker_->van->AddressOf(peer_), address_);
    return server_->van->AddressOf(server_->recorder.ups[0].peer);
  }

  std::unique_ptr<Process> server_, worker_;
  std::string address_;
  PeerId peer_ = 0;
};

TEST_F(MixedVanTest, SharesMemoryWithinAMachine) {
  EXPECT_THAT(Connect(NewFactory(With("auto")), NewFactory(With("auto"))), StartsWith("shm://"));
  EXPECT_THAT(address_, StartsWith("tcp://127.0.0.1:"));
  EXPECT_THAT(Connect(NewFactory(With("auto")), NewFactory(With("auto")), "tcp://*:0"),
              StartsWith("shm://"));
  EXPECT_THAT(Connect(NewFactory(With("shm")), NewFactory(With("shm"))), StartsWith("shm://"));
  EXPECT_THAT(Connect(NewFactory(With("auto")), NewFactory(With("shm"))), StartsWith("shm://"));
}

TEST_F(MixedVanTest, NotIfEitherSideIsTold) {
  EXPECT_THAT(Connect(NewFactory(With("tcp")), NewFactory(With("auto"))), StartsWith("tcp://"));
  EXPECT_THAT(Connect(NewFactory(With("auto")), NewFactory(With("tcp"))), StartsWith("tcp://"));
  // Tools, for example.
  EXPECT_THAT(Connect(NewFactory(With("shm")), NewToolFactory(With("shm"))), StartsWith("tcp://"));
}

TEST_F(MixedVanTest, ZeroMqIsForThoseWhoAskForIt) {
  EXPECT_THAT(Connect(NewFactory(With("zmq")), NewFactory(With("zmq"))), StartsWith("tcp://"));
  EXPECT_THAT(Connect(NewFactory(With("zmq")), NewToolFactory(With("zmq"))), StartsWith("tcp://"));
}

TEST_F(MixedVanTest, WhoSpeaksAnotherProtocolOverTcpIsToldWhatToChange) {
  for (const auto& [server, worker] : {std::pair("zmq", "tcp"), std::pair("tcp", "zmq")}) {
    server_ = std::make_unique<Process>(NewFactory(With(server)), Role::kServer);
    worker_ = std::make_unique<Process>(NewFactory(With(worker)), Role::kWorker);
    const std::string address = server_->van->Listen("tcp://127.0.0.1:0").value();
    const PeerId peer = worker_->van->Connect(address, absl::Seconds(1)).value();
    ASSERT_TRUE(RunUntil([&] { return worker_->recorder.IsDown(peer); }));
    EXPECT_THAT(std::string(worker_->recorder.WhyDown(peer).message()), HasSubstr("LEEWAY_VAN"));
    EXPECT_TRUE(server_->recorder.ups.empty());
    EXPECT_GT(server_->van->counters().handshakes_failed, 0u);
  }
}

TEST_F(MixedVanTest, ShmOnlySaysWhyItCannot) {
  server_ = std::make_unique<Process>(NewFactory(With("tcp")), Role::kServer);
  worker_ = std::make_unique<Process>(NewFactory(With("shm")), Role::kWorker);
  for (const std::string& address :
       {server_->van->Listen("tcp://127.0.0.1:0").value(), std::string("tcp://192.0.2.1:4000")}) {
    const PeerId peer = worker_->van->Connect(address, absl::Milliseconds(200)).value();
    ASSERT_TRUE(RunUntil([&] { return worker_->recorder.IsDown(peer); }));
    EXPECT_THAT(std::string(worker_->recorder.WhyDown(peer).message()), HasSubstr("LEEWAY_VAN"));
  }
  EXPECT_TRUE(server_->recorder.ups.empty());
}

// Whoever has the name but does not speak the protocol cannot keep processes apart.
TEST_F(MixedVanTest, FallsBackWhereTheNameLeadsNowhere) {
  server_ = std::make_unique<Process>(NewFactory(With("tcp")), Role::kServer);
  worker_ = std::make_unique<Process>(NewFactory(With("auto")), Role::kWorker);
  const std::string address = server_->van->Listen("tcp://127.0.0.1:0").value();
  const auto port = static_cast<std::uint16_t>(runtime::PortOf(address));
  const UniqueFd squatter = ListenOnShmName(ShmNameFor("127.0.0.1", port)).value();
  const PeerId peer = worker_->van->Connect(address, absl::Seconds(30)).value();
  ASSERT_TRUE(worker_->van->Send(peer, TextMessage("kept")).ok());
  ASSERT_TRUE(RunUntil([&] {
    bool none = false;
    AcceptShm(squatter.get(), &none);  // and closed at once
    return server_->recorder.messages.size() == 1;
  }));
  EXPECT_THAT(server_->van->AddressOf(server_->recorder.ups[0].peer), StartsWith("tcp://"));
}

TEST_F(MixedVanTest, AListenerWhoseNameIsTakenStillListens) {
  server_ = std::make_unique<Process>(NewFactory(With("auto")), Role::kServer);
  worker_ = std::make_unique<Process>(NewFactory(With("auto")), Role::kWorker);
  const std::string free = worker_->van->Listen("tcp://127.0.0.1:0").value();
  const auto port = static_cast<std::uint16_t>(runtime::PortOf(free));
  worker_ = std::make_unique<Process>(NewFactory(With("auto")), Role::kWorker);
  const UniqueFd squatter = ListenOnShmName(ShmNameFor("127.0.0.1", port)).value();
  EXPECT_EQ(server_->van->Listen(free).value(), free);
}

TEST(MixedHosts, OnlyOwnAddressesAreTried) {
  EXPECT_TRUE(IsOwnHost("127.0.0.1"));
  EXPECT_TRUE(IsOwnHost("127.1.2.3"));
  EXPECT_FALSE(IsOwnHost("192.0.2.1"));
  EXPECT_FALSE(IsOwnHost("[2001:db8::1]"));
  EXPECT_FALSE(IsOwnHost("::ffff:192.0.2.1"));
  EXPECT_FALSE(IsOwnHost("nonsense"));
  EXPECT_EQ(ShmNameFor("", 80), "tcp/any:80");
  EXPECT_EQ(ShmNameFor("0.0.0.0", 80), "tcp/any:80");
  EXPECT_EQ(ShmNameFor("[::]", 80), "tcp/any:80");
  EXPECT_EQ(ShmNameFor("10.0.0.7", 80), "tcp/10.0.0.7:80");
}

}  // namespace
}  // namespace leeway::van
