// Tests of peers that violate the protocol: each is told, dropped and counted, and no other peer is
// affected; over every transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "van/testing/errors_fixture.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

class VanOffencesTest : public VanErrorsTest {};

// ---- hello ----

TEST_P(VanOffencesTest, AWrongProtocolVersionIsRefused) {
  StartServer();
  RawPeer raw = NewRaw();
  proto::Hello hello = GoodHello();
  hello.protocol = 99;
  hello.protocol_min = 98;
  raw.Greet(world_.get(), address_, hello);
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "protocol version 99");
  EXPECT_THAT(std::string(raw.Rejection().message()),
              HasSubstr(absl::StrCat("version ", proto::kProtocolVersion, " ")));
  EXPECT_EQ(server_->van->counters().refused_versions, 1u);
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
}

TEST_P(VanOffencesTest, ANewerVersionThatUnderstandsOursIsWelcome) {
  StartServer();
  RawPeer raw = NewRaw();
  proto::Hello hello = GoodHello();
  hello.protocol = 99;
  hello.protocol_min = proto::kProtocolVersion;
  raw.Greet(world_.get(), address_, hello);
  EXPECT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 2; }));
}

TEST_P(VanOffencesTest, TheSideThatDialsRefusesAWrongVersionToo) {
  const int process = world_->NewProcess();
  RawPeer raw(world_->NewTransport(process, {}));
  const std::string address = raw.transport().Listen(world_->AnyAddress(process)).value();
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId peer = worker.van->Connect(address, absl::Seconds(30)).value();
  ASSERT_TRUE(RunUntil([&] { return !raw.heard.empty(); }));
  proto::Hello hello = GoodHello();
  hello.protocol = hello.protocol_min = proto::kProtocolVersion + 1;
  raw.SendSession(raw.accepted.at(0), hello);
  ASSERT_TRUE(RunUntil([&] { return worker.recorder->IsDown(peer); }));
  EXPECT_EQ(worker.recorder->WhyDown(peer).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()),
              HasSubstr(absl::StrCat("version ", proto::kProtocolVersion + 1)));
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()), HasSubstr(address));
  EXPECT_TRUE(RunUntil([&] { return !raw.Rejection().ok(); }));
  EXPECT_EQ(worker.van->counters().refused_versions, 1u);
}

TEST_P(VanOffencesTest, AnotherClusterIsRefused) {
  StartServer();
  RawPeer raw = NewRaw();
  proto::Hello hello = GoodHello();
  hello.cluster = 0xc2;
  raw.Greet(world_.get(), address_, hello);
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "cluster");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
}

TEST_P(VanOffencesTest, AMessageBeforeTheHelloIsAnOffence) {
  StartServer();
  RawPeer raw = NewRaw();
  const ConnId conn = raw.transport().Dial(address_).value();
  ASSERT_TRUE(RunUntil([&] { return !raw.opened.empty(); }));
  raw.SendData(conn, "hello? no");
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "before its hello");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  EXPECT_EQ(server_->van->counters().malformed_messages, 1u);
  EXPECT_EQ(server_->recorder->ups.size(), 1u);
}

TEST_P(VanOffencesTest, ARepeatedHelloIsAnsweredAgain) {
  StartServer();
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  raw.SendSession(conn, GoodHello());
  ASSERT_TRUE(RunUntil([&] { return raw.heard.size() == 2; }));
  EXPECT_TRUE(std::holds_alternative<proto::Hello>(raw.heard[1]));
  EXPECT_EQ(server_->recorder->ups.size(), 2u);
}

TEST_P(VanOffencesTest, ASecondDifferentHelloIsAnOffence) {
  StartServer();
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  proto::Hello other = GoodHello();
  other.node = 98;
  raw.SendSession(conn, other);
  ExpectBanned(&raw, absl::StatusCode::kFailedPrecondition, "second");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  ASSERT_EQ(server_->recorder->downs.size(), 1u);
  EXPECT_FALSE(server_->recorder->downs[0].why.ok());
}

TEST_P(VanOffencesTest, SilenceIsCutOff) {
  Limits limits;
  // The client has the same limit, and on a busy machine takes some time to say hello.
  limits.hello_timeout = absl::Seconds(1);
  StartServer(limits);
  // There a connection is not seen before its first message.
  if (GetParam() == NetKind::kInproc) return;
  RawPeer raw = NewRaw();
  ASSERT_TRUE(raw.transport().Dial(address_).ok());
  ASSERT_TRUE(RunUntil([&] { return !raw.closed.empty(); }));
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  ExpectClientUnharmed();
}

TEST_P(VanOffencesTest, NoMorePeersThanAllowed) {
  Limits limits;
  limits.peers_max = 3;
  StartServer(limits);
  if (GetParam() == NetKind::kInproc) return;
  RawPeer a = NewRaw(), b = NewRaw(), c = NewRaw();
  a.Greet(world_.get(), address_, GoodHello());
  b.Greet(world_.get(), address_, GoodHello());
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 3; }));
  const auto dialled = c.transport().Dial(address_);
  ASSERT_TRUE(dialled.ok());
  ASSERT_TRUE(RunUntil([&] { return !c.closed.empty() || !c.opened.empty(); }));
  if (c.closed.empty()) c.SendSession(*dialled, GoodHello());
  ASSERT_TRUE(RunUntil([&] { return !c.closed.empty() || server_->recorder->ups.size() > 3; }));
  EXPECT_EQ(server_->recorder->ups.size(), 3u);
  EXPECT_TRUE(a.closed.empty() && b.closed.empty());
  ExpectClientUnharmed();
  a.transport().Close(a.opened.at(0));  // makes room for another one
  RawPeer d = NewRaw();
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->downs.size() == 1; }));
  d.Greet(world_.get(), address_, GoodHello());
  EXPECT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 4; }));
}

