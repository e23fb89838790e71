// Tests of pulls that are received straight into the user's array.
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/encoding/encoding.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

// A van whose posted receive buffers the test can see, and fill as a transport would.
class WatchedVan final : public van::Van {
 public:
  WatchedVan(std::unique_ptr<van::Van> inner, std::shared_ptr<van::PostedReceives> own,
             std::vector<std::span<std::byte>>* seen, const bool* keeps,
             std::vector<runtime::Buffer>* kept)
      : inner_(std::move(inner)), own_(std::move(own)), seen_(seen), keeps_(keeps), kept_(kept) {}
  absl::StatusOr<std::string> Listen(absl::string_view address) override {
    return inner_->Listen(address);
  }
  absl::StatusOr<van::PeerId> Connect(absl::string_view address, absl::Duration timeout) override {
    return inner_->Connect(address, timeout);
  }
  absl::Status Send(van::PeerId peer, van::Message message, van::SendDone done) override {
    if (*keeps_) kept_->insert(kept_->end(), message.payload.begin(), message.payload.end());
    return inner_->Send(peer, std::move(message), std::move(done));
  }
  van::ReceiveHandle PostReceive(van::PeerId peer, std::uint64_t token,
                                 std::span<std::byte> into) override {
    seen_->push_back(into);
    return own_ == nullptr ? inner_->PostReceive(peer, token, into) : own_->Post(peer, token, into);
  }
  void Disconnect(van::PeerId peer, absl::Status why) override {
    inner_->Disconnect(peer, std::move(why));
  }
  bool Writable(van::PeerId peer) const override { return inner_->Writable(peer); }
  std::string AddressOf(van::PeerId peer) const override { return inner_->AddressOf(peer); }
  van::Identity identity() const override { return inner_->identity(); }
  void SetIdentity(const van::Identity& identity) override { inner_->SetIdentity(identity); }
  van::Counters counters() const override { return inner_->counters(); }

 private:
  const std::unique_ptr<van::Van> inner_;
  const std::shared_ptr<van::PostedReceives> own_;
  std::vector<std::span<std::byte>>* const seen_;
  const bool* const keeps_;
  std::vector<runtime::Buffer>* const kept_;
};

// A factory between the core and its vans, which sees their posted buffers, sends and messages.
class WatchingFactory final : public van::Factory {
 public:
  std::unique_ptr<van::Van> New(runtime::Loop* loop, const van::Identity& identity,
                                const van::Limits& limits, van::Handler* handler) override {
    handlers_.push_back(std::make_unique<WatchingHandler>(this, handler));
    return std::make_unique<WatchedVan>(inner->New(loop, identity, limits, handlers_.back().get()),
                                        own, &posted, &keeps_sent, &sent);
  }
  std::string AnyAddress(absl::string_view host) const override { return inner->AnyAddress(host); }

  van::PeerId PeerOf(std::uint32_t server_node) const { return peers_.at(server_node); }

  van::Factory* inner = nullptr;
  std::shared_ptr<van::PostedReceives> own;  // null: buffers are posted to the van
  std::vector<std::span<std::byte>> posted;
  // Behaves as a transport whose peer takes nothing in.
  bool keeps_sent = false;
  std::vector<runtime::Buffer> sent;
  int in_place = 0;  // answers that were received into a posted buffer

 private:
  class WatchingHandler final : public van::Handler {
   public:
    WatchingHandler(WatchingFactory* between, van::Handler* handler)
        : between_(between), handler_(handler) {}
    void OnPeerUp(van::PeerId peer, const van::Identity& identity) override {
      if (identity.role == Role::kServer) between_->peers_[identity.node] = peer;
      handler_->OnPeerUp(peer, identity);
    }
    void OnPeerDown(van::PeerId peer, const absl::Status& why) override {
      handler_->OnPeerDown(peer, why);
    }
    void OnMessage(van::PeerId peer, van::Message message) override {
      for (const auto& into : between_->posted) {
        const bool one = message.payload.size() == 1;
        between_->in_place += one && message.payload[0].data() == into.data() ? 1 : 0;
      }
      handler_->OnMessage(peer, std::move(message));
    }

