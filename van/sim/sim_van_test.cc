// Tests of what only the simulated network can do.
#include "van/sim/sim_van.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "van/testing/test_world.h"

namespace leeway::van {
namespace {

class SimVanTest : public testing::Test {
 protected:
  // Connects two nodes; faults begin afterwards.
  void Connect(const Limits& limits = {}) {
    server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2), limits);
    worker_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3), limits);
    address_ = server_->Listen();
    peer_ = worker_->ConnectTo(server_.get(), address_);
  }
  void SendNumbers(int count, std::size_t payload = 100) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(
          worker_->van->Send(peer_, TextMessage(absl::StrCat(i), {std::string(payload, 'x')}))
              .ok());
    }
  }
  std::vector<int> Received() const {
    std::vector<int> numbers;
    for (const auto& got : server_->recorder->messages) {
      numbers.push_back(std::stoi(std::string(got.message.header.text())));
    }
    return numbers;
  }
  SimNetwork& network() { return *world_->network(); }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(NetKind::kSim);
  std::unique_ptr<Node> server_, worker_;
  std::string address_;
  PeerId peer_ = 0;
};

TEST_F(SimVanTest, DropsAsOftenAsAsked) {
  Connect();
  LinkFaults faults;
  faults.drop_probability = 0.25;
  network().SetFaults(faults);
  SendNumbers(4000);
  world_->RunFor(absl::Seconds(30));
  const auto got = Received();
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  EXPECT_NEAR(static_cast<double>(got.size()), 3000.0, 150.0);
  EXPECT_GE(network().faulted().dropped, 4000 - got.size());
}

TEST_F(SimVanTest, RepeatsAsOftenAsAsked) {
  Connect();
  LinkFaults faults;
  faults.duplicate_probability = 0.25;
  network().SetFaults("host1", "host0", faults);
  SendNumbers(4000);
  world_->RunFor(absl::Seconds(30));
  const auto got = Received();
  EXPECT_EQ(std::set<int>(got.begin(), got.end()).size(), 4000u);
  EXPECT_NEAR(static_cast<double>(got.size()), 5000.0, 150.0);
  EXPECT_EQ(network().faulted().duplicated, got.size() - 4000);
}

TEST_F(SimVanTest, ReordersAsOftenAsAsked) {
  Connect();
  LinkFaults faults;
  faults.reorder_probability = 0.1;
  network().SetFaults(faults);
  SendNumbers(1000);
  world_->RunFor(absl::Seconds(30));
  const auto got = Received();
  EXPECT_EQ(got.size(), 1000u);
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
  EXPECT_GT(network().faulted().reordered, 50u);
}

TEST_F(SimVanTest, TheWindowDoesNotLeakUnderLoss) {
  Limits limits;
  limits.send_window_bytes = 10'000;
  Connect(limits);
  LinkFaults faults;
  faults.drop_probability = 0.2;
  faults.duplicate_probability = 0.05;
  faults.reorder_probability = 0.05;
  network().SetFaults(faults);
  SendNumbers(5000, 1000);  // five hundred windows' worth
  EXPECT_TRUE(world_->RunUntil([&] { return worker_->van->Writable(peer_); }, absl::Hours(1)));
  EXPECT_EQ(worker_->van->counters().messages_sent, 5000u);
  world_->RunFor(absl::Seconds(10));
  const auto got = Received();
  EXPECT_GT(std::set<int>(got.begin(), got.end()).size(), 3700u);
  EXPECT_TRUE(server_->recorder->downs.empty() && worker_->recorder->downs.empty());
  EXPECT_EQ(server_->van->counters().offenders_dropped, 0u);
}

TEST_F(SimVanTest, ATapHearsWhatIsSentWhateverBecomesOfIt) {
  Connect();
  LinkFaults faults;
  faults.drop_probability = faults.duplicate_probability = faults.reorder_probability = 0.3;
  network().SetFaults(faults);
  std::vector<int> heard;
  network().SetTap([&](const Overheard& message) {
    EXPECT_EQ(message.from, "host1");
    EXPECT_EQ(message.to, "host0");
    EXPECT_EQ(message.raw.payload[0].size(), 100u);
    EXPECT_EQ(message.name(), "?");
    heard.push_back(std::stoi(std::string(message.raw.header.text())));
  });
  SendNumbers(500);
  network().Cut("host1", "host0");
  SendNumbers(500);
  network().HealAll();
  world_->RunFor(absl::Seconds(30));
  ASSERT_EQ(heard.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(heard[i], i % 500);
  EXPECT_LT(Received().size(), heard.size());
}

TEST_F(SimVanTest, ConnectsThroughHeavyLoss) {
  LinkFaults faults;
  faults.drop_probability = 0.6;
  network().SetFaults(faults);
  Connect();
  EXPECT_TRUE(worker_->recorder->IsUp(peer_));
}

TEST_F(SimVanTest, ACutLosesMessagesOneWayAndNobodyNotices) {
  Connect();
  network().Cut("host1", "host0");
  SendNumbers(10);
  ASSERT_TRUE(server_->van->Send(server_->recorder->ups[0].peer, TextMessage("other way")).ok());
  world_->RunFor(absl::Seconds(30));
  EXPECT_TRUE(Received().empty());
  EXPECT_EQ(worker_->recorder->messages.size(), 1u);
  EXPECT_GE(network().faulted().cut, 10u);
  EXPECT_TRUE(server_->recorder->downs.empty() && worker_->recorder->downs.empty());
  network().HealAll();
  SendNumbers(3);
  ASSERT_TRUE(world_->RunUntil([&] { return Received().size() == 3; }));
}

TEST_F(SimVanTest, ConnectsOnceACutHasHealed) {
  server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2));
  worker_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
  address_ = server_->Listen();
  network().Cut("host0", "host1");
  peer_ = worker_->van->Connect(address_, absl::Minutes(10)).value();
  world_->RunFor(absl::Seconds(30));
  EXPECT_FALSE(worker_->recorder->IsUp(peer_));
  network().Heal("host0", "host1");
  EXPECT_TRUE(world_->RunUntil([&] { return worker_->recorder->IsUp(peer_); }));
}

