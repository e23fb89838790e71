// Tests of the way that a connection takes.
#include "van/mixed/mixed_van.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/config/address.h"
#include "runtime/loop/real_loop.h"
#include "van/mixed/mixed_transport.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/testing/fake_verbs.h"
#include "van/session/session_van.h"
#include "van/testing/test_world.h"

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
        : factory(std::move(f)), van(factory->New(&loop, IdentityOf(role, 2), {}, &recorder)) {
      recorder.admits = van.get();
    }
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
  // Connects, and returns the worker's address as the server sees it.
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
  // For example tools.
  EXPECT_THAT(Connect(NewFactory(With("shm")), NewToolFactory(With("shm"))), StartsWith("tcp://"));
}

TEST_F(MixedVanTest, ZeroMqIsForThoseWhoAskForIt) {
  EXPECT_THAT(Connect(NewFactory(With("zmq")), NewFactory(With("zmq"))), StartsWith("tcp://"));
  EXPECT_THAT(Connect(NewFactory(With("zmq")), NewToolFactory(With("zmq"))), StartsWith("tcp://"));
}

TEST_F(MixedVanTest, APeerOfAnotherProtocolOverTcpIsToldWhatToChange) {
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

// A process that has the name but does not speak the protocol cannot prevent a connection.
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
    AcceptShm(squatter.get(), &none);  // closed at once
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

// ---- rdma in the place of TCP ----

class MixedRdmaTest : public testing::Test {
 protected:
  struct Process {
    Process(verbs::Provider* provider, Role role)
        : transport(new MixedTransport(
              &loop, std::make_unique<TcpTransport>(&loop, Limits()), nullptr,
              provider == nullptr ? nullptr
                                  : NewRdmaTransport(provider, &loop, Limits(), RdmaSizes()),
              MixedTransport::Only::kAny)),
          van(std::make_unique<SessionVan>(&loop, IdentityOf(role, 2), Limits(), &recorder,
                                           std::unique_ptr<Transport>(transport))) {
      recorder.admits = van.get();
    }
    runtime::RealLoop loop{1};
    Recorder recorder;
    MixedTransport* const transport;
    std::unique_ptr<Van> van;
  };

  bool RunUntil(const std::function<bool()>& done) {
    const absl::Time until = server_->loop.Now() + absl::Seconds(20);
    while (!done() && server_->loop.Now() < until) {
      server_->loop.RunReady();
      worker_->loop.RunReady();
    }
    return done();
  }
  void Start(bool server_has_it, bool worker_has_it) {
    server_ = std::make_unique<Process>(server_has_it ? provider_.get() : nullptr, Role::kServer);
    worker_ = std::make_unique<Process>(worker_has_it ? provider_.get() : nullptr, Role::kWorker);
    address_ = server_->van->Listen("tcp://127.0.0.1:0").value();
    Connect();
  }
  void Connect() {
    peer_ = worker_->van->Connect(address_, absl::Seconds(15)).value();
    ASSERT_TRUE(RunUntil([&] { return worker_->recorder.IsUp(peer_); }));
    ASSERT_TRUE(RunUntil([&] { return !server_->recorder.ups.empty(); }));
  }
  std::string SeenFrom() { return server_->van->AddressOf(server_->recorder.ups.back().peer); }
  void ExpectMessagesPass() {
    const std::size_t before = server_->recorder.messages.size();
    const std::string large(300'000, 'l');
    ASSERT_TRUE(worker_->van->Send(peer_, TextMessage("m", {large})).ok());
    ASSERT_TRUE(RunUntil([&] { return server_->recorder.messages.size() == before + 1; }));
    EXPECT_TRUE(server_->recorder.messages.back().message.payload[0].text() == large);
  }

  verbs::FakeFabric fabric_;
  std::unique_ptr<verbs::Provider> provider_ = verbs::NewFakeProvider(fabric_);
  std::unique_ptr<Process> server_, worker_;
  std::string address_;
  PeerId peer_ = 0;
};

TEST_F(MixedRdmaTest, RdmaIsUsedWhereBothSidesHaveADevice) {
  Start(true, true);
  EXPECT_THAT(SeenFrom(), StartsWith("rdma://"));
  ExpectMessagesPass();
  EXPECT_GE(fabric_.counters().written_bytes, 300'000u);
  // The TCP connection only served to ask.
  ASSERT_TRUE(RunUntil([&] { return server_->recorder.ups.size() == 1; }));
}

TEST_F(MixedRdmaTest, TcpIsUsedWhereOneSideHasNone) {
  Start(true, false);
  EXPECT_THAT(SeenFrom(), StartsWith("tcp://"));
  ExpectMessagesPass();
  Start(false, true);
  EXPECT_THAT(SeenFrom(), StartsWith("tcp://"));
  ExpectMessagesPass();
}

TEST_F(MixedRdmaTest, TcpIsUsedWhereRdmaComesToNothing) {
  verbs::FakeFaults faults;
  faults.refuse_dial_rate = 1;
  fabric_.SetFaults(faults);
  Start(true, true);
  EXPECT_THAT(SeenFrom(), StartsWith("tcp://"));
  ExpectMessagesPass();
}

TEST_F(MixedRdmaTest, TcpIsUsedAfterADeviceWasLost) {
  Start(true, true);
  EXPECT_THAT(SeenFrom(), StartsWith("rdma://"));
  fabric_.LoseDevices();
  ASSERT_TRUE(RunUntil(
      [&] { return worker_->recorder.IsDown(peer_) && server_->recorder.downs.size() == 1; }));
  Connect();
  EXPECT_THAT(SeenFrom(), StartsWith("tcp://"));
  ExpectMessagesPass();
}

TEST(MixedVan, RdmaWithoutADeviceSaysWhy) {
  const std::unique_ptr<Factory> factory = NewFactory(With("rdma"));
  const absl::Status viable = factory->Viable();
  if (viable.ok()) GTEST_SKIP() << "this machine has an rdma device";
  EXPECT_THAT(std::string(viable.message()), StartsWith("LEEWAY_VAN is \"rdma\", but "));
  EXPECT_THAT(std::string(viable.message()), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace leeway::van