   private:
    WatchingFactory* const between_;
    van::Handler* const handler_;
  };

  std::vector<std::unique_ptr<WatchingHandler>> handlers_;
  std::map<std::uint32_t, van::PeerId> peers_;
};

class CorePostedReceiveTest : public ::testing::Test {
 protected:
  explicit CorePostedReceiveTest(bool own = false) {
    if (own) between_.own = van::PostedReceives::New(nullptr);
    cluster_.Connect();
  }

  // Pulls without an answer; returns the request that the server got.
  proto::Request PullInVain(const std::shared_ptr<const TableInfo>& table, std::vector<float>* to,
                            absl::Duration timeout = absl::Minutes(1)) {
    proto::Request asked;
    server().intercept = [&](const proto::Request& request) {
      asked = request;
      return true;
    };
    pull_ = cluster_.Pull(table, {}, to, {.timeout = timeout});
    cluster_.RunUntil([&] { return asked.id.sequence > 0; });
    server().intercept = [](const proto::Request&) { return true; };
    return asked;
  }
  // The posted buffer that a transport finds when the answer to that request begins to come.
  std::shared_ptr<const van::PostedReceive> Find(const proto::Request& request,
                                                 std::uint64_t bytes) const {
    return between_.own->Find(between_.PeerOf(server_node_), proto::ReceiveTokenOf(request.id),
                              bytes);
  }
  ScriptedServer& server() { return *cluster_.servers[0]; }

  WatchingFactory between_;
  const std::uint32_t server_node_ = 2;
  TestCluster cluster_{{.servers = 1, .shards = 1, .wrap = [this](van::Factory* inner) {
                          between_.inner = inner;
                          return static_cast<van::Factory*>(&between_);
                        }}};
  std::shared_ptr<Operation> pull_;
};

TEST_F(CorePostedReceiveTest, EveryBlockOfADenseTableIsReceivedInPlace) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {3000}));  // three blocks
  std::vector<float> values(3000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ASSERT_TRUE(cluster_.Await(cluster_.Push(table, {}, values)).ok());
  EXPECT_TRUE(between_.posted.empty());
  std::vector<float> got(3000, -1);
  EXPECT_TRUE(cluster_.Await(cluster_.Pull(table, {}, &got)).ok());
  EXPECT_EQ(got, values);
  EXPECT_EQ(between_.posted.size(), 3u);
  EXPECT_EQ(between_.in_place, 3);
}

// If its answer breaks off, the push may be sent again from the array that the answer is written
// to.
TEST_F(CorePostedReceiveTest, ThatOfAPushPullIsNot) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  const std::vector<float> values(16, 2);
  std::vector<float> got(16, -1);
  EXPECT_TRUE(cluster_.Await(cluster_.PushPull(table, values, &got)).ok());
  EXPECT_EQ(got, values);
  EXPECT_TRUE(between_.posted.empty());
}

TEST_F(CorePostedReceiveTest, APushEndsOnceNothingReadsTheUsersArray) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {1024}));
  server().intercept = [](const proto::Request&) { return true; };
  between_.keeps_sent = true;
  const std::vector<float> values(1024, 1);
  const auto push = cluster_.Push(table, {}, values, {.timeout = absl::Seconds(1)});
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_FALSE(push->done());
  between_.keeps_sent = false;
  between_.sent.clear();
  EXPECT_EQ(cluster_.Await(push).code(), absl::StatusCode::kUnknown);
}

// Answers stop half way for up to a second, and most pulls are given up before.
TEST_F(CorePostedReceiveTest, NothingIsWrittenOnceAPullHasEnded) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  const std::vector<float> ones(16, 1);
  ASSERT_TRUE(cluster_.Await(cluster_.Push(table, {}, ones)).ok());
  cluster_.network.SetFaults({.reorder_probability = 1, .reorder_delay = absl::Seconds(1)});
  int whole = 0, torn = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<float> got(16, -1);
    const bool ok =
        cluster_.Await(cluster_.Pull(table, {}, &got, {.timeout = absl::Seconds(1)})).ok();
    ok ? ++whole : torn += got.front() != got.back();
    if (ok) {
      EXPECT_EQ(got, ones);
    }
    const std::vector<float> at_its_end = got;
    cluster_.world.RunFor(absl::Seconds(3));
    EXPECT_EQ(got, at_its_end);
  }
  EXPECT_GT(whole, 10);
  EXPECT_GT(torn, 10);
}