TEST_F(SimVanTest, BandwidthMakesMessagesQueue) {
  Connect();
  LinkFaults faults;
  faults.bytes_per_second = 1e6;
  network().SetFaults("host1", "host0", faults);
  const absl::Time start = world_->sim()->Now();
  SendNumbers(20, 100'000);
  ASSERT_TRUE(world_->RunUntil([&] { return Received().size() == 20; }));
  EXPECT_GE(world_->sim()->Now() - start, absl::Seconds(2));
  EXPECT_LE(world_->sim()->Now() - start, absl::Seconds(2.1));
}

// Tests the formula in sim_van.h by values computed by hand. At 1 MB/s a byte takes a microsecond.
class SimNicTest : public testing::Test {
 protected:
  static constexpr std::size_t kPayload = 1000;

  // Makes hosts 0 to n - 1; all but the first are connected to it. Cards are set afterwards.
  void Connect(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, i)));
    }
    const std::string address = nodes_[0]->Listen();
    for (int i = 1; i < nodes; ++i) {
      peers_.push_back(nodes_[i]->ConnectTo(nodes_[0].get(), address));
    }
    nodes_[0]->recorder->on_message = [this](PeerId, Message) {
      arrivals_.push_back(absl::ToDoubleMicroseconds(world_->sim()->Now() - sent_));
    };
    LinkFaults link;
    link.delay_min = link.delay_max = absl::Microseconds(100);
    world_->network()->SetFaults(link);
  }
  void SetNics(double egress, double ingress) {
    world_->network()->SetNics(
        {.egress_bytes_per_second = egress, .ingress_bytes_per_second = ingress});
  }
  // Each host but the first sends `each` messages now. Returns their arrivals, in microseconds.
  std::vector<double> ArrivalsOf(int each) {
    sent_ = world_->sim()->Now();
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      for (int k = 0; k < each; ++k) {
        EXPECT_TRUE(nodes_[i + 1]
                        ->van->Send(peers_[i], TextMessage("m", {std::string(kPayload, 'x')}))
                        .ok());
      }
    }
    const std::size_t all = each * peers_.size();
    EXPECT_TRUE(world_->RunUntil([&] { return arrivals_.size() == all; }));
    return std::exchange(arrivals_, {});
  }
  // The size of one message, as the sending card counts it.
  double Bytes() {
    const SimNetwork::Traffic before = world_->network()->TrafficOf("host1");
    ArrivalsOf(1);
    const SimNetwork::Traffic after = world_->network()->TrafficOf("host1");
    EXPECT_EQ(after.frames_out - before.frames_out, 1u);
    return static_cast<double>(after.bytes_out - before.bytes_out);
  }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(NetKind::kSim);
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<PeerId> peers_;
  std::vector<double> arrivals_;
  absl::Time sent_;
};

TEST_F(SimNicTest, AMessageAloneTakesItsBytesOnceAndTheDelay) {
  Connect(2);
  const double us = Bytes();  // at 1 MB/s
  EXPECT_GE(us, kPayload);
  SetNics(1e6, 1e6);
  EXPECT_NEAR(ArrivalsOf(1)[0], us + 100, 0.1);
  SetNics(1e6, 0.5e6);  // the slower of the two
  EXPECT_NEAR(ArrivalsOf(1)[0], 2 * us + 100, 0.1);
  SetNics(0.5e6, 1e6);
  EXPECT_NEAR(ArrivalsOf(1)[0], 2 * us + 100, 0.1);
  SetNics(0, 0);
  EXPECT_NEAR(ArrivalsOf(1)[0], 100, 0.1);
}

