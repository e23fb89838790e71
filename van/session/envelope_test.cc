#include "van/session/envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/limits.h"
#include "runtime/base/random.h"
#include "van/little_endian.h"
#include "van/testing/test_world.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string BodyOf(const std::vector<Message>& messages) {
  Envelope envelope;
  for (const Message& message : messages) envelope.Add(message);
  return std::string(envelope.Take().text());
}

std::string WhyNot(const std::string& body, const Limits& limits = {}) {
  const auto opened = OpenEnvelope(BytesOf(body), limits);
  if (opened.ok()) return "it opens";
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(opened.status().message());
}

TEST(EnvelopeTest, MessagesComeOutAsTheyWentIn) {
  const std::vector<Message> in = {TextMessage("header", {"pay", "", std::string(3000, 'l')}),
                                   TextMessage(""), TextMessage("12345678", {"12345678"}),
                                   TextMessage("x", {"", "y"})};
  const auto out = OpenEnvelope(BytesOf(BodyOf(in)), Limits());
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->size(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ((*out)[i].header.text(), in[i].header.text());
    ASSERT_EQ((*out)[i].payload.size(), in[i].payload.size());
    EXPECT_TRUE((*out)[i].header.aligned_to(8));
    for (std::size_t j = 0; j < in[i].payload.size(); ++j) {
      EXPECT_EQ((*out)[i].payload[j].text(), in[i].payload[j].text());
      EXPECT_TRUE((*out)[i].payload[j].aligned_to(8));
    }
  }
}

TEST(EnvelopeTest, AMessageOutlivesTheOthers) {
  Buffer kept;
  {
    auto out = OpenEnvelope(BytesOf(BodyOf({TextMessage("a"), TextMessage("b", {"c"})})), Limits());
    ASSERT_TRUE(out.ok());
    kept = (*out)[1].payload[0];
  }
  EXPECT_EQ(kept.text(), "c");
}

TEST(EnvelopeTest, LargeMessagesTravelByThemselves) {
  const Envelope envelope;
  EXPECT_NE(envelope.SizeWith(TextMessage("m", {std::string(4000, 'x')})), Envelope::kNever);
  EXPECT_EQ(envelope.SizeWith(TextMessage("m", {std::string(4096, 'x')})), Envelope::kNever);
}

TEST(EnvelopeTest, AFullOneIsWithinTheLimits) {
  for (const std::size_t size : {0, 1, 64, 1000, 4000}) {
    Envelope envelope;
    const Message message = TextMessage("m", {std::string(size, 'x')});
    std::size_t count = 0;
    for (; !envelope.full(); ++count) envelope.Add(message);
    const auto opened = OpenEnvelope(envelope.Take().bytes(), Limits());
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->size(), count);
    EXPECT_TRUE(envelope.empty());
  }
}

TEST(EnvelopeTest, BrokenEnvelopesAreRefused) {
  const std::string whole = BodyOf({TextMessage("header", {"payload"}), TextMessage("m")});
  EXPECT_THAT(WhyNot(""), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(WhyNot(std::string(proto::kEnvelopeBytesMax + 8, '\0')),
              HasSubstr("bytes, may have"));
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == 32) continue;  // just the first of the two
    EXPECT_THAT(WhyNot(whole.substr(0, size)), HasSubstr("ends within")) << size;
  }
  std::string odd = whole;
  odd[6] = 1;
  EXPECT_THAT(WhyNot(odd), HasSubstr("must be zero"));
  std::string longer = whole;
  Put(~std::uint32_t{0}, reinterpret_cast<std::byte*>(longer.data()));
  EXPECT_THAT(WhyNot(longer), HasSubstr("ends within"));
}

TEST(EnvelopeTest, TooMuchIsRefused) {
  const std::string one = BodyOf({TextMessage("", {})});
  std::string many;
  for (std::size_t i = 0; i < proto::kEnvelopeMessagesMax; ++i) many += one;
  EXPECT_EQ(WhyNot(many), "it opens");
  EXPECT_THAT(WhyNot(many + one), HasSubstr("more than 256 messages"));
  Limits limits;
  limits.payload_frames_max = 2;
  EXPECT_THAT(WhyNot(BodyOf({TextMessage("m", {"a", "b", "c"})}), limits), HasSubstr("3 payload"));
  limits.message_bytes_max = 10;
  EXPECT_THAT(WhyNot(BodyOf({TextMessage("m", {"12345678901"})}), limits),
              HasSubstr("LEEWAY_MESSAGE_BYTES_MAX allows 10"));
}

// The layer above the van receives the messages of an envelope and knows no envelopes itself.
TEST(EnvelopeTest, OneWithinAnotherIsNoMessage) {
  const auto outer = OpenEnvelope(BytesOf(BodyOf({TextMessage(BodyOf({TextMessage("m")}))})), {});
  ASSERT_TRUE(outer.ok());
  EXPECT_FALSE(proto::Decode((*outer)[0].header, {}).ok());
}