// The test fills posted buffers as a transport would.
class CoreOwnReceivesTest : public CorePostedReceiveTest {
 protected:
  CoreOwnReceivesTest() : CorePostedReceiveTest(/*own=*/true) {}
};

TEST_F(CoreOwnReceivesTest, TheUsersArrayIsPostedForTheRequest) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Request asked = PullInVain(table, &got);
  proto::Request other = asked;
  ++other.id.sequence;
  EXPECT_EQ(Find(other, 64), nullptr);
  EXPECT_EQ(Find(asked, 60), nullptr);
  const auto receive = Find(asked, 64);
  ASSERT_NE(receive, nullptr);
  EXPECT_EQ(static_cast<const void*>(receive->to()), got.data());
}

// An answer may have stopped half way. If the request is sent again, over the same connection or
// another, the first answer must stay whole, because it counts if it is complete first.
TEST_F(CoreOwnReceivesTest, AnAnswerThatHasBegunIsNotInterrupted) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Request asked = PullInVain(table, &got);
  auto first = Find(asked, 64);
  ASSERT_NE(first, nullptr);
  cluster_.world.RunFor(absl::Seconds(10));  // the request is sent again
  EXPECT_EQ(between_.posted.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(first->to()), got.data());
  EXPECT_EQ(Find(asked, 64), nullptr);

  first = nullptr;  // its connection broke
  EXPECT_NE(Find(asked, 64), nullptr);
}

TEST_F(CoreOwnReceivesTest, AnAnswerThatHasBegunIsNotInterruptedOverAnotherConnection) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const auto first = Find(PullInVain(table, &got), 64);
  ASSERT_NE(first, nullptr);
  const van::PeerId before = between_.PeerOf(server_node_);
  server().Restart();
  cluster_.world.RunFor(absl::Seconds(10));  // the request is sent again
  ASSERT_NE(between_.PeerOf(server_node_), before);
  EXPECT_EQ(between_.posted.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(first->to()), got.data());
}

TEST_F(CoreOwnReceivesTest, TheArrayIsPostedAgainAfterABrokenAnswer) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Request asked = PullInVain(table, &got);
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_EQ(between_.posted.size(), 1u) << "one is enough for several requests";
  between_.own->Answered(between_.PeerOf(server_node_), proto::ReceiveTokenOf(asked.id));
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_EQ(between_.posted.size(), 2u);
  EXPECT_NE(Find(asked, 64), nullptr);
}

TEST_F(CoreOwnReceivesTest, TheArrayIsTheUsersAgainAtTheDeadline) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Request asked = PullInVain(table, &got, absl::Seconds(2));
  const auto receive = Find(asked, 64);
  ASSERT_NE(receive, nullptr);
  EXPECT_EQ(cluster_.Await(pull_).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(receive->to(), nullptr);
  EXPECT_EQ(Find(asked, 64), nullptr);
}

TEST_F(CoreOwnReceivesTest, TheArrayIsTheUsersAgainOnceAnswered) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Request asked = PullInVain(table, &got);
  const auto receive = Find(asked, 64);
  ASSERT_NE(receive, nullptr);
  server().intercept = nullptr;  // the request is sent again
  EXPECT_TRUE(cluster_.Await(pull_).ok());
  EXPECT_EQ(got, std::vector<float>(16, 0));
  EXPECT_EQ(receive->to(), nullptr);
}

TEST_F(CoreOwnReceivesTest, TheArrayIsTheUsersAgainWhenTheWorkerStops) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const auto receive = Find(PullInVain(table, &got), 64);
  ASSERT_NE(receive, nullptr);
  cluster_.core->Stop();
  EXPECT_EQ(receive->to(), nullptr);
}

}  // namespace
}  // namespace leeway::worker
