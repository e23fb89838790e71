// Pulls that are received straight into the user's array.
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/codec.h"
#include "worker/core.h"
#include "worker/test_cluster.h"

namespace leeway::worker {
namespace {

// Stands between the core's vans and what they tell it, and asks it what a transport asks.
class Between final : public van::Factory {
 public:
  std::unique_ptr<van::Van> New(runtime::Loop* loop, const van::Identity& identity,
                                const van::Limits& limits, van::Handler* handler) override {
    handlers_.push_back(std::make_unique<Ear>(this, handler));
    return inner->New(loop, identity, limits, handlers_.back().get());
  }
  std::string AnyAddress(absl::string_view host) const override { return inner->AnyAddress(host); }

  std::shared_ptr<const van::Landing> Ask(std::uint32_t server_node, const proto::Reply& reply,
                                          std::uint64_t bytes) {
    const runtime::Buffer header = proto::Encode(reply);
    const auto& [handler, peer] = servers_.at(server_node);
    return handler->LandingFor(peer, header.bytes(), bytes);
  }

  van::Factory* inner = nullptr;
  bool deny = false;  // as a transport that does not ask
  int landed = 0;

 private:
  class Ear final : public van::Handler {
   public:
    Ear(Between* between, van::Handler* handler) : between_(between), handler_(handler) {}
    void OnPeerUp(van::PeerId peer, const van::Identity& identity) override {
      if (identity.role == Role::kServer) between_->servers_[identity.node] = {handler_, peer};
      handler_->OnPeerUp(peer, identity);
    }
    void OnPeerDown(van::PeerId peer, const absl::Status& why) override {
      handler_->OnPeerDown(peer, why);
    }
    void OnMessage(van::PeerId peer, van::Message message) override {
      handler_->OnMessage(peer, std::move(message));
    }
    std::shared_ptr<const van::Landing> LandingFor(van::PeerId peer,
                                                   std::span<const std::byte> header,
                                                   std::uint64_t bytes) override {
      if (between_->deny) return nullptr;
      auto landing = handler_->LandingFor(peer, header, bytes);
      between_->landed += landing != nullptr ? 1 : 0;
      return landing;
    }

   private:
    Between* const between_;
    van::Handler* const handler_;
  };

  std::vector<std::unique_ptr<Ear>> handlers_;
  std::map<std::uint32_t, std::pair<van::Handler*, van::PeerId>> servers_;
};

class CoreLandingTest : public ::testing::Test {
 protected:
  CoreLandingTest() { cluster_.Connect(); }

  // Pulls and is not answered; what the server was asked.
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
  static proto::Reply ReplyTo(const proto::Request& request) {
    return {.id = request.id,
            .op = request.op,
            .kind = request.kind,
            .dtype = request.dtype,
            .elements = request.elements};
  }
  std::shared_ptr<const van::Landing> Ask(const proto::Reply& reply, std::uint64_t bytes) {
    return between_.Ask(server_node_, reply, bytes);
  }
  ScriptedServer& server() { return *cluster_.servers[0]; }

  Between between_;
  const std::uint32_t server_node_ = 2;
  TestCluster cluster_{{.servers = 1, .shards = 1, .wrap = [this](van::Factory* inner) {
                          between_.inner = inner;
                          return static_cast<van::Factory*>(&between_);
                        }}};
  std::shared_ptr<Operation> pull_;
};

TEST_F(CoreLandingTest, EveryBlockOfADenseTableLands) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {3000}));  // three blocks
  std::vector<float> values(3000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ASSERT_TRUE(cluster_.Await(cluster_.Push(table, {}, values)).ok());
  for (const bool deny : {false, true}) {
    between_.deny = deny;
    std::vector<float> got(3000, -1);
    EXPECT_TRUE(cluster_.Await(cluster_.Pull(table, {}, &got)).ok());
    EXPECT_EQ(got, values);
    EXPECT_EQ(between_.landed, 3);
  }
}

// If its answer breaks off, it may be sent again from an array that is also where the answer goes.
TEST_F(CoreLandingTest, NotSoThatOfAPushPull) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  const std::vector<float> values(16, 2);
  std::vector<float> got(16, -1);
  EXPECT_TRUE(cluster_.Await(cluster_.PushPull(table, values, &got)).ok());
  EXPECT_EQ(got, values);
  EXPECT_EQ(between_.landed, 0);
}

TEST_F(CoreLandingTest, OnlyWhatWasAskedForIsGranted) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Reply reply = ReplyTo(PullInVain(table, &got));
  auto granted = Ask(reply, 64);
  ASSERT_NE(granted, nullptr);
  EXPECT_EQ(static_cast<const void*>(granted->to()), got.data());
  granted = nullptr;

  EXPECT_EQ(Ask(reply, 60), nullptr);  // not what the header says
  const auto wrong = [&](auto&& change) {
    proto::Reply other = reply;
    change(other);
    return Ask(other, other.elements * 4);
  };
  EXPECT_EQ(wrong([](proto::Reply& r) { r.elements = 15; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { ++r.id.sequence; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { r.id.shard = 7; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { ++r.id.incarnation; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { r.op = proto::Op::kPush; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { r.op = proto::Op::kPushPull; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { r.kind = TableKind::kSparse; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { r.dtype = DType::kInt32; }), nullptr);
  EXPECT_EQ(wrong([](proto::Reply& r) { r.result = absl::AbortedError("moved"); }), nullptr);
  EXPECT_NE(wrong([](proto::Reply&) {}), nullptr);
}

// Answers may be on their way over two connections, where another server has become head meanwhile;
// and the first of them counts after all where that one dies. So it must not lose what has come.
TEST_F(CoreLandingTest, WhatHasBegunToComeStaysWhole) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Reply reply = ReplyTo(PullInVain(table, &got));
  auto first = Ask(reply, 64);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Ask(reply, 64), nullptr);
  EXPECT_EQ(static_cast<const void*>(first->to()), got.data());

  first = nullptr;  // its connection broke
  const auto second = Ask(reply, 64);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(static_cast<const void*>(second->to()), got.data());
}

TEST_F(CoreLandingTest, WhenItsTimeIsUpTheArrayIsTheUsersAgain) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Reply reply = ReplyTo(PullInVain(table, &got, absl::Seconds(2)));
  const auto granted = Ask(reply, 64);
  ASSERT_NE(granted, nullptr);
  EXPECT_EQ(cluster_.Await(pull_).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(granted->to(), nullptr);
  EXPECT_EQ(Ask(reply, 64), nullptr);
}

TEST_F(CoreLandingTest, SoItIsOnceItIsAnswered) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const proto::Request asked = PullInVain(table, &got);
  const auto granted = Ask(ReplyTo(asked), 64);
  ASSERT_NE(granted, nullptr);
  between_.deny = true;
  server().intercept = nullptr;  // it is asked again
  EXPECT_TRUE(cluster_.Await(pull_).ok());
  EXPECT_EQ(got, std::vector<float>(16, 0));
  EXPECT_EQ(granted->to(), nullptr);
}

// Answers halt in their midst for up to a second, and most pulls are given up before that is over.
TEST_F(CoreLandingTest, NothingIsWrittenOnceAPullHasEnded) {
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

TEST_F(CoreLandingTest, AndWhenTheWorkerStops) {
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<float> got(16, -1);
  const auto granted = Ask(ReplyTo(PullInVain(table, &got)), 64);
  ASSERT_NE(granted, nullptr);
  cluster_.core->Stop();
  EXPECT_EQ(granted->to(), nullptr);
}

}  // namespace
}  // namespace leeway::worker
