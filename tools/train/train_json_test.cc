#include "tools/train/train_json.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace leeway::tools {
namespace {

fashion_mnist::Outcome SomeOutcome() {
  fashion_mnist::Outcome outcome;
  outcome.curve = {{.epoch = 1,
                    .step = 10,
                    .seconds = 1.5,
                    .train_loss = 0.5,
                    .test_loss = 0.6,
                    .test_accuracy = 0.75}};
  outcome.wall_time_s = 2.5;
  outcome.idle_s = {0.25, 1};
  outcome.bytes_pushed = 1ull << 40;
  outcome.bytes_pulled = 80;
  outcome.steps_taken = 10;
  outcome.max_staleness = 3;
  outcome.staleness_histogram = {{0, 5}, {3, 1}, {10, 2}};
  return outcome;
}

TEST(TrainJsonTest, HasEveryKey) {
  fashion_mnist::Settings settings;
  settings.slow[2] = absl::Milliseconds(50);
  settings.workers = 2;
  settings.codec = "onebit";
  settings.error_feedback = ErrorFeedback::kBoth;
  settings.data = "/not \xff utf-8";
  const auto json = nlohmann::json::parse(TrainJson(settings, "ssp:3", SomeOutcome()));
  EXPECT_EQ(json["mode"], "ssp:3");
  EXPECT_EQ(json["test_accuracy"], 0.75);
  EXPECT_EQ(json["max_staleness"], 3);
  EXPECT_EQ(json["wall_time_s"], 2.5);
  EXPECT_EQ(json["bytes_pushed"], 1ull << 40);
  EXPECT_EQ(json["bytes_pulled"], 80);
  EXPECT_EQ(json["bytes_pulled_per_worker_step"], 4);
  EXPECT_EQ(json["bytes_pushed_per_worker_step"], (1ull << 40) / 20.0);
  EXPECT_EQ(json["codec"], "onebit");
  EXPECT_EQ(json["error_feedback"], "both");
  EXPECT_EQ(json["idle_s"], (std::vector<double>{0.25, 1}));
  EXPECT_EQ(json["staleness_histogram"].dump(), R"({"0":5,"10":2,"3":1})");
  EXPECT_EQ(json["curve"][0]["test_accuracy"], 0.75);
  EXPECT_EQ(json["curve"][0]["step"], 10);
  EXPECT_EQ(json["settings"]["model"], "mlp");
  EXPECT_EQ(json["settings"]["slow_ms"]["2"], 50);
}

TEST(TrainJsonTest, IsReadBack) {
  const auto facts = ParseTrainJson(TrainJson({}, "asp", SomeOutcome()));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->mode, "asp");
  EXPECT_EQ(facts->test_accuracy, 0.75);
  EXPECT_EQ(facts->wall_time_s, 2.5);
  EXPECT_EQ(facts->max_staleness, 3u);
  EXPECT_EQ(facts->bytes_per_step, ((1ull << 40) + 80) / 10.0);  // of all workers
}

TEST(TrainJsonTest, RefusesOtherFiles) {
  const auto old = ParseTrainJson(
      R"({"mode": "bsp", "test_accuracy": 0.5, "wall_time_s": 1, "max_staleness": 0})");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->bytes_per_step, 0);
  for (const char* text : {"", "{", "[]", "{}", R"({"mode": 3})", R"({"mode": "bsp"})",
                           R"({"mode": "bsp", "test_accuracy": "high"})"}) {
    EXPECT_FALSE(ParseTrainJson(text).ok()) << text;
  }
}

}  // namespace
}  // namespace leeway::tools