TEST_F(SimNicTest, AHostMayHaveACardOfItsOwn) {
  Connect(3);
  const double us = Bytes();
  SetNics(10e6, 10e6);
  world_->network()->SetNic("host1", {.egress_bytes_per_second = 1e6});
  std::vector<double> at = ArrivalsOf(1);
  EXPECT_NEAR(at[0], 2 * us / 10 + 100, 0.1);  // of host2, whose first byte came second
  EXPECT_NEAR(at[1], us + 100, 0.1);
  world_->network()->SetNic("host0", {.ingress_bytes_per_second = 0.1e6});
  at = ArrivalsOf(1);
  EXPECT_NEAR(at[1] - at[0], 10 * us, 0.1);
}

TEST_F(SimNicTest, MessagesOfACardLeaveOneAfterTheOther) {
  Connect(2);
  const double us = Bytes();
  SetNics(1e6, 10e6);
  const std::vector<double> at = ArrivalsOf(3);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(at[i], (i + 1) * us + 100, 0.1);
}

TEST_F(SimNicTest, AllThatCountsIsTheCardThatReceivesWhereManySend) {
  Connect(5);
  const double us = Bytes();
  SetNics(1e6, 1e6);
  const std::vector<double> at = ArrivalsOf(2);
  // Eight messages pass one card that is never idle, whatever host sent them.
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(at[i], (i + 1) * us + 100, 0.1);
}

TEST_F(SimVanTest, AKilledHostIsNoticedAndItsAddressIsFree) {
  Connect();
  SendNumbers(3);
  network().Kill("host0");
  world_->sim()->Kill("host0");
  ASSERT_TRUE(world_->RunUntil([&] { return worker_->recorder->IsDown(peer_); }));
  EXPECT_EQ(worker_->recorder->WhyDown(peer_).code(), absl::StatusCode::kUnavailable);
  Recorder again;
  const auto factory = network().NewFactory("host0");
  const auto van = factory->New(world_->loop(1), IdentityOf(Role::kServer, 9), {}, &again);
  EXPECT_TRUE(van->Listen(address_).ok());
  const PeerId peer = worker_->van->Connect(address_, absl::Seconds(10)).value();
  EXPECT_TRUE(world_->RunUntil([&] { return worker_->recorder->IsUp(peer); }));
}

TEST_F(SimVanTest, ASenderToAClosedEndHearsOfIt) {
  Connect();
  network().Cut("host0", "host1");  // the close of the connection never arrives
  server_->van->Disconnect(server_->recorder->ups[0].peer, absl::OkStatus());
  world_->RunFor(absl::Seconds(5));
  EXPECT_FALSE(worker_->recorder->IsDown(peer_));
  network().HealAll();
  SendNumbers(1);
  EXPECT_TRUE(world_->RunUntil([&] { return worker_->recorder->IsDown(peer_); }));
}

// The trace of a run with all faults at once.
std::string TraceOf(std::uint64_t seed) {
  runtime::SimWorld world(seed);
  world.KeepTrace(true);
  SimNetwork network(&world);
  LinkFaults faults;
  faults.delay_max = absl::Milliseconds(3);
  faults.bytes_per_second = 1e7;
  faults.drop_probability = faults.duplicate_probability = faults.reorder_probability = 0.1;
  network.SetFaults(faults);
  std::vector<std::unique_ptr<runtime::Host>> hosts;
  std::vector<std::unique_ptr<runtime::LoopRunner>> runners;
  std::vector<std::unique_ptr<Recorder>> recorders;
  std::vector<std::unique_ptr<Van>> vans;
  std::vector<PeerId> peers;
  std::string address;
  for (int i = 0; i < 5; ++i) {
    const std::string name = absl::StrCat("h", i);
    hosts.push_back(world.NewHost(name));
    runners.push_back(hosts[i]->Spawn("loop"));
    recorders.push_back(std::make_unique<Recorder>());
    const auto factory = network.NewFactory(name);
    vans.push_back(
        factory->New(runners[i]->loop(), IdentityOf(Role::kWorker, i), {}, recorders[i].get()));
    if (i == 0) address = vans[0]->Listen(factory->AnyAddress("")).value();
    if (i > 0) peers.push_back(vans[i]->Connect(address, absl::Seconds(60)).value());
  }
  recorders[0]->on_message = [&](PeerId peer, Message message) {
    (void)vans[0]->Send(peer, std::move(message));
  };
  for (int i = 0; i < 100; ++i) {
    (void)vans[1 + i % 4]->Send(peers[i % 4], TextMessage("m", {std::string(i * 10, 'x')}));
  }
  world.RunFor(absl::Seconds(2));
  network.Cut("h1", "h0");
  network.Kill("h2");
  world.Kill("h2");
  world.RunFor(absl::Seconds(2));
  const std::string trace = world.trace();
  vans.clear();
  return trace;
}

TEST(SimVanTrace, TheSameSeedGivesTheSameTraceByteForByte) {
  const std::string first = TraceOf(1);
  EXPECT_GT(first.size(), 5'000u);
  EXPECT_NE(first.find("Hello"), std::string::npos);
  EXPECT_TRUE(first == TraceOf(1));
  EXPECT_FALSE(first == TraceOf(2));
}

}  // namespace
}  // namespace leeway::van