TEST(EnvelopeTest, NoiseDoesNoHarm) {
  runtime::Random random(3);
  const std::string whole = BodyOf(
      {TextMessage("header", {"payload", "more"}), TextMessage("m", {std::string(99, 'x')})});
  for (int i = 0; i < 20'000; ++i) {
    std::string body = whole.substr(0, 1 + random.Below(whole.size()));
    for (std::uint64_t flips = random.Below(4); flips > 0; --flips) {
      body[random.Below(body.size())] ^= static_cast<char>(1 << random.Below(8));
    }
    const auto opened = OpenEnvelope(BytesOf(body), Limits());
    if (!opened.ok()) continue;
    std::size_t bytes = 0;
    for (const Message& message : *opened) bytes += message.TotalBytes();
    EXPECT_LE(bytes, body.size());
  }
}

// ---- between vans ----

class VanEnvelopeTest : public testing::TestWithParam<NetKind> {
 protected:
  // A raw peer with a hello that counts the frames it gets, by kind.
  class Counting : public RawPeer {
   public:
    using RawPeer::RawPeer;
    void OnArrival(ConnId conn, Arrival arrival) override {
      const auto prefix = GetPrefix(arrival.head);
      if (prefix.ok() && prefix->kind == Kind::kData) ++alone;
      if (prefix.ok() && prefix->kind == Kind::kEnvelope) {
        const auto messages = OpenEnvelope(arrival.head.subspan(kPrefixBytes), Limits());
        ASSERT_TRUE(messages.ok()) << messages.status();
        sizes.push_back(messages->size());
        for (const Message& message : *messages) heard_texts.emplace_back(message.header.text());
      } else if (prefix.ok() && prefix->kind == Kind::kData) {
        heard_texts.emplace_back(reinterpret_cast<const char*>(arrival.head.data()) + kPrefixBytes,
                                 arrival.head.size() - kPrefixBytes);
      }
      RawPeer::OnArrival(conn, std::move(arrival));
    }
    int alone = 0;
    std::vector<std::size_t> sizes;
    std::vector<std::string> heard_texts;
  };

  void Connect(std::uint64_t capabilities) {
    server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2), limits_);
    raw_ = std::make_unique<Counting>(world_->NewTransport(world_->NewProcess(), {}));
    proto::Hello hello;
    hello.role = Role::kWorker;
    hello.capabilities = capabilities;
    conn_ = raw_->Greet(world_.get(), server_->Listen(), hello);
    ASSERT_TRUE(world_->RunUntil(
        [&] { return server_->recorder->ups.size() == 1 && raw_->heard.size() == 1; }));
    peer_ = server_->recorder->ups[0].peer;
  }
  bool AllHeard(std::size_t count) {
    return world_->RunUntil([&] { return raw_->heard_texts.size() >= count; });
  }
  void Send(const std::string& text, std::size_t bytes = 1) {
    EXPECT_TRUE(server_->van->Send(peer_, TextMessage(text, {std::string(bytes, 'x')})).ok());
  }
  void ExpectEachTravelsAlone() {
    for (int i = 0; i < 5; ++i) Send(absl::StrCat(i));
    ASSERT_TRUE(AllHeard(5));
    EXPECT_EQ(raw_->alone, 5);
    EXPECT_TRUE(raw_->sizes.empty());
  }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(GetParam());
  Limits limits_;
  std::unique_ptr<Node> server_;
  std::unique_ptr<Counting> raw_;
  ConnId conn_ = 0;
  PeerId peer_ = 0;
};

TEST_P(VanEnvelopeTest, SmallMessagesOfOneTurnTravelTogether) {
  Connect(proto::kEnvelopes);
  EXPECT_EQ(std::get<proto::Hello>(raw_->heard[0]).capabilities,
            raw_->transport().lossy() ? proto::kNoCapabilities : proto::kEnvelopes);
  for (int i = 0; i < 600; ++i) Send(absl::StrCat(i));
  ASSERT_TRUE(AllHeard(600));
  EXPECT_EQ(raw_->alone, 0);
  EXPECT_EQ(raw_->sizes, (std::vector<std::size_t>{256, 256, 88}));
  for (int i = 0; i < 600; ++i) EXPECT_EQ(raw_->heard_texts[i], absl::StrCat(i));
  EXPECT_EQ(server_->van->counters().messages_sent, 600u);
}