// ---- malformed messages ----

TEST_P(VanOffencesTest, TooLongAFrameIsAnOffence) {
  Limits limits;
  limits.message_bytes_max = 1000;
  StartServer(limits);
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  raw.SendData(conn, "fits", {Buffer::CopyOf(std::string(1000, 'x'))});
  ASSERT_TRUE(RunUntil([&] { return server_->van->counters().messages_received == 1; }));
  raw.SendData(conn, "does not", {Buffer::CopyOf(std::string(1001, 'x'))});
  ExpectBanned(&raw, absl::StatusCode::kInvalidArgument, "LEEWAY_MESSAGE_BYTES_MAX");
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
}

TEST_P(VanOffencesTest, TooManyFramesAreAnOffence) {
  Limits limits;
  limits.payload_frames_max = 2;
  StartServer(limits);
  RawPeer raw = NewRaw();
  const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
  raw.SendData(conn, "m", std::vector<Buffer>(2, Buffer::CopyOf("x")));
  ASSERT_TRUE(RunUntil([&] { return server_->van->counters().messages_received == 1; }));
  raw.SendData(conn, "m", std::vector<Buffer>(3, Buffer::CopyOf("x")));
  ExpectBanned(&raw, absl::StatusCode::kInvalidArgument, "frames");
}

TEST_P(VanOffencesTest, EveryMalformedMessageIsAnOffence) {
  StartServer();
  struct Case {
    const char* why;
    Prefix prefix;
    Message message;
  };
  std::vector<Case> cases;
  cases.push_back({"unknown kind", {static_cast<Kind>(99), 0, 1, 0, 0}, TextMessage("m")});
  cases.push_back({"unknown kind", {static_cast<Kind>(0), 0, 1, 0, 0}, TextMessage("m")});
  cases.push_back({"frames", {Kind::kData, 0, 2, 0, 0}, TextMessage("m")});
  cases.push_back({"frames", {Kind::kData, 0, 0, 0, 0}, TextMessage("m")});
  cases.push_back({"frames", {Kind::kData, 0, 1, 0, 0}, TextMessage("m", {"payload"})});
  cases.push_back({"claims", {Kind::kData, 0, 1, 0, 1}, TextMessage("m")});
  cases.push_back({"claims", {Kind::kCredit, 0, 1, 0, ~0ull}, Message()});
  cases.push_back({"credit", {Kind::kCredit, 0, 1, 0, 0}, TextMessage("m")});
  cases.push_back({"envelope", {Kind::kEnvelope, 0, 1, 0, 0}, TextMessage("")});
  cases.push_back({"envelope", {Kind::kEnvelope, 0, 1, 0, 0}, TextMessage("m")});
  cases.push_back({"envelope", {Kind::kEnvelope, 0, 1, 0, 0}, TextMessage(std::string(8, 'x'))});
  cases.push_back({"control", {Kind::kEnvelope, 0, 2, 0, 0}, TextMessage("m", {"payload"})});
  cases.push_back({"control", {Kind::kSession, 0, 2, 0, 0}, TextMessage("m", {"payload"})});
  cases.push_back({"", {Kind::kSession, 0, 1, 0, 0}, TextMessage("no such header at all")});
  cases.push_back({"", {Kind::kSession, 0, 1, 0, 0}, TextMessage("")});
  std::uint64_t offenders = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    RawPeer raw = NewRaw();
    const ConnId conn = raw.Greet(world_.get(), address_, GoodHello());
    raw.transport().Send(conn, c.prefix, c.message, nullptr);
    ASSERT_TRUE(RunUntil([&] { return !raw.Rejection().ok(); }));
    EXPECT_THAT(std::string(raw.Rejection().message()), HasSubstr(c.why));
    EXPECT_EQ(server_->van->counters().malformed_messages, ++offenders);
    EXPECT_EQ(server_->van->counters().offenders_dropped, offenders);
    // Later messages, even valid ones, are ignored.
    raw.SendData(conn, "please");
    world_->RunFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(server_->van->counters().messages_received, 0u);
  ExpectClientUnharmed();
}

TEST_P(VanOffencesTest, AnOffenderTheRoleFindsIsToldWhy) {
  StartServer();
  Node worker(world_.get(), IdentityOf(Role::kWorker, 4));
  const PeerId peer = worker.ConnectTo(server_.get(), address_);
  const PeerId offender = server_->recorder->ups.back().peer;
  server_->recorder->in_van_call = true;
  server_->van->Disconnect(offender, absl::InvalidArgumentError("table 7 has no such key"));
  server_->van->Disconnect(offender, absl::OkStatus());  // the peer does not exist any more
  server_->recorder->in_van_call = false;
  ASSERT_TRUE(RunUntil(
      [&] { return worker.recorder->IsDown(peer) && server_->recorder->IsDown(offender); }));
  EXPECT_EQ(worker.recorder->WhyDown(peer).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(worker.recorder->WhyDown(peer).message()),
              HasSubstr("table 7 has no such key"));
  EXPECT_EQ(server_->recorder->WhyDown(offender).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server_->van->counters().offenders_dropped, 1u);
  ExpectClientUnharmed();
}

INSTANTIATE_TEST_SUITE_P(Nets, VanOffencesTest, testing::ValuesIn(kAllNets),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
