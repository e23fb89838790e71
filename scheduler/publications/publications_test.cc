#include "scheduler/publications/publications.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sim/sim_world.h"

namespace leeway::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two servers, nodes 2 and 3, with 3 shards; the test answers for them.
class Publishing : public testing::Test {
 protected:
  Publishing() {
    config_.versions_kept = 2;
    config_.request_timeout = absl::Seconds(20);
    config_.resend_interval = absl::Seconds(1);
    facts_.epoch = 1;
    facts_.num_shards = 3;
    facts_.servers = {2, 3};
    facts_.tables = {{4, "weights"}, {6, "biases"}};
    Tick();
  }
  ~Publishing() override { publications_.reset(); }
  void Tick() {
    publications_->Tick();
    runner_->loop()->After(absl::Milliseconds(100), [this] { Tick(); });
  }

  using Answer = std::optional<absl::StatusOr<std::string>>;
  std::shared_ptr<Answer> Publish(std::vector<std::string> arguments = {"policy", "at:5", "6,4"}) {
    auto answer = std::make_shared<Answer>();
    publications_->Command(
        arguments, [answer](const absl::StatusOr<std::string>& result) { *answer = result; });
    return answer;
  }
  void Reply(std::uint32_t node, std::uint32_t shards, absl::Status result = absl::OkStatus(),
             std::uint64_t closed = 0) {
    publications_->OnReply(node, {.publication = asked_.publication,
                                  .result = std::move(result),
                                  .shards = shards,
                                  .closed = closed});
  }
  // Until the scheduler has said so many Publish messages in all.
  void UntilAsked(std::size_t times) {
    EXPECT_TRUE(world_.RunUntil([&] { return times_asked_ >= times; }, absl::Minutes(1)).ok());
  }
  std::vector<std::uint64_t> Versions() const {
    std::vector<std::uint64_t> versions;
    for (const auto& one : told_.back().versions) versions.push_back(one.version);
    return versions;
  }

  Config config_;
  Publications::Facts facts_;
  proto::Publish asked_;
  std::size_t times_asked_ = 0;
  std::vector<proto::Published> told_;
  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("scheduler");
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("loop");
  MembershipTable members_{2, 1};
  std::unique_ptr<Publications> publications_ = std::make_unique<Publications>(
      &config_, runner_->loop(), &members_, [this] { return facts_; },
      [this](std::uint32_t, const proto::AnyMessage& message) {
        asked_ = std::get<proto::Publish>(message);
        ++times_asked_;
      },
      [this](const proto::Published& published) { told_.push_back(published); });
};

TEST_F(Publishing, AnnouncesAVersionWhenAllShardsAreFrozen) {
  const auto answer = Publish();
  EXPECT_EQ(asked_.clock, 5u);
  EXPECT_THAT(asked_.tables, ElementsAre(proto::ModelTable{4}, proto::ModelTable{6}));
  Reply(2, 1);
  Reply(2, 1);
  EXPECT_TRUE(told_.empty());
  Reply(3, 2);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(Versions(), ElementsAre(1));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->value_or(""), R"({"clock":5,"version":1})");
}

TEST_F(Publishing, KeepsTheNewestVersions) {
  for (int i = 0; i < 3; ++i) {
    Publish();
    Reply(2, 1);
    Reply(3, 2);
  }
  EXPECT_THAT(Versions(), ElementsAre(2, 3));
}

TEST_F(Publishing, BeginsAnewWhenAShardIsMissing) {
  const auto answer = Publish();
  const std::uint64_t first = asked_.publication;
  Reply(2, 1);
  Reply(3, 1);
  EXPECT_TRUE(told_.empty());
  UntilAsked(4);
  EXPECT_GT(asked_.publication, first);
  Reply(2, 1);
  Reply(3, 2);
  EXPECT_TRUE(answer->has_value() && (*answer)->ok());
  EXPECT_EQ(told_.back().versions.back().publication, asked_.publication);
}

TEST_F(Publishing, TakesALaterClockWhereAShardIsBeyondTheWorkers) {
  Publish();
  Reply(2, 0, absl::OutOfRangeError("beyond clock 5"), 9);
  UntilAsked(4);
  EXPECT_EQ(asked_.clock, 9u);
  Reply(2, 1);
  Reply(3, 2);
  EXPECT_EQ(told_.back().versions.back().clock, 9u);
}

TEST_F(Publishing, FailsInTimeAndNamesWhomItWaitedFor) {
  const auto answer = Publish();
  Reply(2, 1);
  EXPECT_TRUE(world_.RunUntil([&] { return answer->has_value(); }, absl::Minutes(1)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded((*answer)->status()));
  EXPECT_THAT(std::string((*answer)->status().message()), HasSubstr("LEEWAY_REQUEST_TIMEOUT_MS"));
}

TEST_F(Publishing, RefusesWhatIsNoModel) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"policy"},
                                                    {"policy", "5", "4"},
                                                    {"", "at:5", "4"},
                                                    {"policy", "at:5", "5"},
                                                    {"policy", "at:5", "4,4"},
                                                    {"policy", "at:5", ""}}) {
    const auto answer = Publish(arguments);
    ASSERT_TRUE(answer->has_value());
    EXPECT_FALSE((*answer)->ok());
  }
  EXPECT_EQ(times_asked_, 0u);
}

TEST_F(Publishing, DescribesOneModelOrListsAll) {
  const auto describe = [this](const std::vector<std::string>& arguments) {
    absl::StatusOr<std::string> answer;
    publications_->Describe(arguments, [&](absl::StatusOr<std::string> said) { answer = said; });
    return answer;
  };
  EXPECT_EQ(describe({}).value_or(""), R"({"models":[]})");
  EXPECT_TRUE(absl::IsNotFound(describe({"policy"}).status()));
  for (const char* const model : {"policy", "critic", "policy"}) {
    Publish({model, "at:5", "6,4"});
    Reply(2, 1);
    Reply(3, 2);
  }
  EXPECT_EQ(describe({}).value_or(""),
            R"({"models":[{"clock":5,"model":"critic","tables":2,"version":1,"versions_kept":1},)"
            R"({"clock":5,"model":"policy","tables":2,"version":2,"versions_kept":2}]})");
  EXPECT_EQ(describe({"policy"}).value_or(""),
            R"({"model":"policy","tables":["weights","biases"],)"
            R"("versions":[{"clock":5,"version":1},{"clock":5,"version":2}]})");
  EXPECT_THAT(std::string(describe({"none"}).status().message()), HasSubstr("critic, policy"));
}

TEST_F(Publishing, GoesOnWhereAnotherSchedulerWas) {
  publications_->Restore({{.model = "policy",
                           .tables = {{4}, {6}},
                           .versions = {{.version = 8, .publication = 70, .clock = 2}}}},
                         /*generation=*/3);
  Publish();
  EXPECT_GT(asked_.publication, 3ull << 32);
  Reply(2, 1);
  Reply(3, 2);
  EXPECT_THAT(Versions(), ElementsAre(8, 9));
}

}  // namespace
}  // namespace leeway::scheduler