TEST_P(VanEnvelopeTest, ALargeMessageDoesNotOvertakeThem) {
  Connect(proto::kEnvelopes);
  Send("0");
  Send("1");
  Send("2", 100'000);
  Send("3");
  ASSERT_TRUE(AllHeard(4));
  EXPECT_EQ(raw_->heard_texts, (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(raw_->alone, 1);
  EXPECT_EQ(raw_->sizes, (std::vector<std::size_t>{2, 1}));
}

TEST_P(VanEnvelopeTest, APeerThatDoesNotKnowThemGetsNone) {
  Connect(proto::kNoCapabilities);
  ExpectEachTravelsAlone();
}

TEST_P(VanEnvelopeTest, TheyKeepToTheWindow) {
  limits_.send_window_bytes = 1000;
  Connect(proto::kEnvelopes);
  for (int i = 0; i < 100; ++i) Send(absl::StrCat(i), 100);
  world_->RunFor(absl::Milliseconds(50));
  // No report has come of what was sent, so only what fits the window has left.
  EXPECT_LE(raw_->heard_texts.size(), 1000u / 100);
  EXPECT_GT(raw_->heard_texts.size(), 2u);
  EXPECT_FALSE(server_->van->Writable(peer_));
}

TEST_P(VanEnvelopeTest, AGoodbyeComesAfterThem) {
  Connect(proto::kEnvelopes);
  Send("last words");
  server_->van->Disconnect(peer_, absl::OkStatus());
  ASSERT_TRUE(world_->RunUntil([&] {
    return raw_->Heard([](const auto& m) { return std::holds_alternative<proto::Goodbye>(m); });
  }));
  EXPECT_EQ(raw_->heard_texts, (std::vector<std::string>{"last words"}));
}

TEST_P(VanEnvelopeTest, NothingOfABrokenOneIsBelieved) {
  Connect(proto::kEnvelopes);
  std::string body = BodyOf({TextMessage("good"), TextMessage("bad")});
  body.resize(body.size() - 8);
  Prefix prefix;
  prefix.kind = Kind::kEnvelope;
  raw_->transport().Send(conn_, prefix, TextMessage(body), nullptr);
  ASSERT_TRUE(world_->RunUntil([&] { return !raw_->Rejection().ok(); }));
  EXPECT_THAT(std::string(raw_->Rejection().message()), HasSubstr("malformed envelope"));
  EXPECT_TRUE(server_->recorder->messages.empty());
  EXPECT_EQ(server_->van->counters().malformed_messages, 1u);
}

// A peer that is dropped in the middle of an envelope gets no further OnMessage, and the van may be
// destroyed there.
TEST_P(VanEnvelopeTest, TheRestOfOneMayFindNobody) {
  Connect(proto::kEnvelopes);
  Prefix prefix;
  prefix.kind = Kind::kEnvelope;
  int heard = 0;
  server_->recorder->on_message = [&](PeerId peer, Message) {
    ++heard;
    server_->van->Disconnect(peer, absl::InvalidArgumentError("no more"));
  };
  raw_->transport().Send(conn_, prefix, TextMessage(BodyOf({TextMessage("a"), TextMessage("b")})),
                         nullptr);
  ASSERT_TRUE(world_->RunUntil([&] { return !raw_->Rejection().ok(); }));
  EXPECT_EQ(heard, 1);

  Counting other(world_->NewTransport(world_->NewProcess(), {}));
  Node listener(world_.get(), IdentityOf(Role::kServer, 3));
  listener.recorder->on_message = [&](PeerId, Message) {
    ++heard;
    listener.van.reset();
  };
  proto::Hello hello;
  hello.role = Role::kWorker;
  const ConnId conn = other.Greet(world_.get(), listener.Listen(), hello);
  other.transport().Send(conn, prefix, TextMessage(BodyOf({TextMessage("a"), TextMessage("b")})),
                         nullptr);
  ASSERT_TRUE(world_->RunUntil([&] { return listener.van == nullptr; }));
  EXPECT_EQ(heard, 2);
}

INSTANTIATE_TEST_SUITE_P(Nets, VanEnvelopeTest,
                         testing::Values(NetKind::kTcp, NetKind::kZmqTcp, NetKind::kIpc,
                                         NetKind::kInproc, NetKind::kSim),
                         [](const auto& kind) { return NameOf(kind.param); });

// Shared memory: each message is read while the next one is written.
using VanWithoutEnvelopesTest = VanEnvelopeTest;

TEST_P(VanWithoutEnvelopesTest, EachMessageTravelsAlone) {
  Connect(proto::kEnvelopes);
  ExpectEachTravelsAlone();
}

TEST_P(VanWithoutEnvelopesTest, AnswersToALargeMessageTravelTogether) {
  Connect(proto::kEnvelopes);
  server_->recorder->on_message = [&](PeerId, Message) {
    for (int i = 0; i < 5; ++i) Send(absl::StrCat(i));
  };
  const auto receive = [&](std::size_t bytes) {
    Prefix prefix;
    prefix.frames = 2;
    raw_->transport().Send(conn_, prefix, TextMessage("push", {std::string(bytes, 'x')}), nullptr);
  };
  receive(1 << 20);
  ASSERT_TRUE(AllHeard(5));
  EXPECT_EQ(raw_->sizes, (std::vector<std::size_t>{5}));
  receive(64 << 10);
  ASSERT_TRUE(AllHeard(10));
  EXPECT_EQ(raw_->alone, 5);
}

TEST_P(VanWithoutEnvelopesTest, EnvelopesOfOthersAreTaken) {
  Connect(proto::kEnvelopes);
  Prefix prefix;
  prefix.kind = Kind::kEnvelope;
  raw_->transport().Send(conn_, prefix, TextMessage(BodyOf({TextMessage("a"), TextMessage("b")})),
                         nullptr);
  ASSERT_TRUE(world_->RunUntil([&] { return server_->recorder->messages.size() == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Nets, VanWithoutEnvelopesTest,
                         testing::Values(NetKind::kShm, NetKind::kMixed),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
